"""Compare one update with torch in plain fp32 with one large batch, and an evaluation with single windows."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.accounting.saved import saved_tensors
from lmcourse.base.device import best_device
from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.models.transformer import Transformer
from lmcourse.training.activation_checkpointing import apply_activation_checkpointing
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision, Precision
from lmcourse.training.step import NotFiniteError, accumulate_gradients, training_step
from tests.training import runs

CPU = torch.device("cpu")
FULL = MixedPrecision("fp32", CPU)


def batch(rows: int = 6, ignored: bool = False) -> Batch:
    generator = torch.Generator().manual_seed(rows)
    windows = torch.randint(0, 256, (rows, 17), generator=generator)
    targets = windows[:, 1:].clone()
    if ignored:  # rows have different weights, so a mean of means would be wrong
        targets[torch.rand(targets.shape, generator=generator) < torch.linspace(0, 0.9, rows)[:, None]] = IGNORE_INDEX
    return Batch(windows[:, :-1], targets)


def parts(whole: Batch, size: int) -> list[Batch]:
    return [Batch(*pair) for pair in zip(whole.inputs.split(size), whole.targets.split(size), strict=True)]


def gradients(model: nn.Module) -> list[Tensor]:
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert found
    return found


def by_torch(model: Transformer, whole: Batch, z_loss: float = 0.0) -> Tensor:
    """Compute the loss of one large batch and its gradients."""
    logits = model(whole.inputs).flatten(0, 1)
    counts = whole.targets.flatten() != IGNORE_INDEX
    loss = F.cross_entropy(logits, whole.targets.flatten(), ignore_index=IGNORE_INDEX)
    loss = loss + z_loss * logits[counts].logsumexp(-1).square().mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("z_loss", [0.0, 0.1])
def test_micro_batches_give_the_gradient_of_one_large_batch(size: int, ignored: bool, z_loss: float) -> None:
    whole, model = batch(ignored=ignored), runs.model(dropout=0.0)
    other = deepcopy(model)
    loss = accumulate_gradients(model, parts(whole, size), FULL, z_loss)
    torch.testing.assert_close(loss, by_torch(other, whole, z_loss).detach(), rtol=1e-6, atol=0)
    for ours, theirs in zip(gradients(model), gradients(other), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6 * theirs.abs().max().item())


@pytest.mark.parametrize("share", [0.01, 0.5, 2.0, None])
def test_an_update_matches_torchs_with_torchs_clipping(share: float | None) -> None:
    """`share` is the clipping limit as a fraction of the norm."""
    whole, model = batch(), runs.model(dropout=0.0)
    other = deepcopy(model)
    loss = by_torch(other, whole)
    norm = nn.utils.get_total_norm(gradients(other)).item()
    grad_clip = None if share is None else share * norm
    if grad_clip is not None:
        nn.utils.clip_grad_norm_(other.parameters(), grad_clip)
    torch.optim.SGD(other.parameters(), 0.1).step()

    result = training_step(model, [whole], torch.optim.SGD(model.parameters(), 0.1), FULL, grad_clip=grad_clip)
    assert result.loss == pytest.approx(loss.item(), rel=1e-6)
    assert result.gradient_norm == pytest.approx(norm, rel=1e-5)
    assert not result.skipped
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_nonfinite_gradients_change_no_weight(what: str) -> None:
    model = runs.model(dropout=0.0)
    if what == "loss":
        model.head.scale = math.inf
    else:
        model.norm.weight.register_hook(lambda gradient: gradient * math.nan)
    before = deepcopy(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    with pytest.raises(NotFiniteError, match="the loss is nan" if what == "loss" else "norm of the gradient is nan"):
        training_step(model, [batch()], optimizer, FULL, grad_clip=1.0)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert not optimizer.state


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_stays_close_to_full_precision(precision: Precision) -> None:
    """Matrix products are in 16 bits, and weights and their updates in 32."""
    device, whole = best_device(), batch()
    model = runs.model(dropout=0.0).to(device)
    other = deepcopy(model)
    dtypes = []
    model.head.register_forward_hook(lambda module, inputs, output: dtypes.append(output.dtype))
    there = whole.to(device)
    full = training_step(other, [there], torch.optim.SGD(other.parameters(), 0.1), MixedPrecision("fp32", device))
    mixed = training_step(model, [there], torch.optim.SGD(model.parameters(), 0.1), MixedPrecision(precision, device))
    assert dtypes == [torch.bfloat16 if precision == "bf16" else torch.float16]
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert mixed.loss == pytest.approx(full.loss, rel=2**-8)
    assert mixed.gradient_norm == pytest.approx(full.gradient_norm, rel=0.02)
    assert mixed.gradient_norm != full.gradient_norm


def test_an_overflow_in_fp16_skips_the_update_and_halves_the_scale() -> None:
    model, precision = runs.model(dropout=0.0), MixedPrecision("fp16", CPU)
    precision.scaler.load_state_dict({**precision.scaler.state_dict(), "scale": 2.0**40})
    before = deepcopy(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    result = training_step(model, [batch()], optimizer, precision, grad_clip=1.0)
    assert result.skipped
    assert math.isfinite(result.loss)
    assert precision.scaler.get_scale() == 2.0**39
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_recomputed_blocks_give_the_same_gradients_and_keep_less() -> None:
    """Both passes use the same dropout masks, and parameters keep their names."""
    whole, model = batch(), runs.model(dropout=0.3)
    other = deepcopy(model)
    apply_activation_checkpointing(model)
    assert list(model.state_dict()) == list(other.state_dict())
    for each in (model, other):
        torch.manual_seed(5)
        accumulate_gradients(each, parts(whole, 3), FULL, 0.0)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(gradients(model), gradients(other), strict=True))
    kept, everything = (saved_tensors(lambda each=each: each(whole.inputs), each).total for each in (model, other))
    assert kept < 0.5 * everything


def test_applying_checkpointing_twice_changes_nothing() -> None:
    whole, model = batch(), runs.model(dropout=0.0)
    calls: list[int] = []
    apply_activation_checkpointing(model)
    apply_activation_checkpointing(model)
    model.blocks[0].attention.register_forward_hook(lambda *_: calls.append(1))  # type: ignore[operator,union-attr]
    accumulate_gradients(model, [whole], FULL, 0.0)
    assert len(calls) == 2


def test_a_model_without_blocks_cannot_recompute_them() -> None:
    with pytest.raises(ValueError, match="Linear has no blocks to recompute"):
        apply_activation_checkpointing(nn.Linear(1, 1))


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
