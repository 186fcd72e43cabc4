"""Notebook 10: references against independent sources, and what its figures show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.patches import FancyBboxPatch
from torch import Tensor, nn

from lmcourse import plots
from lmcourse.chapters.normalization_and_blocks import exercises, figures
from lmcourse.chapters.normalization_and_blocks.figures.stream import PLACEMENTS, norm_points
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like
from lmcourse.nn.block import BlockConfig, Placement, Residual
from lmcourse.nn.embedding import HeadConfig
from lmcourse.nn.norm import NormConfig
from tests.plots.figures import check_figure, said


def _gpt2(norm: NormConfig) -> Transformer:
    model = Transformer(gpt_like(2, 16, 2, vocab_size=20, context=8, norm=norm, head=HeadConfig(tied=False))).double()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        nn.init.normal_(parameter, mean=0.2, std=0.5, generator=generator)
    return model


KINDS = {"qkv": "attention.layer.qkv", "out": "attention.layer.out", "up": "feed_forward.layer.up"}
KINDS |= {"down": "feed_forward.layer.down"}


def _names(blocks: int) -> dict[str, str]:
    names = {"embedding": "embedding.tokens.weight", "positions": "embedding.positions.weight"}
    for index in range(blocks):
        for kind, layer in KINDS.items():
            names[f"{kind}.{index}"] = f"blocks.{index}.{layer}.weight"
            names[f"{kind}_bias.{index}"] = f"blocks.{index}.{layer}.bias"
    return names | {"head": "head.linear.weight"}


def _rms_logits(change: Callable[[dict[str, Tensor]], dict[str, Tensor]], text: Tensor) -> Tensor:
    tensors = _gpt2(NormConfig("layer", bias=True)).state_dict()
    names = _names(2)
    changed = change({ours: tensors[theirs].clone() for ours, theirs in names.items()})
    model = _gpt2(NormConfig("rms", bias=True))
    model.load_state_dict(tensors | {names[ours]: tensor for ours, tensor in changed.items()})
    result: Tensor = model(text).detach()
    return result


def test_only_centred_writers_turn_a_gpt2_into_one_with_rms_norms() -> None:
    text = torch.randint(20, (3, 8))
    expected = _gpt2(NormConfig("layer", bias=True))(text).detach()
    torch.testing.assert_close(_rms_logits(exercises.centre_writers.reference, text), expected, rtol=0, atol=1e-11)
    in_place = "You change the weights that you were given."
    harmless = ("You change the head", "You change qkv", "You centre everything", "You return only", "From block 10")
    for wrong in exercises.centre_writers.misconceptions:
        # a matrix that reads the stream may be centred as well, once the stream has mean 0
        if not wrong.sentence.startswith((*harmless, in_place)):
            assert not torch.allclose(_rms_logits(wrong.answer, text), expected, atol=1e-3), wrong.name


def test_a_scale_folded_into_the_next_layer_gives_the_same_output() -> None:
    norm, layer, x = nn.LayerNorm(6).double(), nn.Linear(6, 4).double(), torch.randn(3, 6).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    folded = exercises.fold_norm.reference(norm.weight, norm.bias, layer.weight, layer.bias)
    torch.testing.assert_close(F.linear(F.layer_norm(x, (6,)), *folded), layer(norm(x)))


def test_contributions_add_up_to_the_logit() -> None:
    parts, scale, row = torch.randn(7, 5).double(), torch.randn(5).double(), torch.randn(5).double()
    logit = F.rms_norm(parts.sum(0), (5,), scale, 1e-6) @ row
    torch.testing.assert_close(exercises.contributions.reference(parts, scale, row).sum(), logit)
    two = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    found = exercises.contributions.reference(two, torch.ones(2), torch.ones(2))
    assert [round(n, 4) for n in found.tolist()] == [0.8485, 1.1314]


@pytest.mark.prove
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_match_torch_and_hugging_faces_llama(dtype: torch.dtype) -> None:
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    x, scale, shift = (3 * torch.randn(4, 5, 16) + 1).to(dtype), torch.randn(16), torch.randn(16)
    expected = F.layer_norm(x.double(), (16,), scale.double(), shift.double(), 1e-5).to(dtype)
    found = exercises.layer_norm.reference(x, scale.to(dtype), shift.to(dtype))
    torch.testing.assert_close(found, expected, rtol=2e-2 if dtype != torch.float64 else 1e-6, atol=2e-2)
    norm = LlamaRMSNorm(16, eps=1e-6)
    norm.weight = nn.Parameter(scale)
    torch.testing.assert_close(exercises.rms_norm.reference(x.float(), scale), norm(x.float()).detach())


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_embedding_share_matches_random_vectors(placement: str) -> None:
    generator = torch.Generator().manual_seed(3)
    stream = embedding = F.normalize(torch.randn(200_000, generator=generator), dim=0)
    for _ in range(6):
        stream = stream + F.normalize(torch.randn(200_000, generator=generator), dim=0)
        stream = F.normalize(stream, dim=0) if placement == "post" else stream
    share = exercises.embedding_share.reference(3, placement, 1.0)
    assert F.cosine_similarity(stream, embedding, dim=0).item() == pytest.approx(share, abs=0.012)
    assert share == pytest.approx({"pre": 7**-0.5, "post": 1 / 8}[placement])


@pytest.mark.prove
def test_the_parallel_block_matches_cohere() -> None:
    from transformers import CohereConfig
    from transformers.models.cohere.modeling_cohere import CohereDecoderLayer

    config = CohereConfig(hidden_size=8, num_attention_heads=2, num_key_value_heads=2, intermediate_size=16)
    theirs = CohereDecoderLayer(config, 0)
    x = torch.randn(1, 3, 8)
    cos_sin = torch.ones(1, 3, 4), torch.zeros(1, 3, 4)

    def attention(normed: Tensor) -> Tensor:
        result: Tensor = theirs.self_attn(normed, position_embeddings=cos_sin, attention_mask=None)[0]
        return result

    expected = theirs(x, position_embeddings=cos_sin, attention_mask=None)
    expected = expected if isinstance(expected, Tensor) else expected[0]
    found = exercises.block.reference(x, attention, theirs.mlp, theirs.input_layernorm, None, True)
    torch.testing.assert_close(found, expected)


def _with_pullback(layer: Callable[[Tensor], Tensor]) -> Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]:
    def call(h: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        with torch.enable_grad():  # the reference calls it inside an autograd function, where gradients are off
            h = h.detach().requires_grad_()
            value = layer(h)
        return value.detach(), lambda g: torch.autograd.grad(value, h, g)[0]

    return call


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_two_ways_back_add_up_to_the_gradient_of_the_package(placement: Placement) -> None:
    branch = Residual(nn.Sequential(nn.Linear(6, 6), nn.Tanh()), BlockConfig(NormConfig(), placement), 6).double()
    x, dy = torch.randn(2, 3, 6).double().requires_grad_(), torch.randn(2, 3, 6).double()
    (expected,) = torch.autograd.grad(branch(x), x, dy)
    norm = branch.post_norm if placement == "post" else branch.output_norm
    functions = [_with_pullback(each) for each in (branch.layer, branch.input_norm, norm)]
    straight, through = exercises.ways_back.reference(x.detach(), dy, *functions, placement)
    torch.testing.assert_close(straight + through, expected)
    assert torch.equal(straight, dy) == (placement != "post")


PROFILES = {p: {n: np.geomspace(9, 1, n).tolist() for n in (2, 6, 12, 24, 48)} for p in PLACEMENTS}
JITTER = {p: {2: 0.02, 8: 0.1 * rank, 32: 0.4 * rank} for rank, p in enumerate(PLACEMENTS, 1)}
RUNS = {2: {"pre": [[4.0] * 20, [3.0] * 20], "post": [[2.0] * 20]}, 16: {"pre": [[2.5] * 20], "post": [[3.1] * 20]}}


def test_points_land_where_torchs_norms_put_them() -> None:
    for kind, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        before, after = (torch.as_tensor(points) for points in norm_points(kind, 0.5))
        torch.testing.assert_close(after, norm(before, (2,), eps=0.5))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_norms_are_drawn_where_the_formulas_have_them(placement: str) -> None:
    seen: list[str] = []

    def listen(name: str) -> Callable[[float], float]:
        return lambda x: [x, seen.append(name)][0]  # type: ignore[func-returns-value, return-value]

    def branch(x: torch.Tensor) -> torch.Tensor:
        seen.append("f")
        return x

    {
        "pre": lambda x: x + branch(listen("before")(x)),
        "post": lambda x: listen("after")(x + branch(x)),
        "double": lambda x: x + listen("after")(branch(listen("before")(x))),
        "output": lambda x: x + listen("after")(branch(x)),
    }[placement](torch.ones(1))
    figure = figures.block_wiring(placement)
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]
    heights = [box.get_bbox().y0 + 0.32 for box in boxes]
    in_stream = sum(abs(height) < 0.1 for height in heights)
    assert len(boxes) == 2 * len(seen), "two branches, each with its layer and norms"
    assert in_stream == (2 if placement == "post" else 0)
    assert f"{2 * (len(seen) - 1)} norms" in plots.alt_text(figure)


def test_alt_texts_of_measurements_are_computed_from_them() -> None:
    scale = said(figures.gradient_by_scale([0.1, 10.0], {"a": [10.0, 0.1], "b": [0.1, 10.0]}))
    assert "a: slope -1.0; b: slope +1.0" in scale
    assert "pre, 48 blocks: first about 10^1, last about 10^0" in said(figures.gradient_by_block(PROFILES))
    assert "output 2% at 2 and 160% at 32 blocks" in said(figures.weight_jitter(JITTER, 0.01))
    assert "2 blocks, pre: 3.5; 2 blocks, post: 2.0; 16 blocks" in said(figures.depth_runs(RUNS, 3.0))
    by_step = said(figures.gradients_by_step({"pre": [[1.0, 0.1]], "post, warm-up of 30 steps": [[9.0, 1e-4]] * 2}))
    assert "pre: about 10^0 at first, about 10^-1 in the end; post, warm-up of 30 steps: about 10^1" in by_step
    check_figure(figures.norm_placement_grid())
    bars = check_figure(figures.contribution_bars({"a": 1.0, "b": -0.25}, "x"))
    assert [bar.get_width() for bar in bars.axes[0].patches] == [1.0, -0.25, 0.75]  # type: ignore[attr-defined]


def test_norm_parameters_match_published_models() -> None:
    for size, count in (((96, 12_288, "layer", "pre"), 4_743_168), ((126, 16_384, "rms", "pre"), 4_145_152)):
        assert exercises.norm_parameters.reference(*size) == count
    assert exercises.norm_parameters.reference(42, 3584, "rms", "double") == 605_696
