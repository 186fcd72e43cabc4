"""Notebook 10: references against independent sources, and what its figures show."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.normalization_and_blocks import exercises
from lmcourse.chapters.normalization_and_blocks import rescued as task
from lmcourse.chapters.normalization_and_blocks.figures.stream import PLACEMENTS, norm_points
from lmcourse.chapters.normalization_and_blocks.gpt2 import small_gpt2, table_weights
from lmcourse.chapters.normalization_and_blocks.gradients import split_gradients, with_pullback
from lmcourse.chapters.normalization_and_blocks.rescued import (
    KNOWN_RUNS,
    Rescue,
    inspect_rescue,
    measure_rescue,
    rescued,
)
from lmcourse.chapters.normalization_and_blocks.runs import branch_and_share, story_bytes, tiny_llama, train
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.nn.block import BlockConfig, Placement, Residual
from lmcourse.nn.norm import NormConfig


def _rms_logits(change: Callable[[dict[str, Tensor]], dict[str, Tensor]], text: Tensor) -> Tensor:
    weights = {name: weight.clone() for name, weight in table_weights(_gpt2()).items()}
    result: Tensor = small_gpt2(lambda x, scale, shift, eps: F.rms_norm(x, (32,), scale, eps) + shift, change(weights))(
        text
    )
    return result.detach()


def _gpt2() -> Transformer:
    return small_gpt2(lambda x, scale, shift, eps: F.layer_norm(x, (32,), scale, shift, eps))


def test_only_centred_writers_turn_a_gpt2_into_one_with_rms_norms() -> None:
    text = torch.randint(50, (3, 8))
    expected = _gpt2()(text).detach()
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


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_two_ways_back_add_up_to_the_gradient_of_the_package(placement: Placement) -> None:
    branch = Residual(nn.Sequential(nn.Linear(6, 6), nn.Tanh()), BlockConfig(NormConfig(), placement), 6).double()
    x, dy = torch.randn(2, 3, 6).double().requires_grad_(), torch.randn(2, 3, 6).double()
    (expected,) = torch.autograd.grad(branch(x), x, dy)
    norm = branch.post_norm if placement == "post" else branch.output_norm
    functions = [with_pullback(each) for each in (branch.layer, branch.input_norm, norm)]
    straight, through = exercises.ways_back.reference(x.detach(), dy, *functions, placement)
    torch.testing.assert_close(straight + through, expected)
    assert torch.equal(straight, dy) == (placement != "post")


def test_split_gradients_multiply_to_the_gradient_of_the_stream() -> None:
    model, tokens = tiny_llama(3, "post", 0, factor=0.5), story_bytes()[:66].view(2, 33)
    streams: list[Tensor] = []
    for module in model.modules():
        if isinstance(module, Residual):
            module.register_forward_hook(lambda module, inputs, y: streams.append(y))
    loss = next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])
    first, last = torch.autograd.grad(loss, (streams[1], streams[-1]))
    split = split_gradients(exercises.ways_back.reference, tiny_llama(3, "post", 0, factor=0.5), tokens)
    assert split.parts.shape == (4, 3)
    assert split.both == pytest.approx((first.norm() / last.norm()).item(), rel=1e-4)
    attention = split.parts[::2].prod(dim=0).sqrt()
    assert split.means[:3] == pytest.approx(attention.tolist(), rel=1e-5)


def test_embedding_share_predicts_an_untrained_post_norm_model() -> None:
    for factor, length, share in ((0.21, 0.11, 0.81), (0.42, 0.24, 0.45)):
        ratio, cosine = branch_and_share(tiny_llama(16, "post", 0, factor))
        assert (round(ratio, 2), round(cosine, 2)) == (length, share)
        assert exercises.embedding_share.reference(16, "post", ratio) == pytest.approx(cosine, abs=0.06)


@pytest.mark.parametrize("placement", ["pre", "double", "output"])
def test_branches_outside_post_norm_are_measured_beside_the_embedding(placement: Placement) -> None:
    model = tiny_llama(16, placement, 0)
    ratio, cosine = branch_and_share(model)
    assert exercises.embedding_share.reference(16, placement, ratio) == pytest.approx(cosine, abs=0.04)
    if placement != "pre":  # a norm gives each feature a size of about 1
        assert ratio == pytest.approx(1 / model.embedding.tokens.weight.square().mean().sqrt().item(), rel=0.15)


def test_stored_runs_are_those_of_such_models() -> None:
    for known in KNOWN_RUNS[:-2]:
        model = tiny_llama(known.blocks, "post", 0, float(known.name.removeprefix("branch times ")))
        assert branch_and_share(model)[1] == pytest.approx(known.share, abs=0.015)
    assert train(tiny_llama(16, "post", 0, 0.1), 0).end == pytest.approx(KNOWN_RUNS[6].loss, abs=0.02)


def test_a_model_with_its_own_stream_is_post_norm() -> None:
    texts = story_bytes()[:64].view(2, 32)
    expected = tiny_llama(2, "post", 3, factor=0.5)(texts)
    torch.testing.assert_close(rescued(_rule(lambda x, f, norm, branch: norm(x + 0.5 * f(x))), 2, 3)(texts), expected)


def _rule(stream: Callable[..., Tensor], change: Callable[[Transformer], object] = lambda model: None) -> Rescue:
    return lambda model: [stream, change(model)][0]  # type: ignore[return-value]


def _honest(x: Tensor, f: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor], branch: int) -> Tensor:
    return norm(x + 0.3 * f(x))


def _learns(model: Transformer, last_scale: float = 1.0) -> None:
    with torch.enable_grad():
        train(model, 0, steps=40)
    model.blocks[-1].feed_forward.post_norm.weight *= last_scale


def _in_place(x: Tensor, f: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor], branch: int) -> Tensor:
    return norm(x).data.copy_(x + f(x))


TRICKS: dict[str, tuple[Rescue, str]] = {
    "trains": (_rule(_honest, _learns), task.TRAINED),
    "trains, and hides it": (_rule(_honest, lambda model: _learns(model, 0.01)), task.TRAINED),
    "changes the norm's result in place": (_rule(_in_place), task.AFTER),
    "listens": (_rule(_honest, lambda model: model.blocks[0].register_forward_hook(print)), task.CHANGED),
    "takes another forward": (_rule(_honest, lambda model: setattr(model.blocks[1], "forward", print)), task.CHANGED),
    "has wider layers": (
        _rule(_honest, lambda m: setattr(m.head.linear, "weight", nn.Parameter(torch.ones(9, 32)))),
        task.SHAPES,
    ),
    "learns more": (
        _rule(_honest, lambda m: m.register_parameter("more", nn.Parameter(torch.ones(9, 999)))),
        task.LARGE,
    ),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_inspection_names_a_trick(trick: str) -> None:
    rescue, sentence = TRICKS[trick]
    with pytest.raises(Unfit, match=re.escape(sentence)):
        inspect_rescue(rescue)


def test_a_rescue_may_register_a_list_of_parameters() -> None:
    def register(model: Transformer) -> Callable[..., Tensor]:
        model.factors = nn.ParameterList([torch.ones(1) for _ in range(2 * len(model.blocks))])
        return lambda x, f, norm, branch: norm(x + model.factors[branch] * f(x))  # type: ignore[index]

    assert len(list(rescued(register, 2).parameters())) == len(list(tiny_llama(2, "post", 0).parameters())) + 4
    inspect_rescue(register)


CALLS = 2 * 4 * 60
"""The calls of a stream while a model of four blocks is trained."""


def _while_training(stream: Callable[..., Tensor]) -> Rescue:
    """Use a stream during training, and an honest one before and after it."""

    def rescue(model: Transformer) -> Callable[..., Tensor]:
        calls = iter(range(10**6))
        return lambda *given: (stream if 8 <= next(calls) < CALLS + 8 else _honest)(*given)

    return rescue


def _with_memory() -> Callable[..., Tensor]:
    sums: dict[int, Tensor] = {}

    def stream(x: Tensor, f: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor], branch: int) -> Tensor:
        sums[branch] = (sums[branch - 1] if branch else x) + f(x)
        return norm(sums[branch])

    return stream


def _kill(model: Transformer) -> None:
    for block in model.blocks[1:]:
        for layer in (block.attention.layer, block.feed_forward.layer):
            for weight in layer.parameters():
                weight.zero_()


def _opens(model: Transformer) -> Callable[..., Tensor]:
    def stream(x: Tensor, f: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor], branch: int) -> Tensor:
        if torch.is_grad_enabled():
            model.blocks[0].attention.post_norm.eps = 100.0
        return _honest(x, f, norm, branch)

    return stream


LATE_TRICKS: dict[str, tuple[Rescue, str]] = {
    "reads the future": (_while_training(lambda x, f, norm, branch: norm(x + f(x) + x.roll(-1, 1))), task.NOT_ALONE),
    "remembers": (_while_training(_with_memory()), task.NOT_ALONE),
    "fades out": (_rule(lambda x, f, norm, branch: norm(x + 1e-4 ** (branch > 1) * f(x))), task.DEAD),
    "has dead blocks": (_rule(_honest, _kill), task.DEAD),
    "opens a norm": (_opens, task.CHANGED),
}


@pytest.mark.parametrize("trick", LATE_TRICKS)
def test_measurement_names_a_trick_that_passes_the_inspection(trick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "DEPTHS", (4, 4))
    rescue, sentence = LATE_TRICKS[trick]
    with pytest.raises(Unfit, match=re.escape(sentence)):
        measure_rescue(rescue, 0)


def test_measurement_is_the_end_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "DEPTHS", (2, 3))
    rescue = _rule(_honest)
    expected = {f"{blocks} blocks": train(tiny_llama(blocks, "post", 1, 0.3), 1).end for blocks in (2, 3)}
    assert measure_rescue(rescue, 1) == pytest.approx(expected, abs=1e-3)


def test_points_land_where_torchs_norms_put_them() -> None:
    for kind, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        before, after = (torch.as_tensor(points) for points in norm_points(kind, 0.5))
        torch.testing.assert_close(after, norm(before, (2,), eps=0.5))
