"""No architecture of the zoo looks ahead; padding, batches and prefixes have no unwanted effects."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lmcourse.models.config import TransformerConfig
from lmcourse.models.transformer import Transformer
from lmcourse.nn.position_bias import AlibiConfig
from tests.models.tiny import LENGTH, SPARSE, architectures, randomise, tokens

EVERY = {**architectures(), **SPARSE}
DECODERS = {name: config for name, config in EVERY.items() if config.layers[0].attention.pattern.causal}


def other(ids: Tensor, place: int) -> Tensor:
    """Return the same texts with another token at one place."""
    changed = ids.clone()
    changed[:, place] = (ids[:, place] + 1) % 53
    return changed


def sees_only_earlier(config: TransformerConfig) -> bool:
    """Return True if changing a token changes the logits at its place, and no earlier logits."""
    model, ids = randomise(Transformer(config)), tokens()
    before = model(ids)
    places = {place: model(other(ids, place)) for place in (1, 7, LENGTH - 1)}
    return all(
        torch.equal(after[:, :place], before[:, :place]) and not torch.equal(after[:, place], before[:, place])
        for place, after in places.items()
    )


@torch.no_grad()
def test_a_later_token_changes_no_earlier_logit() -> None:
    assert [name for name, config in DECODERS.items() if not sees_only_earlier(config)] == []


def test_rounded_alibi_rejects_a_prefix() -> None:
    model = Transformer(EVERY["bloom-560m"].with_(position_bias=AlibiConfig(falcon_bf16=True)))
    with pytest.raises(ValueError, match="rounded ALiBi is for causal attention"):
        model(tokens(), prefix_lengths=torch.tensor([4, 9]))


@torch.no_grad()
def test_an_encoder_sees_tokens_on_both_sides() -> None:
    model, ids = randomise(Transformer(EVERY["bert-base"])), tokens()
    assert (model(other(ids, LENGTH - 1))[:, 0] != model(ids)[:, 0]).any()


@pytest.mark.parametrize("name", ["llama-7b", "bloom-560m", "mistral-7b"])
@torch.no_grad()
def test_a_prefix_sees_itself_and_nothing_later(name: str) -> None:
    model, ids, prefix = randomise(Transformer(EVERY[name])), tokens(), torch.tensor([4, 9])
    before = model(ids, prefix_lengths=prefix)
    inside, behind = model(other(ids, 3), prefix_lengths=prefix), model(other(ids, 12), prefix_lengths=prefix)
    assert (inside[:, 0] != before[:, 0]).any(-1).all(), "the first token sees the fourth"
    assert torch.equal(behind[:, :12], before[:, :12])
    assert torch.equal(model(ids, prefix_lengths=torch.zeros(2, dtype=torch.long)), model(ids))


@pytest.mark.prove
def test_every_parameter_learns() -> None:
    """An unused part would have no gradient."""
    idle = []
    for architecture, config in DECODERS.items():
        model = randomise(Transformer(config))
        model(tokens()).square().sum().backward()
        parameters = model.named_parameters()
        idle += [(architecture, name) for name, p in parameters if p.grad is None or not p.grad.any()]
    assert idle == []


@pytest.mark.parametrize(
    "name", ["llama-7b", "bloom-560m", "falcon-7b", "gemma-2-2b", "gpt-j-6b", "llama-4-scout-dense"]
)
@torch.no_grad()
def test_bf16_models_stay_close_to_fp32(name: str) -> None:
    model, ids = Transformer(EVERY[name]).eval(), tokens()
    exact = model(ids)
    half = model.bfloat16()(ids)
    assert half.dtype == torch.bfloat16
    assert (half.float() - exact).abs().max() < 0.08 * exact.abs().max()


@torch.no_grad()
def test_stacked_windows_reach_layers_times_window_minus_one_back() -> None:
    """With 6 layers and a window of 5, token 24 is the last that depends on token 0 (as in Mistral 7B)."""
    model, ids = randomise(Transformer(EVERY["mistral-7b"])), tokens(1, 40)
    noticed = (model(other(ids, 0)) != model(ids)).any(-1)[0]
    assert noticed.nonzero().max() == 6 * (5 - 1)
