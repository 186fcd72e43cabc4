"""Measure the standard deviations of initial weights by rule and depth."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lmcourse.models.config import EncoderDecoderConfig, repeat_layers
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like, llama_like
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.norm import Norm


def std(weight: torch.Tensor) -> float:
    return float(weight.detach().std())


@pytest.mark.parametrize("depth", [2, 8])
@pytest.mark.parametrize("block", [{}, {"placement": "double"}, {"branches": "parallel"}], ids=str)
def test_gpt2s_rule_shrinks_branch_outputs_with_depth(depth: int, block: dict[str, str]) -> None:
    model = Transformer(gpt_like(depth, 96, 4, vocab_size=300, context=64, block=block))
    initialize(model)
    for name, module in model.named_modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            added = name.endswith((".out", ".down"))
            wanted = 0.02 / math.sqrt(2 * depth) if added else 0.02
            assert std(module.weight) == pytest.approx(wanted, rel=0.05), name
            assert not module.weight.detach().mean().abs() > 0.1 * wanted
            bias = getattr(module, "bias", None)
            assert bias is None or not bias.any()
    assert all((module.weight == 1).all() for module in model.modules() if isinstance(module, Norm))


def spread_of(layer: nn.Module, additions: int) -> None:
    assert std(layer.weight) == pytest.approx(0.02 / math.sqrt(additions), rel=0.06)


def test_an_encoder_and_a_decoder_count_their_own_additions() -> None:
    """There are two streams: an encoder block adds twice to its stream, and a decoder block three times."""
    decoder = gpt_like(3, 96, 4, vocab_size=300, context=64)
    around = replace(
        decoder.layers[0], attention=replace(decoder.layers[0].attention, pattern=AttentionPattern(causal=False))
    )
    model = EncoderDecoder(EncoderDecoderConfig(decoder.with_(layers=repeat_layers([around], 5)), decoder))
    initialize(model)
    for block in model.encoder.blocks:
        for part in (block.attention.layer.out, block.feed_forward.layer.down):
            spread_of(part, 5 * 2)
    for block in model.blocks:
        for part in (block.attention.layer.out, block.cross.layer.out, block.feed_forward.layer.down):
            spread_of(part, 3 * 3)
        spread_of(block.cross.layer.kv, 1)


def test_fan_in_keeps_the_variance_and_truncates_the_tails() -> None:
    model = Transformer(llama_like(3, 96, 4, 256, vocab_size=400, context=64))
    initialize(model, "fan_in")
    down = model.blocks[0].feed_forward.layer.down.weight.detach()
    # Truncated at three standard deviations, a normal distribution keeps 0.9866 of its standard deviation.
    assert std(down) == pytest.approx(0.9866 / 16, rel=0.05)
    assert down.abs().max() <= 3 / 16
    assert down.abs().max() > 2.8 / 16
    x = torch.randn(500, 256)
    assert std(x @ down.T) == pytest.approx(0.9866, rel=0.05)
    assert std(model.embedding.tokens.weight) == pytest.approx(0.9866 / math.sqrt(96), rel=0.05)


def test_tied_weights_stay_tied_and_the_loss_starts_at_ln_v() -> None:
    config = gpt_like(2, 96, 4, vocab_size=300, context=64)
    model = Transformer(config.with_(layers=repeat_layers(config.layers, 2)))
    initialize(model)
    assert model.head.linear.weight is model.embedding.tokens.weight
    ids = torch.randint(300, (4, 64))
    loss = nn.functional.cross_entropy(model.eval()(ids).flatten(0, 1), torch.randint(300, (256,)))
    assert float(loss.detach()) == pytest.approx(math.log(300), abs=0.1)


@pytest.mark.parametrize("tied", [True, False])
def test_zero_outputs_make_blocks_the_identity(tied: bool) -> None:
    """A tied head is not 0, because the vectors of the embedding must differ."""
    model = Transformer(llama_like(3, 32, 4, 96, vocab_size=50, context=16, tied=tied))
    initialize(model, zero_outputs=True)
    tokens = torch.arange(16)[None]
    stream = model.embedding(tokens, tokens)
    context = ForwardContext(tokens)
    assert all(torch.equal(block(stream, context), stream) for block in model.blocks)
    assert bool(model(tokens).any()) == tied
    assert std(model.embedding.tokens.weight) == pytest.approx(0.02, rel=0.1)
