"""The references of notebook 10 against torch, Hugging Face's norms and blocks, and the package's own models."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.normalization_and_blocks import exercises
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import gpt_like
from lmcourse.nn.embedding import HeadConfig
from lmcourse.nn.norm import Norm, NormConfig


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_norms_are_those_of_the_package_in_every_dtype(dtype: torch.dtype) -> None:
    x = (3 * torch.randn(4, 5, 16) + 1).to(dtype)
    layer, rms = Norm(NormConfig("layer", bias=True), 16), Norm(NormConfig("rms", eps=1e-6), 16)
    for norm in (layer, rms):
        nn.init.normal_(norm.weight)  # type: ignore[arg-type]
    assert layer.weight is not None
    assert layer.bias is not None
    assert rms.weight is not None
    nn.init.normal_(layer.bias)
    torch.testing.assert_close(exercises.layer_norm.reference(x, layer.weight, layer.bias), layer(x))
    torch.testing.assert_close(exercises.rms_norm.reference(x, rms.weight), rms(x))


def test_the_notes_vector_and_that_twice_of_it_is_zero_in_careless_fp16() -> None:
    x, one = torch.tensor([100.0, 200.0, 100.0, 0.0]), torch.ones(4)
    found = exercises.layer_norm.reference(x, one, 0 * one), exercises.rms_norm.reference(x, one)
    assert [[round(n, 3) for n in y.tolist()] for y in found] == [[0.0, 1.414, 0.0, -1.414], [0.816, 1.633, 0.816, 0.0]]
    in_half = next(wrong for wrong in exercises.rms_norm.misconceptions if wrong.name == "in half")
    assert in_half.answer((2 * x).half(), one.half()).tolist() == [0.0] * 4


def test_casting_before_the_scale_as_hugging_face_does_it_is_right_too() -> None:
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    norm = LlamaRMSNorm(4, eps=1e-6)
    for case in exercises.rms_norm.cases:
        x, scale = case.args
        norm.weight, norm.variance_epsilon = nn.Parameter(scale), case.kwargs.get("eps", 1e-6)
        if x.dtype != torch.float64:  # theirs computes that in fp32
            expected = exercises.rms_norm.reference(x, scale, **case.kwargs)
            torch.testing.assert_close(norm(x).detach().to(x.dtype), expected)


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


def test_centred_writers_turn_a_gpt2_into_one_with_rms_norms_and_no_wrong_answer_does() -> None:
    text = torch.randint(20, (3, 8))
    expected = _gpt2(NormConfig("layer", bias=True))(text).detach()
    torch.testing.assert_close(_rms_logits(exercises.centre_writers.reference, text), expected, rtol=0, atol=1e-11)
    harmless = {"head centred", "readers centred", "readers left out", "in place"}
    for wrong in exercises.centre_writers.misconceptions:
        if wrong.name not in harmless:  # a reader may be centred as well, once the stream has mean 0
            assert not torch.allclose(_rms_logits(wrong.answer, text), expected, atol=1e-3), wrong.name


def test_a_folded_layer_behind_a_bare_norm_is_the_layer_behind_the_norm() -> None:
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


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_random_vectors_leave_as_much_of_the_embedding(placement: str) -> None:
    generator = torch.Generator().manual_seed(3)
    stream = embedding = F.normalize(torch.randn(200_000, generator=generator), dim=0)
    for _ in range(6):
        stream = stream + F.normalize(torch.randn(200_000, generator=generator), dim=0)
        stream = F.normalize(stream, dim=0) if placement == "post" else stream
    share = exercises.embedding_share.reference(3, placement)
    assert F.cosine_similarity(stream, embedding, dim=0).item() == pytest.approx(share, abs=0.012)
    assert share == pytest.approx({"pre": 7**-0.5, "post": 1 / 8}[placement])


def test_the_parallel_block_is_that_of_cohere() -> None:
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


@pytest.mark.parametrize(
    ("name", "kind", "placement", "count"),
    [
        ("gpt-3", "layer", "pre", 4_743_168),
        ("llama-3.1-405b", "rms", "pre", 4_145_152),
        ("gemma-2-9b", "rms", "double", 605_696),
        ("bert-base", "layer", "post", 24 * 1536),
    ],
)
def test_norm_parameters_are_those_of_published_models(name: str, kind: str, placement: str, count: int) -> None:
    config = find_model(name).decoder
    assert (config.block.norm.kind, config.block.placement) == (kind, placement)
    assert exercises.norm_parameters.reference(len(config.layers), config.d_model, kind, placement) == count


def test_the_gain_is_five_per_cent_more_steps_and_a_bit_less_than_that_in_time() -> None:
    gain = exercises.narang_gain.reference()
    assert gain == pytest.approx({"faster": 0.18 / 3.5, "time_saved": 0.18 / 3.68})
    assert math.isclose((1 + gain["faster"]) * (1 - gain["time_saved"]), 1)
