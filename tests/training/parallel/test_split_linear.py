"""A split layer computes the same as the fused one, and checkpoints have the same tensors for both."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import nn

from lmcourse.training.checkpoint_format import load_optimizer, load_weights, write_checkpoint
from lmcourse.training.parallel.split_linear import find_fused, unfuse
from tests.training.parallel.real_processes import model

TOKENS = torch.arange(12)[None]


def updated(whole: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of a model after one update, which also changes biases."""
    optimizer = torch.optim.AdamW(whole.parameters(), lr=0.1)
    whole(TOKENS).square().mean().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("name", ["modern", "Qwen 3", "untied GPT-2"])
def test_a_split_layer_computes_and_saves_like_the_fused_one(name: str, tmp_path: Path) -> None:
    whole = model(name)
    optimizer = updated(whole)
    apart, fused = deepcopy(whole), find_fused(whole)
    unfuse(apart, fused)
    torch.testing.assert_close(apart(TOKENS), whole(TOKENS), rtol=1e-5, atol=1e-5)
    assert find_fused(apart) == fused

    facts = {"step": 1, "training": {}, "model": None}
    write_checkpoint(tmp_path / "whole", whole, optimizer, {}, facts)
    blank = model(name)
    unfuse(blank, fused)
    load_weights(tmp_path / "whole", blank)
    assert all(torch.equal(p, q) for p, q in zip(apart.parameters(), blank.parameters(), strict=True))
    loaded = torch.optim.AdamW(blank.parameters())
    load_optimizer(tmp_path / "whole", blank, loaded)
    assert {state["step"].item() for state in loaded.state.values()} == {1.0}

    write_checkpoint(tmp_path / "apart", blank, loaded, {}, facts)
    again = model(name)
    load_weights(tmp_path / "apart", again)
    moments = torch.optim.AdamW(again.parameters())
    load_optimizer(tmp_path / "apart", again, moments)
    for p, q in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(p, q)
        assert all(torch.equal(value, moments.state[q][key]) for key, value in optimizer.state[p].items())
