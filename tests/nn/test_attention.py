"""Readable and fused attention give the same results and gradients for every variant."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from lmcourse.nn.attend import attend_fused, attention_weights, block_update, weighted_values
from lmcourse.nn.attention import Attention, AttentionConfig, AttentionTemperatureConfig
from lmcourse.nn.attention_pattern import PADDING_POSITION, AttentionPattern
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import (
    Alibi,
    AlibiConfig,
    RelativePositionBias,
    RelativePositionBiasConfig,
    RelativePositionVectorsConfig,
)
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

D_MODEL, LENGTH = 48, 13
BASE = AttentionConfig(heads=6, rotary=RotaryConfig())
VARIANTS = {
    "multi-head": BASE,
    "grouped": replace(BASE, kv_heads=2),
    "multi-query": replace(BASE, kv_heads=1),
    "wide heads": replace(BASE, d_head=14),
    "window": replace(BASE, pattern=AttentionPattern("window", 4)),
    "chunk": replace(BASE, pattern=AttentionPattern("chunk", 4)),
    "strided": replace(BASE, pattern=AttentionPattern("strided", 4)),
    "fixed": replace(BASE, pattern=AttentionPattern("fixed", 4)),
    "window as long as the text": replace(BASE, pattern=AttentionPattern("window", LENGTH)),
    "encoder": replace(BASE, pattern=AttentionPattern(causal=False)),
    "encoder with a window": replace(BASE, pattern=AttentionPattern("window", 4, causal=False)),
    "QK norm per head": replace(BASE, qk_norm=QKNormConfig(NormConfig("rms"))),
    "QK norm, a scale per head": replace(BASE, kv_heads=2, qk_norm=QKNormConfig(NormConfig("layer"), "heads")),
    "QK norm over the width": replace(BASE, kv_heads=2, qk_norm=QKNormConfig(NormConfig("rms"), "width")),
    "QK norm after RoPE": replace(BASE, qk_norm=QKNormConfig(NormConfig("rms", scale=False), after_rotary=True)),
    "temperature": replace(BASE, rotary=None, temperature=AttentionTemperatureConfig(4, 0.3)),
    "biases": replace(BASE, bias=True, out_bias=True),
    "scale": replace(BASE, scale=1.0),
}


def layer(config: AttentionConfig) -> Attention:
    torch.manual_seed(0)
    built = Attention(config, D_MODEL)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_(std=0.3)
    return built


def text(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randn(batch, length, D_MODEL, generator=torch.Generator().manual_seed(1)).requires_grad_()


def count(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.arange(length).expand(batch, length)


def left_padded() -> Tensor:
    """Return the positions of two texts, of which the second is five tokens shorter."""
    return torch.stack(
        [torch.arange(LENGTH), torch.cat([torch.full((5,), PADDING_POSITION), torch.arange(LENGTH - 5)])]
    )


def both_forms(config: AttentionConfig, context: ForwardContext) -> tuple[list[Tensor], list[Tensor]]:
    """Return results and gradients (input, weights) of both forms at real tokens."""
    found = []
    for fused in (True, False):
        built, x = layer(config), text()
        built.fused = fused
        result = built(x, context)[context.positions != PADDING_POSITION]
        weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(2))
        found.append([result, *torch.autograd.grad((result * weights).sum(), [x, *built.parameters()])])
    return found[0], found[1]


def assert_same(config: AttentionConfig, context: ForwardContext) -> None:
    for ran, read in zip(*both_forms(config, context), strict=True):
        assert (ran - read).abs().max() <= 1e-5 * read.abs().max()


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_readable_and_fused_attention_agree(config: AttentionConfig) -> None:
    assert_same(config, ForwardContext(count()))
    assert_same(config, ForwardContext(left_padded(), unpadded=False))


@pytest.mark.parametrize(
    "bias",
    [
        AlibiConfig(),
        AlibiConfig(falcon_bf16=True),
        RelativePositionBiasConfig(),
        RelativePositionBiasConfig(causal=False),
    ],
)
def test_readable_and_fused_attention_agree_with_a_position_bias(
    bias: AlibiConfig | RelativePositionBiasConfig,
) -> None:
    torch.manual_seed(3)
    built = Alibi(bias, 6, 8) if isinstance(bias, AlibiConfig) else RelativePositionBias(bias, 6)
    for config in (replace(BASE, rotary=None), replace(BASE, pattern=AttentionPattern("window", 4), kv_heads=3)):
        assert_same(config, ForwardContext(count(), position_bias=built))
        assert_same(config, ForwardContext(left_padded(), unpadded=False, position_bias=built))


def test_readable_and_fused_attention_agree_with_a_prefix() -> None:
    assert_same(BASE, ForwardContext(count(), prefix_lengths=torch.tensor([3, 8])))
    assert_same(
        replace(BASE, pattern=AttentionPattern("window", 4)),
        ForwardContext(count(), prefix_lengths=torch.tensor([0, LENGTH])),
    )


def test_attention_matches_a_formula_with_loops() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4, 3, 5), torch.randn(1, 2, 6, 5), torch.randn(1, 2, 6, 5)
    bias, visible = torch.randn(1, 4, 3, 6), torch.rand(1, 3, 6) < 0.7
    visible[..., 0] = True
    got = weighted_values(attention_weights(q, k, visible, bias, scale=0.7, soft_cap=1.5), v)
    for head in range(4):
        for query in range(3):
            keys = [key for key in range(6) if visible[0, query, key]]
            dots = torch.stack([q[0, head, query] @ k[0, head // 2, key] * 0.7 for key in keys])
            scores = 1.5 * torch.tanh(dots / 1.5) + bias[0, head, query, keys]
            expected = sum(p * v[0, head // 2, key] for p, key in zip(scores.softmax(0), keys, strict=True))
            torch.testing.assert_close(got[0, head, query], expected)


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("pattern", [AttentionPattern(), AttentionPattern("window", 4), AttentionPattern(causal=False)])
def test_shaw_matches_the_formula_of_the_paper(values: bool, pattern: AttentionPattern) -> None:
    """e_ij = q_i (k_j + a_ij) / √d and z_i = Σ α_ij (v_j + a′_ij), where a is expanded to s × t × d numbers."""
    built = layer(
        replace(
            BASE,
            rotary=None,
            relative_position_vectors=RelativePositionVectorsConfig(3, on_values=values),
            pattern=pattern,
        )
    )
    x, positions = text(), count()
    assert built.relative_position_vectors is not None
    index = built.relative_position_vectors.index(positions, positions)
    qk, v = built.project(x)
    # only splits q and k, because there is no norm and no rotation
    q, k = built.qk_transform(qk, ForwardContext(positions))
    large_keys = k[:, :, None] + built.relative_position_vectors.keys.weight[index][:, None]
    scores = (q[:, :, :, None] * large_keys).sum(-1) * 8**-0.5
    seen = pattern.visible(positions, positions)[:, None]
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    large_values = v[:, :, None].expand(-1, -1, LENGTH, -1, -1)
    if built.relative_position_vectors.values is not None:
        large_values = large_values + built.relative_position_vectors.values.weight[index][:, None]
    mixed = (weights[..., None] * large_values).sum(-2).transpose(1, 2).flatten(2)
    torch.testing.assert_close(built(x, ForwardContext(positions)), built.out(mixed), atol=2e-5, rtol=1e-4)


@pytest.mark.prove
@torch.no_grad()
def test_shaw_matches_transformers() -> None:
    """The vectors are added only to keys, as in wav2vec 2.0 BERT."""
    wav = pytest.importorskip("transformers.models.wav2vec2_bert")
    settings = wav.Wav2Vec2BertConfig(
        hidden_size=D_MODEL, num_attention_heads=6, position_embeddings_type="relative_key", attention_dropout=0.0,
        left_max_position_embeddings=3, right_max_position_embeddings=3, attn_implementation="eager",
    )  # fmt: skip
    theirs = wav.modeling_wav2vec2_bert.Wav2Vec2BertSelfAttention(settings).eval()
    shaw = RelativePositionVectorsConfig(3, on_values=False)
    ours = layer(
        AttentionConfig(
            6, relative_position_vectors=shaw, pattern=AttentionPattern(causal=False), bias=True, out_bias=True
        )
    )
    parts = zip("qkv", ours.qkv.weight.chunk(3), ours.qkv.bias.chunk(3), strict=True)
    for name, weight, bias in parts:
        linear = getattr(theirs, f"linear_{name}")
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    theirs.linear_out.load_state_dict(ours.out.state_dict())
    assert ours.relative_position_vectors is not None
    theirs.distance_embedding.weight.copy_(ours.relative_position_vectors.keys.weight)
    torch.testing.assert_close(ours(text(), ForwardContext(count())), theirs(text())[0], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("fused", [True, False])
def test_dropout_is_active_only_in_training(fused: bool) -> None:
    built, x = layer(replace(BASE, dropout=0.5)), text()
    built.fused = fused
    context = ForwardContext(count())
    torch.testing.assert_close(built.eval()(x, context), built(x, context), rtol=0, atol=0)
    clean = layer(BASE).eval()(x, context)
    torch.testing.assert_close(built(x, context), clean, atol=1e-5, rtol=1e-4)
    torch.manual_seed(0)
    assert not torch.allclose(built.train()(x, context), clean, atol=1e-3)


def test_dropout_keeps_the_mean() -> None:
    torch.manual_seed(0)
    built, tries = layer(replace(BASE, dropout=0.3, kv_heads=2)), 4000
    with torch.no_grad():
        clean = built.eval()(text(1), ForwardContext(count(1)))
        drawn = built.train()(text(1).expand(tries, -1, -1), ForwardContext(count(tries)))
    error = drawn.std(0) / tries**0.5
    assert ((drawn.mean(0) - clean[0]).abs() <= 5 * error).all()


def test_qk_norms_normalise_their_own_axes() -> None:
    q = torch.randn(2, 6, LENGTH, 8)
    k = torch.randn(2, 2, LENGTH, 8)

    def placed(over: str) -> tuple[Tensor, Tensor]:
        kind = QKNormConfig(NormConfig("rms", eps=1e-6), over)  # type: ignore[arg-type]
        built = layer(replace(BASE, rotary=None, kv_heads=2, qk_norm=kind)).qk_transform
        with torch.no_grad():
            for number, parameter in enumerate(built.parameters()):
                parameter.copy_(torch.rand(parameter.shape, generator=torch.Generator().manual_seed(number)))
        return built(torch.cat([q, k], dim=1), ForwardContext(count()))

    def scales(number: int, *shape: int) -> Tensor:
        return torch.rand(shape, generator=torch.Generator().manual_seed(number))

    torch.testing.assert_close(placed("head")[0], F.rms_norm(q, (8,), scales(0, 8), 1e-6))
    torch.testing.assert_close(placed("heads")[1], F.rms_norm(k, (8,), eps=1e-6) * scales(1, 2, 1, 8))
    merged = F.rms_norm(k.transpose(1, 2).flatten(2), (16,), scales(1, 16), 1e-6)
    torch.testing.assert_close(placed("width")[1], merged.unflatten(-1, (2, 8)).transpose(1, 2))


@pytest.mark.parametrize(
    "config",
    [*VARIANTS.values(), replace(BASE, rotary=None, relative_position_vectors=RelativePositionVectorsConfig(3))],
)
def test_padding_changes_nothing_and_makes_no_nan(config: AttentionConfig) -> None:
    """A text gives the same result alone and next to a longer text, with any content in its padding."""
    built, x = layer(config), text()
    padded = built(x, ForwardContext(left_padded(), unpadded=False))
    alone = built(x[1:, 5:], ForwardContext(count(1, LENGTH - 5)))
    torch.testing.assert_close(padded[1, 5:], alone[0], atol=2e-5, rtol=1e-4)
    padded[1, 5:].sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[1, :5] == 0).all()


@pytest.mark.parametrize(
    "config",
    [
        *VARIANTS.values(),
        replace(BASE, soft_cap=5.0),
        replace(BASE, relative_position_vectors=RelativePositionVectorsConfig(3)),
    ],
)
def test_bf16_keeps_its_dtype_and_stays_close(config: AttentionConfig) -> None:
    built, x = layer(config), text().detach()
    exact = built(x, ForwardContext(count()))
    half = built.bfloat16()(x.bfloat16(), ForwardContext(count()))
    assert half.dtype == torch.bfloat16
    # 8 bits of mantissa in three products: an error of a few percent of the largest number.
    assert (half.float() - exact).abs().max() < 0.05 * exact.abs().max()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="takes a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_shared_heads_use_a_fused_kernel_on_a_gpu(dtype: torch.dtype, masked: bool) -> None:
    """The math kernel is disabled, so torch would raise an error if no fused kernel fitted."""
    source = torch.Generator("cuda").manual_seed(0)
    q, k, v = (torch.randn(2, h, 16, 32, device="cuda", dtype=dtype, generator=source) for h in (4, 2, 2))
    visible = torch.ones(2, 16, 16, dtype=torch.bool, device="cuda").tril()
    fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
    with sdpa_kernel(fused):
        found = attend_fused(q, k, v, visible if masked else None, causal=not masked, scale=0.2)
    expected = weighted_values(attention_weights(q.double(), k.double(), visible, scale=0.2), v.double())
    torch.testing.assert_close(found.double(), expected, atol=0.02, rtol=0.02)


def test_a_blockwise_softmax_handles_blocks_of_hidden_keys() -> None:
    scores, v = 300 * torch.randn(3, 8, dtype=torch.float64), torch.randn(8, 2, dtype=torch.float64)
    scores[0, :4] = -torch.inf
    state = scores.new_full((3, 1), -torch.inf), scores.new_zeros(3, 1), scores.new_zeros(3, 2)
    for block, values in zip(scores.split(4, 1), v.split(4), strict=True):
        state = block_update(*state, block, values)
    torch.testing.assert_close(state[2] / state[1], scores.softmax(1) @ v)
