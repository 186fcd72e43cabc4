"""Compare blocks with their equations for every placement, and with torch's layers of 2017."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lmcourse.nn.attention import AttentionConfig
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.block import Block, BlockConfig, CrossBlock, LayerConfig, ParallelBlock, build_block
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.feed_forward import FeedForwardConfig
from lmcourse.nn.norm import NormConfig

D, LENGTH = 12, 7
NORM = NormConfig("layer", bias=True)
LAYER = LayerConfig(AttentionConfig(3, kv_heads=1), FeedForwardConfig(20))


def randomised(built: Any) -> Any:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return built


def text(seed: int = 1, length: int = LENGTH) -> Tensor:
    return torch.randn(2, length, D, generator=torch.Generator().manual_seed(seed))


def context(length: int = LENGTH) -> ForwardContext:
    return ForwardContext(torch.arange(length).expand(2, length))


@pytest.mark.parametrize("factor", [1.0, 0.3])
@pytest.mark.parametrize("placement", ["pre", "post", "double", "output"])
def test_every_norm_placement_matches_the_formula(placement: Any, factor: float) -> None:
    block = randomised(Block(LAYER, BlockConfig(NORM, placement, residual_scale=factor), D))
    x, one, two = text(), block.attention, block.feed_forward

    def attention(y: Tensor) -> Tensor:
        return one.layer(y, context())

    feed_forward = two.layer
    if placement == "pre":
        a = x + factor * attention(one.input_norm(x))
        expected = a + factor * feed_forward(two.input_norm(a))
    elif placement == "post":
        a = one.post_norm(x + factor * attention(x))
        expected = two.post_norm(a + factor * feed_forward(a))
    elif placement == "double":
        a = x + factor * one.output_norm(attention(one.input_norm(x)))
        expected = a + factor * two.output_norm(feed_forward(two.input_norm(a)))
    else:
        a = x + factor * one.output_norm(attention(x))
        expected = a + factor * two.output_norm(feed_forward(a))
    torch.testing.assert_close(block(x, context()), expected)
    norms = {"pre": 2, "post": 2, "double": 4, "output": 2}[placement]
    assert sum(p.numel() for name, p in block.named_parameters() if "layer" not in name) == norms * 2 * D


@pytest.mark.parametrize("branches", ["parallel", "parallel_two_norms"])
def test_parallel_blocks_match_the_formula(branches: Any) -> None:
    block = randomised(ParallelBlock(LAYER, BlockConfig(NORM, branches=branches, residual_scale=0.7), D))
    x = text()
    second = block.norm if branches == "parallel" else block.norm_feed_forward
    expected = x + 0.7 * block.attention(block.norm(x), context()) + 0.7 * block.feed_forward(second(x))
    torch.testing.assert_close(block(x, context()), expected)
    parameters = sum(p.numel() for p in block.parameters()) - sum(
        p.numel() for part in (block.attention, block.feed_forward) for p in part.parameters()
    )
    norms = 1 if branches == "parallel" else 2
    assert parameters == norms * 2 * D
    assert len([name for name in block.state_dict() if "norm" in name]) == norms * 2, "no weight under two names"


def copy_attention(ours: Any, theirs: nn.MultiheadAttention) -> None:
    """Copy our random weights into torch's attention, which also has q, k and v in one matrix."""
    if hasattr(ours, "qkv"):
        weight, bias = ours.qkv.weight, ours.qkv.bias
    else:
        weight, bias = torch.cat([ours.q.weight, ours.kv.weight]), torch.cat([ours.q.bias, ours.kv.bias])
    theirs.in_proj_weight.copy_(weight)
    assert theirs.in_proj_bias is not None
    theirs.in_proj_bias.copy_(bias)
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def copy_rest(ours: Any, theirs: Any) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.layer.up.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.layer.down.state_dict())
    branches = [part for part in (ours.attention, getattr(ours, "cross", None), ours.feed_forward) if part is not None]
    for number, branch in enumerate(branches, start=1):
        norm = branch.input_norm if theirs.norm_first else branch.post_norm
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_block_matches_torchs_encoder_layer(placement: Any, causal: bool) -> None:
    attention = AttentionConfig(3, bias=True, out_bias=True, pattern=AttentionPattern(causal=causal))
    wide = FeedForwardConfig(20, "relu", gated=False, bias=True)
    ours = randomised(Block(LayerConfig(attention, wide), BlockConfig(NORM, placement), D)).eval()
    theirs = nn.TransformerEncoderLayer(D, 3, 20, 0.0, batch_first=True, norm_first=placement == "pre")
    with torch.no_grad():
        copy_attention(ours.attention.layer, theirs.self_attn)
        copy_rest(ours, theirs)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH) if causal else None
    torch.testing.assert_close(ours(text(), context()), theirs(text(), src_mask=mask), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_cross_block_matches_torchs_decoder_layer(placement: Any) -> None:
    attention = AttentionConfig(3, bias=True, out_bias=True)
    wide = FeedForwardConfig(20, "relu", gated=False, bias=True)
    ours = randomised(CrossBlock(LayerConfig(attention, wide), BlockConfig(NORM, placement), D)).eval()
    theirs = nn.TransformerDecoderLayer(D, 3, 20, 0.0, batch_first=True, norm_first=placement == "pre").eval()
    with torch.no_grad():
        copy_attention(ours.attention.layer, theirs.self_attn)
        copy_attention(ours.cross.layer, theirs.multihead_attn)
        copy_rest(ours, theirs)
    source = text(2, 5)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    expected = theirs(
        text(),
        source,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(LENGTH),
        tgt_is_causal=True,
        memory_key_padding_mask=~real,
    )
    got = ours(text(), context(), ours.cross.layer.project_kv(source), real)
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("silent", ["attention", "feed_forward"])
@pytest.mark.parametrize("branches", ["serial", "parallel"])
def test_dropout_applies_to_the_branch_output(branches: Any, silent: str) -> None:
    """In training each added number is 0 or doubled; dropout never applies to the stream itself."""
    block = randomised(build_block(LAYER, BlockConfig(NORM, branches=branches, dropout=0.5), D, 0))
    branch = getattr(block, silent)
    part = branch.layer if branches == "serial" else branch
    nn.init.zeros_((part.out if silent == "attention" else part.down).weight)
    x = text()
    added = block.eval()(x, context()) - x
    torch.manual_seed(0)
    dropped = block.train()(x, context()) - x
    zero = dropped.abs() < 1e-5
    assert 0.3 < zero.float().mean() < 0.7
    torch.testing.assert_close(dropped[~zero], 2 * added[~zero], atol=1e-4, rtol=1e-4)
