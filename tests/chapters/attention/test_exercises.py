"""The references of notebook 08 against PyTorch, transformers and the papers' own definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.attention import figures
from lmcourse.chapters.attention.exercises import EXERCISES
from lmcourse.chapters.attention.exercises.blocks import block_update
from lmcourse.chapters.attention.exercises.cache import attend_with_cache
from lmcourse.chapters.attention.exercises.causal import causal_attention
from lmcourse.chapters.attention.exercises.costs import attention_flops_bytes
from lmcourse.chapters.attention.exercises.grouped import grouped_query_attention
from lmcourse.chapters.attention.exercises.heads import multi_head
from lmcourse.chapters.attention.exercises.mask import causal_mask
from lmcourse.chapters.attention.exercises.reach import receptive_field
from lmcourse.chapters.attention.exercises.strided import strided_mask
from lmcourse.chapters.attention.exercises.weights import attention_weights
from lmcourse.chapters.attention.exercises.windows import sliding_window_mask
from lmcourse.exercises import Exercise, check_exercise

LENGTHS = [(1, 1), (1, 5), (4, 4), (3, 7), (6, 7)]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(8)


def heads(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_weights_are_those_of_multihead_attention() -> None:
    layer = nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    x, source = heads(2, 4, 12), heads(2, 5, 12)
    _, expected = layer(x, source, source, average_attn_weights=False)
    w_q, w_k, _ = layer.in_proj_weight.chunk(3)
    q, k = ((y @ w.T).unflatten(-1, (3, 4)).transpose(1, 2) for y, w in ((x, w_q), (source, w_k)))
    torch.testing.assert_close(attention_weights.reference(q, k), expected)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
def test_the_causal_mask_is_torchs_lower_right_bias(s: int, t: int) -> None:
    from torch.nn.attention.bias import causal_lower_right

    units = torch.eye(t, dtype=torch.float64)[None, None]
    seen = F.scaled_dot_product_attention(
        torch.zeros(1, 1, s, t, dtype=torch.float64), units, units, attn_mask=causal_lower_right(s, t)
    )
    assert torch.equal(causal_mask.reference(s, t), seen[0, 0] > 0)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
def test_causal_attention_is_torchs_with_the_lower_right_bias(s: int, t: int) -> None:
    from torch.nn.attention.bias import causal_lower_right

    q, k, v = heads(2, 3, s, 8), heads(2, 3, t, 8), heads(2, 3, t, 5)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(s, t))
    torch.testing.assert_close(causal_attention.reference(q, k, v), expected)


def test_many_heads_are_a_loop_over_heads() -> None:
    x, source, *weights = heads(2, 4, 12), heads(2, 6, 12), *(heads(12, 12) for _ in range(4))
    visible = torch.rand(4, 6) < 0.5
    visible[:, 0] = True
    w_q, w_k, w_v, w_out = weights
    total = torch.zeros(2, 4, 12, dtype=torch.float64)
    for mine in (slice(0, 4), slice(4, 8), slice(8, 12)):
        scores = (x @ w_q[mine].T) @ (source @ w_k[mine].T).mT / 2
        share = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
        total += share @ (source @ w_v[mine].T) @ w_out[:, mine].T
    torch.testing.assert_close(multi_head.reference(x, source, *weights, 3, visible=visible), total)


@pytest.mark.parametrize("key_heads", [1, 2, 6])
def test_sharing_is_as_in_llama(key_heads: int) -> None:
    from transformers.models.llama.modeling_llama import eager_attention_forward

    q, k, v = heads(2, 6, 4, 8), heads(2, key_heads, 4, 8), heads(2, key_heads, 4, 8)
    module: Any = SimpleNamespace(num_key_value_groups=6 // key_heads, training=False)
    hidden = torch.full((4, 4), -torch.inf, dtype=torch.float64).triu(1)
    expected, weights = eager_attention_forward(module, q, k, v, hidden[None, None], scaling=8**-0.5)
    assert weights.shape == (2, 6, 4, 4)
    received = grouped_query_attention.reference(q, k, v)
    torch.testing.assert_close(received, expected.transpose(1, 2), rtol=1e-5, atol=1e-6)  # its softmax is in float32


def test_step_by_step_equals_the_full_pass() -> None:
    q, k, v = (heads(1, 2, 7, 4) for _ in range(3))
    keys, values, rows = k[:, :, :0], v[:, :, :0], []
    for first, last in itertools.pairwise((0, 3, 4, 5, 7)):
        new = slice(first, last)
        out, keys, values = attend_with_cache.reference(q[:, :, new], k[:, :, new], v[:, :, new], keys, values)
        rows.append(out)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(torch.cat(rows, dim=2), expected)
    assert torch.equal(keys, k)
    assert torch.equal(values, v)


@pytest.mark.parametrize("window", [1, 2, 4, 9])
@pytest.mark.parametrize(("s", "t"), LENGTHS)
def test_the_window_is_that_of_transformers(s: int, t: int, window: int) -> None:
    from transformers.masking_utils import sliding_window_causal_mask_function

    rule = sliding_window_causal_mask_function(window)
    query, key = torch.arange(t - s, t)[:, None], torch.arange(t)
    assert torch.equal(sliding_window_mask.reference(s, t, window), rule(0, 0, query, key))


@pytest.mark.parametrize("stride", [1, 3, 4, 20])
def test_the_strided_mask_is_the_papers(stride: int) -> None:
    """Child et al., 2019, §4.2: A¹ = {t, …, i} with t = max(0, i − l), and A² = {j : (i − j) mod l = 0}."""
    mask = strided_mask.reference(13, stride)
    for i in range(13):
        near = set(range(max(0, i - stride), i + 1))
        far = {j for j in range(i + 1) if (i - j) % stride == 0}
        assert {j for j in range(13) if mask[i, j]} == near | far


def test_the_receptive_field_is_where_the_gradient_goes() -> None:
    def window(size: int) -> Tensor:
        return torch.ones(12, 12).tril().triu(1 - size).bool()

    holes = (torch.rand(12, 12) < 0.2).tril() | torch.eye(12).bool()
    masks = [window(2), holes, window(3)]
    x = heads(12, 4).requires_grad_()
    h = x
    for mask in masks:
        h = F.scaled_dot_product_attention(h[None], h[None], h[None], attn_mask=mask)[0]
    fields = []
    for token in range(12):
        (gradient,) = torch.autograd.grad(h[token].sum(), x, retain_graph=True)
        fields.append(int((gradient != 0).any(dim=-1).sum()))
    assert receptive_field.reference(masks).tolist() == fields


@pytest.mark.parametrize(("window", "layers"), [(3, 4), (4, 2), (2, 7)])
def test_windows_grow_as_the_notebook_says(window: int, layers: int) -> None:
    mask = sliding_window_mask.reference(40, 40, window)
    assert receptive_field.reference([mask] * layers)[-1] == layers * (window - 1) + 1


def test_flops_and_bytes_are_those_of_the_table() -> None:
    b, n, d, h = 3, 40, 64, 4
    flops, moved = attention_flops_bytes.reference(b, n, n, d, h, h, fused=False)
    assert flops == 8 * b * n * d**2 + 4 * b * n**2 * d
    assert moved == 2 * (4 * d**2 + 2 * b * n * d + 2 * b * n * d + 2 * b * h * n**2)


def test_a_long_text_with_a_score_matrix_tends_to_the_width_of_a_head() -> None:
    flops, moved = attention_flops_bytes.reference(1, 10**7, 10**7, 512, 8, 8, fused=False)
    assert flops / moved == pytest.approx(64, rel=1e-3)


def stub(*_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    raise NotImplementedError


@pytest.mark.parametrize(("update", "whose"), [(block_update.reference, "your"), (stub, "course's")])
@pytest.mark.parametrize("block", [1, 2, 7])
def test_block_after_block_gives_torchs_attention(update: Callable[..., Any], whose: str, block: int) -> None:
    scores, v, seen = heads(4, 7), heads(7, 3), torch.ones(4, 7).tril(3).bool()
    chosen, name = figures.block_update_or_ours(update)
    assert whose in name
    state = torch.full((4, 1), -torch.inf), torch.zeros(4, 1), torch.zeros(4, 3)
    state = tuple(part.double() for part in state)
    for columns in torch.arange(7).flip(0).split(block):  # the last keys first: for most queries these are hidden
        state = chosen(*state, scores.masked_fill(~seen, -torch.inf)[:, columns], v[columns])
    expected = F.scaled_dot_product_attention(scores, torch.eye(7).double(), v, seen, scale=1.0)
    torch.testing.assert_close(state[2] / state[1], expected)


def test_the_block_sizes_are_compared_with_torchs_attention(capsys: pytest.CaptureFixture[str]) -> None:
    def layer(q: Tensor, k: Tensor, v: Tensor, block: int, _: object) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True) + (block == 64)

    figures.compare_block_sizes(layer, stub)
    told = capsys.readouterr().out.splitlines()
    assert "course's" in told[0]
    assert [line.split()[-1] for line in told[1:]] == ["True", "False", "True"]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_there_are_at_least_four_wrong_answers(exercise: Exercise) -> None:
    assert len(exercise.misconceptions) >= 4


def wrong_axis_of_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(v, k, q, is_causal=True)


def normalised_without_exp(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.mT / q.shape[-1] ** 0.5).tril(k.shape[-2] - q.shape[-2])
    weights: Tensor = scores / scores.sum(dim=-1, keepdim=True)
    return weights @ v


def unmasked_first_head_only(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :1].expand(v.shape[0], q.shape[1], -1, -1)


@pytest.mark.parametrize("wrong", [wrong_axis_of_values, normalised_without_exp, unmasked_first_head_only])
def test_wrong_answers_that_nobody_listed_lose_points_too(wrong: Callable[..., Tensor]) -> None:
    report = check_exercise(causal_attention, wrong, hidden=True, enforce=False)
    assert report.points < causal_attention.points


def test_hidden_cases_have_more_than_one_precision() -> None:
    usual = {torch.float32, torch.float64, torch.bfloat16}
    for exercise, expected in ((attention_weights, {*usual, torch.float16}), (causal_attention, usual)):
        assert {case.args[0].dtype for case in exercise.hidden} == expected
