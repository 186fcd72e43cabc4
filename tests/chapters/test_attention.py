"""Notebook 08: references against independent sources, and what its figures show."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from lmcourse import plots
from lmcourse.chapters.attention import figures
from lmcourse.chapters.attention.exercises import (
    absorbed_scores,
    attend_with_cache,
    attention_weights,
    block_update,
    causal_attention,
    causal_mask,
    flash_backward,
    grouped_query_attention,
    head_effect,
    multi_head,
    receptive_field,
    sliding_window_mask,
)
from lmcourse.chapters.attention.figures.costs import saved_bytes
from lmcourse.chapters.attention.figures.heads import TEXTS, scores, shares_by_distance, weights_on
from lmcourse.chapters.attention.figures.look import PRESETS
from lmcourse.chapters.attention.figures.masks import mask_matrix
from lmcourse.chapters.attention.induction import (
    CopyingRun,
    learn_to_copy,
    looks,
    maps,
    repeating_texts,
    softmax_weights,
)
from lmcourse.chapters.attention.one_layer import measure_copying
from lmcourse.chapters.attention.patching import copying_loss, corrupted_texts, misled
from lmcourse.chapters.attention.replace_attention import SLIPS, in_the_model, print_slips, with_attention
from lmcourse.pretrained import load_pretrained
from lmcourse.training.copying import AttentionOnly, triangle
from tests.plots.figures import check_figure

LENGTHS = [(1, 5), (4, 4), (3, 7)]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(8)


def heads(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_weights_match_multihead_attention() -> None:
    layer = nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    x, source = heads(2, 4, 12), heads(2, 5, 12)
    _, expected = layer(x, source, source, average_attn_weights=False)
    w_q, w_k, _ = layer.in_proj_weight.chunk(3)
    q, k = ((y @ w.T).unflatten(-1, (3, 4)).transpose(1, 2) for y, w in ((x, w_q), (source, w_k)))
    torch.testing.assert_close(attention_weights.reference(q, k), expected)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
def test_causal_mask_and_attention_match_torchs_with_the_lower_right_bias(s: int, t: int) -> None:
    from torch.nn.attention.bias import causal_lower_right  # this imports PyTorch's compiler

    units = torch.eye(t, dtype=torch.float64)[None, None]
    seen = F.scaled_dot_product_attention(
        torch.zeros(1, 1, s, t, dtype=torch.float64), units, units, attn_mask=causal_lower_right(s, t)
    )
    assert torch.equal(causal_mask.reference(s, t), seen[0, 0] > 0)
    q, k, v = heads(2, 3, s, 8), heads(2, 3, t, 8), heads(2, 3, t, 5)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(s, t))
    torch.testing.assert_close(causal_attention.reference(q, k, v), expected)


@pytest.mark.prove
def test_shared_key_heads_match_llama() -> None:
    from transformers.models.llama.modeling_llama import eager_attention_forward

    key_heads = 2
    q, k, v = heads(2, 6, 4, 8), heads(2, key_heads, 4, 8), heads(2, key_heads, 4, 8)
    module: Any = SimpleNamespace(num_key_value_groups=6 // key_heads, training=False)
    hidden = torch.full((4, 4), -torch.inf, dtype=torch.float64).triu(1)
    expected, weights = eager_attention_forward(module, q, k, v, hidden[None, None], scaling=8**-0.5)
    assert weights.shape == (2, 6, 4, 4)
    received = grouped_query_attention.reference(q, k, v)
    # transformers computes the softmax in float32
    torch.testing.assert_close(received, expected.transpose(1, 2), rtol=1e-5, atol=1e-6)


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


@pytest.mark.prove
@pytest.mark.parametrize(("s", "t"), LENGTHS)
def test_the_window_matches_transformers(s: int, t: int) -> None:
    from transformers.masking_utils import sliding_window_causal_mask_function

    window = 3
    rule = sliding_window_causal_mask_function(window)
    query, key = torch.arange(t - s, t)[:, None], torch.arange(t)
    assert torch.equal(sliding_window_mask.reference(s, t, window), rule(0, 0, query, key))


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


def test_attention_by_blocks_matches_torchs() -> None:
    block = 2
    scores, v, seen = heads(4, 7), heads(7, 3), torch.ones(4, 7).tril(3).bool()
    state = torch.full((4, 1), -torch.inf), torch.zeros(4, 1), torch.zeros(4, 3)
    state = tuple(part.double() for part in state)
    for columns in torch.arange(7).flip(0).split(block):  # the last keys first, which are hidden from most queries
        state = block_update.reference(*state, scores.masked_fill(~seen, -torch.inf)[:, columns], v[columns])
    expected = F.scaled_dot_product_attention(scores, torch.eye(7).double(), v, seen, scale=1.0)
    torch.testing.assert_close(state[2] / state[1], expected)


@pytest.mark.parametrize(("block", "length"), [(1, 6), (7, 50), (64, 40)])
def test_backward_by_blocks_matches_autograd_on_all_keys(block: int, length: int) -> None:
    q, k, v, d_out = heads(length, 8), heads(length, 8), heads(length, 5), heads(length, 5)
    inputs = [each.requires_grad_() for each in (q, k, v)]
    scores = (q @ k.T / 8**0.5).masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
    out = scores.softmax(dim=-1) @ v
    expected = torch.autograd.grad(out, inputs, d_out)
    state = out.detach(), scores.logsumexp(dim=-1, keepdim=True).detach()
    answers = [flash_backward.reference, *(variant.answer for variant in flash_backward.variants)]
    for answer in answers:
        torch.testing.assert_close(answer(*(each.detach() for each in inputs), *state, d_out, block), expected)


def test_scores_from_latents_match_keys() -> None:
    q, latent, w_uk = heads(3, 2, 8), heads(6, 5), heads(3, 8, 5)
    keys = torch.einsum("tc,hdc->htd", latent, w_uk)
    torch.testing.assert_close(absorbed_scores.reference(q, latent, w_uk), q @ keys.mT)


def test_an_answer_replaces_attention_only_during_the_comparison() -> None:
    model, tokens = load_pretrained().model, torch.arange(20)[None]
    with torch.no_grad():
        before = model(tokens)
        with with_attention(model, multi_head.reference):
            torch.testing.assert_close(model(tokens), before, rtol=0, atol=1e-4)
        with with_attention(model, multi_head.reference, triangle):
            torch.testing.assert_close(model(tokens), before, rtol=0, atol=1e-4)
        with with_attention(model, multi_head.reference, lambda s, t: triangle(s, t).T):
            assert (model(tokens) - before).abs().max() > 1
        with with_attention(model, lambda x, *_, **__: x):
            assert (model(tokens) - before).abs().max() > 1
        assert torch.equal(model(tokens), before)
    assert in_the_model(multi_head.reference)["logits"] == "equal to the model's"


def test_slips_raise_no_error_but_change_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    print_slips(2)
    rows = capsys.readouterr().out.splitlines()[1:]
    losses = {name: float(row[len(name) :].split()[1]) for name, row in zip(SLIPS, rows, strict=True)}
    right = losses.pop("the right heads")
    assert min(losses.values()) == losses["no mask"]
    assert right + 0.4 < losses["no mask"] < 3
    assert all(3.5 < loss < 5.5 for name, loss in losses.items() if name != "no mask")


def test_the_playground_computes_torchs_attention() -> None:
    hand = PRESETS["he finds Tom"]
    q, k, v = (torch.tensor(part, dtype=torch.float64) for part in (hand.queries, hand.keys, hand.values))
    units = torch.eye(6, dtype=torch.float64)
    expected = F.scaled_dot_product_attention(q[None], k[None], units[None])[0]
    np.testing.assert_allclose(hand.weights(), expected)
    figure = figures.attention_playground(hand, 2)
    (star,) = [line for line in figure.axes[2].lines if line.get_marker() == "*"]
    np.testing.assert_allclose(star.get_xydata()[0], (expected @ v)[2], atol=1e-12)


def test_the_previous_token_head_is_the_one_the_notebook_names() -> None:
    """Head 3 of layer 3 attends far more to the previous token than other heads, on held-out text and on every text
    of the figure. The other claims of section 5 hold, too."""
    found = scores("the previous token")
    first, second = np.sort(found.ravel())[[-1, -2]]
    assert np.unravel_index(found.argmax(), found.shape) == (3, 3)
    assert first > 0.5
    assert second < first - 0.1
    for text in TEXTS:
        shares = shares_by_distance(weights_on(text)[1][3, 3])
        assert np.argmax(shares) == 1
        assert sum(shares[1:3]) > 0.7
    for pattern in ("the first token", "the token after an earlier copy"):
        assert scores(pattern).max() < 0.1


def test_maps_are_the_weights_of_the_first_layer() -> None:
    torch.manual_seed(0)
    values: list[Tensor] = []

    def attention(x: Tensor, source: Tensor, w_q: Tensor, w_k: Tensor, *rest: Tensor, **options: Any) -> Tensor:
        units = torch.eye(x.shape[-1])
        values.append(multi_head.reference(x, source, w_q, w_k, units, units, 2, **options))
        values.append(x)
        return multi_head.reference(x, source, w_q, w_k, *rest, 2, **options)

    model = AttentionOnly(lambda *tensors, **options: attention(*tensors[:-1], **options), 1)
    tokens, _ = repeating_texts(3, torch.Generator().manual_seed(0))
    (weights,) = maps(model, tokens)
    mixed, x = values
    expected = (weights @ x.unflatten(-1, (2, -1)).transpose(1, 2)).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(mixed, expected)


@pytest.fixture(scope="module")
def copier() -> CopyingRun:
    return learn_to_copy(multi_head.reference, 2, weights=softmax_weights)


def test_two_layers_learn_to_copy_and_one_does_not(copier: CopyingRun) -> None:
    one = learn_to_copy(multi_head.reference, 1)
    assert copier.end < 0.8 < 2 < one.end
    figure = figures.copying_runs({"one layer": one, "two layers": copier})
    check_figure(figure)
    assert "two layers" in plots.alt_text(figure)
    with pytest.raises(ValueError, match="at least two layers"):
        figures.copying_runs({"one layer": one})


def test_heads_look_back_when_the_loss_falls(copier: CopyingRun) -> None:
    start = copier.first_below(2)
    assert copier.losses[start] < 2 <= min(copier.losses[:start])
    for step, (first, second) in copier.looks.items():
        if abs(step - start) > 10:
            assert (max(back for back, _ in first) > 0.3) == (step > start)
            assert (min(after for _, after in second) > 0.4) == (step > start)


def test_only_one_head_that_looks_back_is_needed(copier: CopyingRun) -> None:
    texts = corrupted_texts()
    loss = copying_loss(copier.model, texts)
    (idle, _), (busy, _) = looks(copier.model)[0]
    effects = [head_effect.reference(loss, texts.clean, texts.corrupted, 0, head) for head in (0, 1)]
    assert min(idle, busy) > 0.25
    assert abs(effects[0][1]) < 0.1 < 0.6 < effects[1][1]
    assert effects[1][0] < 0


def test_a_look_back_taken_from_a_makes_b_copy_its_own_token(copier: CopyingRun) -> None:
    texts = corrupted_texts()
    assert misled(copier.model, texts) < 0.15 < 0.6 < misled(copier.model, texts, patched=(0, 1))


def test_a_layer_gains_nothing_by_a_leak_that_only_training_sees() -> None:
    def leaks(x: Tensor, *rest: Any, **options: Any) -> Tensor:
        return multi_head.reference(x, *rest, **options) + torch.is_grad_enabled() * F.pad(x, (0, 0, 0, 1))[:, 1:]

    assert learn_to_copy(leaks, 1).end < 0.5
    assert measure_copying(leaks, [0])["mean"] > 3


@pytest.mark.prove
def test_the_zoo_matches_transformers_where_it_has_one() -> None:
    from transformers.masking_utils import sliding_window_causal_mask_function

    place = torch.arange(15)
    window = sliding_window_causal_mask_function(4)(0, 0, place[:, None], place)
    assert np.array_equal(mask_matrix("window", 15, 4), window.numpy())
    assert np.array_equal(mask_matrix("causal", 15, 4), np.tri(15, dtype=bool))
    assert mask_matrix("everything", 15, 4).all()
    assert np.flatnonzero(mask_matrix("chunk", 15, 4)[9]).tolist() == [8, 9]
    assert np.flatnonzero(mask_matrix("prefix", 15, 4)[1]).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(mask_matrix("fixed", 15, 4)[9]).tolist() == [3, 7, 8, 9]
    assert np.flatnonzero(mask_matrix("strided", 15, 4)[9]).tolist() == [1, 5, 6, 7, 8, 9]


def test_the_mask_figure_draws_and_counts_the_mask() -> None:
    kind = "prefix"
    figure = figures.mask_zoo(kind, size=3, query=5)
    grid, bars = figure.axes
    shown = np.asarray(grid.images[0].get_array())
    assert np.array_equal(shown, mask_matrix(kind, 20, 3))
    widths = [bar.get_width() for bar in bars.patches if isinstance(bar, Rectangle)]
    assert widths == shown.sum(axis=1).tolist()
    assert f"{int(shown.sum())} of 400 pairs" in grid.get_title(loc="left")


def measured_saved_bytes(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> int:
    """Bytes that autograd keeps for attention over 256 tokens with 4 heads of 128, each storage counted once."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.numel() > 1:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    q, k, v = (torch.randn(1, 4, 256, 128, dtype=torch.bfloat16).requires_grad_() for _ in range(3))
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        out = attend(q, k, v)
    assert out.requires_grad
    return sum(kept.values())


def test_bytes_kept_for_backward_match_autograd() -> None:
    def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ((q @ k.mT) * 128**-0.5).softmax(dim=-1) @ v

    assert measured_saved_bytes(written_out) == saved_bytes(256, 4, fused=False)
    assert measured_saved_bytes(F.scaled_dot_product_attention) == saved_bytes(256, 4, fused=True)


@pytest.mark.prove
def test_the_cache_matches_the_published_configuration() -> None:
    from transformers import LlamaConfig

    llama = LlamaConfig(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)
    per_token = 2 * 2 * llama.num_hidden_layers * llama.num_key_value_heads * 4096 // llama.num_attention_heads
    alt = plots.alt_text(figures.shared_keys(8, 1024, 2))
    assert f"{per_token} bytes a token" in alt
    assert f"2 texts of 1024 tokens {2 * 1024 * per_token / 2**30:.4g} GiB" in alt
    lines = {line.get_label(): line for line in figures.cache_against_context().axes[0].lines}
    sizes = dict(zip(*lines["GQA, window 4,096 in 3 of 4 layers"].get_data(), strict=True))
    assert sizes[2**17] * 2**30 == per_token * (0.25 * 2**17 + 0.75 * 4096)
