"""Compare the loss with the formula, and its gradient with the formula's gradient and a closed form."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.models.loss import IGNORE_INDEX, next_token_loss


def by_hand(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> float:
    """Compute the loss token by token, with Python numbers."""
    total, count = 0.0, 0
    for row, target in zip(logits.flatten(0, -2).double().tolist(), targets.flatten().tolist(), strict=True):
        if target != IGNORE_INDEX:
            log_z = math.log(sum(math.exp(value) for value in row))
            total += log_z - row[target] + z_loss * log_z**2
            count += 1
    return total / max(count, 1)


@given(seed=st.integers(0, 999), z_loss=st.sampled_from([0.0, 1e-4, 0.3]), share=st.sampled_from([0.0, 0.4, 1.0]))
@settings(deadline=None)
def test_loss_matches_the_formula(seed: int, z_loss: float, share: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(2, 5, 7, generator=generator)
    targets = torch.randint(7, (2, 5), generator=generator)
    targets[torch.rand(2, 5, generator=generator) < share] = IGNORE_INDEX
    assert next_token_loss(logits, targets, z_loss=z_loss).item() == pytest.approx(
        by_hand(logits, targets, z_loss), abs=1e-5, rel=1e-5
    )


def test_gradients_of_loss_and_z_loss_are_exact() -> None:
    """The cross-entropy gives (p − 1_target) / n, the z-loss 2 α log Z p / n, and ignored targets give 0."""
    logits = torch.randn(6, 9, dtype=torch.float32).requires_grad_()
    targets = torch.tensor([0, 8, IGNORE_INDEX, 3, 3, IGNORE_INDEX])
    next_token_loss(logits, targets, z_loss=0.1).backward()
    p = logits.detach().softmax(-1)
    log_z = logits.detach().logsumexp(-1, keepdim=True)
    hot = torch.nn.functional.one_hot(targets.clamp(min=0), 9)
    expected = (p - hot + 2 * 0.1 * log_z * p) / 4
    expected[targets == IGNORE_INDEX] = 0
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, expected)


def test_if_nothing_counts_the_loss_is_zero_and_so_is_its_gradient() -> None:
    logits = torch.randn(3, 4, requires_grad=True)
    loss = next_token_loss(logits, torch.full((3,), IGNORE_INDEX), z_loss=0.1)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_half_precision_is_summed_in_fp32() -> None:
    logits, targets = torch.randn(400, 50).bfloat16(), torch.randint(50, (400,))
    loss = next_token_loss(logits, targets)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits.float(), targets))
