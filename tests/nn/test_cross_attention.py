"""Test which settings of the decoder's attention cross-attention uses or ignores."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lmcourse.nn.attention import Attention, AttentionConfig, AttentionTemperatureConfig, CrossAttention
from lmcourse.nn.attention_pattern import AttentionPattern
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.norm import NormConfig
from lmcourse.nn.position_bias import RelativePositionVectorsConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig

D_MODEL, LENGTH = 48, 9
BASE = AttentionConfig(6, kv_heads=2, d_head=10)
TAKEN = {
    "QK norm per head": {"qk_norm": QKNormConfig(NormConfig("rms"))},
    "QK norm, a scale per head": {"qk_norm": QKNormConfig(NormConfig("layer"), "heads")},
    "QK norm over the width": {"qk_norm": QKNormConfig(NormConfig("rms"), "width")},
    "soft cap": {"soft_cap": 1.5},
    "scale": {"scale": 0.7},
    "all": {"qk_norm": QKNormConfig(NormConfig("rms"), "width"), "soft_cap": 1.5, "scale": 0.7, "bias": True},
}


def randomised(module: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)


def text(length: int = LENGTH, seed: int = 1) -> Tensor:
    return torch.randn(2, length, D_MODEL, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("changes", TAKEN.values(), ids=TAKEN)
@torch.no_grad()
def test_cross_attention_to_the_same_text_matches_self_attention(changes: dict[str, object]) -> None:
    """With queries and keys from one text, it equals an encoder's attention, which other tests check."""
    config = replace(BASE, pattern=AttentionPattern(causal=False), **changes)  # type: ignore[arg-type]
    across, within = CrossAttention(config, D_MODEL), Attention(config, D_MODEL)
    randomised(within)
    across.out.load_state_dict(within.out.state_dict())
    if config.qk_norm is not None:
        across.norm_q.load_state_dict(within.qk_transform.norm_q.state_dict())
        across.norm_k.load_state_dict(within.qk_transform.norm_k.state_dict())
    queries = config.heads * 10
    for name, parameter in within.qkv.named_parameters():
        across.q.get_parameter(name).copy_(parameter[:queries])
        across.kv.get_parameter(name).copy_(parameter[queries:])
    x = text()
    expected = within(x, ForwardContext(torch.arange(LENGTH).expand(2, LENGTH)))
    got = across(x, across.project_kv(x), torch.ones(2, LENGTH, dtype=torch.bool))
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)
    plain = CrossAttention(replace(config, qk_norm=None, soft_cap=None, scale=None), D_MODEL)
    plain.load_state_dict(across.state_dict(), strict=False)
    assert (plain(x, plain.project_kv(x), torch.ones(2, LENGTH, dtype=torch.bool)) - got).abs().max() > 0.01


@pytest.mark.prove
@torch.no_grad()
def test_the_soft_cap_matches_t5gemma() -> None:
    """Like our model, T5Gemma rotates queries and keys within a text, but not across texts."""
    t5gemma = pytest.importorskip("transformers.models.t5gemma.modeling_t5gemma")
    settings = t5gemma.T5GemmaModuleConfig(
        hidden_size=D_MODEL, num_attention_heads=6, num_key_value_heads=2, head_dim=10, query_pre_attn_scalar=7,
        attn_logit_softcapping=1.5, attn_implementation="eager",
    )  # fmt: skip
    settings.cross_attention_hidden_size = D_MODEL
    theirs = t5gemma.T5GemmaCrossAttention(settings, 0).eval()
    ours = CrossAttention(replace(BASE, scale=7**-0.5, soft_cap=1.5, rotary=RotaryConfig()), D_MODEL)
    randomised(theirs)
    ours.q.weight.copy_(theirs.q_proj.weight)
    ours.kv.weight.copy_(torch.cat([theirs.k_proj.weight, theirs.v_proj.weight]))
    ours.out.weight.copy_(theirs.o_proj.weight)
    x, source = text(), text(5, seed=2)
    visible = torch.tensor([[True] * 5, [True, True, True, False, False]])
    hidden = torch.zeros(2, 1, LENGTH, 5).masked_fill(~visible[:, None, None], torch.finfo(torch.float32).min)
    expected, _ = theirs(x, hidden, source)
    torch.testing.assert_close(ours(x, ours.project_kv(source), visible), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_cross_attention_ignores_positions() -> None:
    """Another order of the source gives the same result, for every kind of position in the decoder."""
    config = replace(
        BASE,
        pattern=AttentionPattern("window", 2),
        rotary=RotaryConfig(),
        relative_position_vectors=RelativePositionVectorsConfig(3),
        temperature=AttentionTemperatureConfig(2, 0.5),
    )
    attention, plain = CrossAttention(config, D_MODEL), CrossAttention(BASE, D_MODEL)
    randomised(attention)
    plain.load_state_dict(attention.state_dict())
    x, source, real = text(), text(5, seed=2), torch.ones(2, 5, dtype=torch.bool)
    there = attention(x, attention.project_kv(source), real)
    assert torch.equal(plain(x, plain.project_kv(source), real), there)
    torch.testing.assert_close(attention(x, attention.project_kv(source.flip(1)), real), there, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("soft_cap", [None, 1.5])
def test_dropout_is_active_only_in_training(soft_cap: float | None) -> None:
    attention = CrossAttention(replace(BASE, dropout=0.5, soft_cap=soft_cap), D_MODEL)
    clean = CrossAttention(replace(BASE, soft_cap=soft_cap), D_MODEL)
    clean.load_state_dict(attention.state_dict())
    x, source, real = text(), text(5, seed=2), torch.ones(2, 5, dtype=torch.bool)

    def result(module: CrossAttention) -> Tensor:
        found: Tensor = module(x, module.project_kv(source), real)
        return found

    assert torch.equal(result(attention.eval()), result(clean))
    assert not torch.allclose(result(attention.train()), result(clean))
