"""Compare the 2017 encoder–decoder with torch's, with the same weights, and test what each token sees."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.zoo import find_model
from lmcourse.nn.attention_pattern import PADDING_POSITION
from lmcourse.nn.block import LayerConfig
from tests.models.tiny import randomise, shrink, tokens
from tests.nn.test_blocks import copy_attention, copy_rest

NAMES = ("transformer-base", "t5-small", "t5-v1.1-small")


def tiny(name: str, *, biases: bool = False) -> EncoderDecoderConfig:
    config = find_model(name).config
    assert isinstance(config, EncoderDecoderConfig)

    def small(end: TransformerConfig) -> TransformerConfig:
        shrunk = shrink(end)
        layers = tuple(
            LayerConfig(replace(layer.attention, bias=biases, out_bias=biases), layer.feed_forward)
            for layer in shrunk.layers[:3]
        )
        scaled = end.head.scale != 1
        return shrunk.with_(layers=layers, head=replace(end.head, scale=shrunk.d_model**-0.5 if scaled else 1.0))

    return EncoderDecoderConfig(small(config.encoder), small(config.decoder))


def model_of(name: str) -> EncoderDecoder:
    model = randomise(EncoderDecoder(tiny(name)))
    assert isinstance(model, EncoderDecoder)
    return model


def padded(length: int, real: int) -> torch.Tensor:
    """Return positions of two texts, the second with padding on the right."""
    at = torch.arange(length)
    return torch.stack([at, torch.where(at < real, at, PADDING_POSITION)])


@torch.no_grad()
def test_post_norm_model_matches_torchs_transformer() -> None:
    ours = randomise(EncoderDecoder(tiny("transformer-base", biases=True)))
    assert isinstance(ours, EncoderDecoder)
    theirs = nn.Transformer(160, 4, 3, 3, 44, 0.0, batch_first=True).eval()
    theirs.encoder.use_nested_tensor = False
    # torch has one more norm at the end of both stacks than the paper.
    theirs.encoder.norm = theirs.decoder.norm = None
    for block, layer in zip(ours.encoder.blocks, theirs.encoder.layers, strict=True):
        copy_attention(block.attention.layer, layer.self_attn)
        copy_rest(block, layer)
    for block, layer in zip(ours.blocks, theirs.decoder.layers, strict=True):
        copy_attention(block.attention.layer, layer.self_attn)
        copy_attention(block.cross.layer, layer.multihead_attn)
        copy_rest(block, layer)
    source, target, at = tokens(length=9), tokens(length=6, seed=2), padded(9, 5)
    hidden = theirs(
        ours.encoder.embedding(source, at),
        ours.embedding(target, torch.arange(6).expand(2, 6)),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6),
        src_key_padding_mask=at == PADDING_POSITION,
        memory_key_padding_mask=at == PADDING_POSITION,
        tgt_is_causal=True,
    )
    logits = hidden @ ours.embedding.tokens.weight.T
    torch.testing.assert_close(ours(source, target, at), logits, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_encoder_and_decoder_see_the_right_tokens(name: str) -> None:
    model = model_of(name)
    source, target = tokens(length=9), tokens(length=6, seed=2)
    before = model(source, target)
    later_target, last_source = target.clone(), source.clone()
    later_target[:, 3] = (target[:, 3] + 1) % 53
    last_source[:, 8] = (source[:, 8] + 1) % 53
    after = model(source, later_target)
    assert torch.equal(after[:, :3], before[:, :3])
    assert (after[:, 3:] != before[:, 3:]).any(-1).all()
    assert (model(last_source, target) != before).any(-1).all(), "every step sees the source's last token"
    at = padded(9, 8)
    assert torch.equal(model(last_source, target, at)[1], model(source, target, at)[1]), "but not if it is padding"


@pytest.mark.parametrize("name", NAMES)
def test_encoder_and_decoder_share_one_embedding(name: str) -> None:
    model = model_of(name)
    shared = model.encoder.embedding.tokens.weight
    assert model.embedding.tokens.weight is shared
    assert (model.head.linear.weight is shared) == (name != "t5-v1.1-small")
    model(tokens(length=9), tokens()).square().sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
