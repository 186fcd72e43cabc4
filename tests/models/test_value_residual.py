"""Test value residuals: every layer mixes the first layer's values into its own."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from lmcourse.accounting.parameters import count_parameters
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.block import LayerConfig
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from lmcourse.training.run_config import ModelChanges

PLAIN = llama_like(3, 16, 4, 24, vocab_size=23, context=32, kv_heads=2, tied=True)
MIXED = ModelChanges(value_residual=True).apply(PLAIN)


def built(config: TransformerConfig = MIXED) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(config)
    with torch.no_grad():
        for number, block in enumerate(model.blocks):
            if block.attention.layer.first_share is not None:
                block.attention.layer.first_share.fill_(0.2 + 0.3 * number)
    return model.eval()


def text(length: int = 9) -> torch.Tensor:
    return torch.randint(23, (2, length), generator=torch.Generator().manual_seed(1))


def test_every_layer_but_the_first_has_one_residual_weight() -> None:
    model = built()
    shares = {name for name, _ in model.named_parameters() if "share" in name}
    assert shares == {"blocks.1.attention.layer.first_share", "blocks.2.attention.layer.first_share"}
    counted = count_parameters(MIXED)
    assert counted["value residual"] == 2
    assert counted.total == sum(p.numel() for p in model.parameters()) == count_parameters(PLAIN).total + 2


def test_attention_uses_the_mixed_values() -> None:
    """With the same weights, a layer with share λ equals a layer with values (1 − λ) v + λ v₁."""
    model, plain = built(), built(PLAIN)
    plain.load_state_dict({k: w for k, w in model.state_dict().items() if "share" not in k})
    values: list[torch.Tensor] = []
    for block in plain.blocks:
        layer = block.attention.layer
        project = layer.project

        def mixing(x: torch.Tensor, project=project, share=0.2 + 0.3 * layer.layer):  # type: ignore[no-untyped-def]
            qk, v = project(x)
            values.append(v)
            return qk, v if len(values) == 1 else (1 - share) * v + share * values[0]

        layer.project = mixing
    torch.testing.assert_close(plain(text()), model(text()))


@pytest.mark.parametrize("autocast", [False, True])
def test_recomputed_value_residuals_have_the_same_gradients(autocast: bool) -> None:
    model = built().train()
    again = copy.deepcopy(model)
    apply_activation_checkpointing(again)
    for each in (model, again):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            each(text()).float().square().mean().backward()
    for (name, weight), other in zip(model.named_parameters(), again.parameters(), strict=True):
        assert weight.grad is not None
        assert weight.grad.abs().sum() > 0, name
        assert torch.equal(weight.grad, other.grad), name


def test_value_residuals_with_different_shapes_are_rejected() -> None:
    first, second = MIXED.layers[:2]
    with pytest.raises(ValueError, match=r"layer 0: .* so layer 0 cannot have one"):
        MIXED.with_(layers=(second, second))
    narrow = LayerConfig(replace(second.attention, kv_heads=1), second.feed_forward)
    with pytest.raises(ValueError, match=r"layer 1: a value residual .* the same number of key heads"):
        MIXED.with_(layers=(first, narrow))
    encoder = PLAIN.with_(
        layers=tuple(
            replace(x, attention=replace(x.attention, pattern=replace(x.attention.pattern, causal=False)))
            for x in PLAIN.layers
        )
    )
    with pytest.raises(ValueError, match="value residuals are for models with only a decoder"):
        EncoderDecoderConfig(encoder, MIXED)
