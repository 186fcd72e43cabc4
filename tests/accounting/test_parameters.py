"""Compare computed parameter counts with the tensors of real models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from lmcourse.accounting.parameters import count_parameters, matmul_parameters
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models, find_model
from lmcourse.models.zoo.entry import Entry
from lmcourse.nn.attention import Attention
from tests.accounting.random_models import encoder_decoders, transformers

PLACES = {
    "embedding.tokens": "embedding",
    "embedding.project": "embedding projection",
    "embedding.positions": "positions",
    "position_bias.table": "position bias",
    "attention.out": "attention out",
    "attention.relative_position_vectors": "relative positions",
    "cross.q": "cross-attention q",
    "cross.out": "cross-attention out",
    "feed_forward.up": "feed-forward",
    "feed_forward.gate_up": "feed-forward",
    "feed_forward.down": "feed-forward",
    "head.project": "head projection",
    "head.linear": "head",
}
"""Places of parameters in the model's modules, with their parts. All other parameters are norms."""


def build(config: TransformerConfig | EncoderDecoderConfig) -> nn.Module:
    with torch.device("meta"):
        return EncoderDecoder(config) if isinstance(config, EncoderDecoderConfig) else Transformer(config)


def parts_of(model: nn.Module) -> Iterator[tuple[str, int]]:
    """Count every parameter once, by part. q, k and v share a matrix, and so do k and v of cross-attention."""
    for name, parameter in model.named_parameters():
        path = [step for step in name.split(".") if not step.isdecimal() and step not in ("encoder", "blocks", "layer")]
        module = model.get_submodule(name.rpartition(".")[0].rpartition(".")[0])
        place, size = ".".join(path[:2]), parameter.numel()
        if place == "attention.qkv":
            assert isinstance(module, Attention)
            heads = module.heads + 2 * module.kv_heads
            yield "attention q", size * module.heads // heads
            yield "attention k", size * module.kv_heads // heads
            yield "attention v", size * module.kv_heads // heads
        elif place == "cross.kv":
            yield "cross-attention k", size // 2
            yield "cross-attention v", size // 2
        else:
            yield PLACES.get(place, "norms"), size


def added_up(model: nn.Module) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for part, size in parts_of(model):
        sizes[part] += size
    return dict(sizes)


def predicted(config: TransformerConfig | EncoderDecoderConfig) -> dict[str, int]:
    return {part: size for part, size in count_parameters(config) if size}


@pytest.mark.prove
@pytest.mark.parametrize("entry", all_models(), ids=lambda entry: entry.name)
def test_every_part_of_every_zoo_model_matches_its_tensors(entry: Entry) -> None:
    model = build(entry.config)
    assert predicted(entry.config) == added_up(model)
    assert count_parameters(entry.config).total == sum(parameter.numel() for parameter in model.parameters())


@settings(max_examples=30, deadline=None)
@given(config=transformers())
def test_parts_and_matrices_of_odd_models_match_their_tensors(config: TransformerConfig) -> None:
    model = build(config)
    assert predicted(config) == added_up(model)
    linear = (module.weight for module in model.modules() if isinstance(module, nn.Linear))
    assert matmul_parameters(config) == sum(weight.numel() for weight in linear)


@settings(max_examples=15, deadline=None)
@given(config=encoder_decoders())
def test_parts_of_odd_encoder_decoders_match_their_tensors(config: EncoderDecoderConfig) -> None:
    assert predicted(config) == added_up(build(config))


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("llama-3.1-405b", 405_853_388_800),
        ("llama-3-8b", 8_030_261_248),
        ("gemma-2-27b", 27_227_128_320),
        ("qwen2.5-72b", 72_706_203_648),
        ("t5-11b", 11_307_321_344),
    ],
)
def test_parameter_totals_match_published_digits(name: str, published: int) -> None:
    assert count_parameters(find_model(name).config).total == published
