"""The validation loss includes every token once, without dropout."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision
from tests.training import runs

FULL = MixedPrecision("fp32", torch.device("cpu"))


@pytest.mark.parametrize(("tokens", "batch"), [(2, 3), (33, 1), (34, 3), (150, 3)])
def test_evaluation_is_the_mean_over_all_tokens(tokens: int, batch: int) -> None:
    """The expected loss uses single windows of 16; batches and rows of different sizes must not have equal weight."""
    model, text = runs.model(dropout=0.3), runs.text(tokens)
    found = evaluate(model, text, batch, 16, FULL)
    assert model.training
    model.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, tokens - 1, 16):
            window = text[start : start + 17]
            total += F.cross_entropy(model(window[None, :-1])[0], window[1:], reduction="sum").item()
    assert found == pytest.approx(total / (tokens - 1), rel=1e-6)


def test_evaluation_uses_no_random_numbers_or_gradients() -> None:
    model = runs.model(dropout=0.3)
    before = torch.get_rng_state()
    evaluate(model, runs.text(40), 2, 16, FULL)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.grad is None for p in model.parameters())


def test_an_error_restores_the_models_mode() -> None:
    model = runs.model()
    with pytest.raises(ValueError, match="there is nothing to predict"):
        evaluate(model, runs.text(1), 2, 16, FULL)
    assert model.training
