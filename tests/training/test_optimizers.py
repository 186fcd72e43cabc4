"""Compare every optimizer with torch's, and torch's form with the papers'."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from lmcourse.training.optimizers import muon
from lmcourse.training.optimizers.muon import Muon
from lmcourse.training.optimizers.rules import SGD, AdaGrad, Adam, AdamW

PAIRS: dict[str, tuple[type[Optimizer], type[Optimizer], dict[str, Any]]] = {
    "sgd": (SGD, torch.optim.SGD, {"lr": 0.03}),
    "heavy ball with decay": (SGD, torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "weight_decay": 0.1}),
    "nesterov": (SGD, torch.optim.SGD, {"lr": 0.03, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    "adagrad": (AdaGrad, torch.optim.Adagrad, {"lr": 0.1}),
    "adagrad with decay": (AdaGrad, torch.optim.Adagrad, {"lr": 0.1, "eps": 1e-3, "weight_decay": 0.1}),
    "adam": (Adam, torch.optim.Adam, {}),
    "adam with decay": (Adam, torch.optim.Adam, {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    "adamw": (AdamW, torch.optim.AdamW, {}),
    "adamw with more": (AdamW, torch.optim.AdamW, {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.3}),
}
OURS = {"sgd": SGD, "adagrad": AdaGrad, "adam": Adam, "adamw": AdamW}
GROUPS = ({}, {"lr": 0.005, "weight_decay": 0.0}, {"weight_decay": 0.5})
"""The settings that groups of parameters change."""


def weights(dtype: torch.dtype) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    shapes = [(5, 4), (7,), (), (2, 3, 2), (4, 4), (1,)]
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in shapes]


def build(kind: type[Optimizer], parameters: list[nn.Parameter], **settings: Any) -> Optimizer:
    """Two parameters per group."""
    groups = [{"params": parameters[2 * n : 2 * n + 2], **changes} for n, changes in enumerate(GROUPS)]
    return kind(groups, **settings)


def set_gradients(parameters: list[nn.Parameter], step: int) -> None:
    """Set noisy gradients of Σ log cosh w with very different sizes; sometimes a parameter has no gradient."""
    generator = torch.Generator().manual_seed(step)
    for index, w in enumerate(parameters):
        noise = torch.randn(w.shape, generator=generator, dtype=w.dtype)
        w.grad = None if (step + index) % 7 == 0 else (w.detach().tanh() + noise) * 10.0 ** (index - 4)


def run(optimizer: Optimizer, parameters: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        set_gradients(parameters, step)
        optimizer.step()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_update_matches_torch_bit_for_bit(name: str, dtype: torch.dtype) -> None:
    """On a CPU no tolerance is needed, because the operations and their order are the same."""
    ours, theirs, settings = PAIRS[name]
    mine, other = weights(dtype), weights(dtype)
    run(build(ours, mine, **settings), mine, range(100))
    run(build(theirs, other, foreach=False, **settings), other, range(100))
    for w, reference, start in zip(mine, other, weights(dtype), strict=True):
        assert torch.equal(w, reference)
        assert dtype == torch.bfloat16 or not torch.equal(w, start)  # in bf16, Adam's 1e-3 is lost when added to 1
        assert w.isfinite().all()


@pytest.mark.parametrize("name", ["nesterov", "adagrad with decay", "adamw with more"])
def test_a_loaded_optimizer_continues_bit_for_bit(name: str) -> None:
    """The state goes through a file that torch loads without running code."""
    kind, _, settings = PAIRS[name]
    straight, stopped = weights(torch.float32), weights(torch.float32)
    run(build(kind, straight, **settings), straight, range(20))
    run(first := build(kind, stopped, **settings), stopped, range(8))
    torch.save(first.state_dict(), file := io.BytesIO())
    file.seek(0)
    second = build(kind, stopped) if kind is not SGD else build(kind, stopped, lr=99.0)
    second.load_state_dict(torch.load(file, weights_only=True))
    run(second, stopped, range(8, 20))
    assert all(torch.equal(w, reference) for w, reference in zip(stopped, straight, strict=True))


@pytest.mark.parametrize("kind", OURS.values(), ids=OURS)
def test_the_closure_is_called_with_gradients_and_its_loss_returned(kind: type[Optimizer]) -> None:
    w = nn.Parameter(torch.tensor([3.0]))
    optimizer = kind([w], lr=0.1)

    def closure() -> float:
        optimizer.zero_grad()
        loss = (w**2).sum()
        loss.backward()
        return loss.item()

    losses = [optimizer.step(closure) for _ in range(5)]
    assert losses[0] == 9
    assert all(later < earlier for earlier, later in pairwise(losses))
    assert optimizer.step() is None


@pytest.mark.parametrize("kind", OURS.values(), ids=OURS)
def test_optimizers_do_not_change_gradients(kind: type[Optimizer]) -> None:
    w = nn.Parameter(torch.ones(3))
    optimizer = kind([w], lr=0.1, weight_decay=0.5)
    for _ in range(3):
        w.grad = torch.tensor([1.0, -2.0, 3.0])
        optimizer.step()
        assert w.grad.tolist() == [1, -2, 3]


@pytest.mark.parametrize("kind", OURS.values(), ids=OURS)
def test_sparse_gradients_are_rejected_in_one_line(kind: type[Optimizer]) -> None:
    table = nn.Embedding(5, 2, sparse=True)
    optimizer = kind(table.parameters(), lr=0.1)
    table(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(ValueError, match=f"^{kind.__name__} needs dense gradients.*sparse=False$"):
        optimizer.step()


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        *((kind, {"lr": -0.1}, "lr must be at least 0, not -0.1") for kind in OURS.values()),
        (AdamW, {"lr": 1, "weight_decay": -1}, "weight_decay must be at least 0, not -1"),
        (AdamW, {"betas": (0.9, 1.0)}, r"betas .* not \(0.9, 1.0\)"),
        (SGD, {"lr": 1, "momentum": 1.0}, "momentum must be at least 0 and below 1, not 1.0"),
        (SGD, {"lr": 1, "nesterov": True}, "set a momentum above 0"),
    ],
)
def test_invalid_settings_are_rejected(kind: type[Optimizer], settings: dict[str, Any], message: str) -> None:
    """This includes settings of the optimizer and of a group."""
    w = nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match=message):
        kind([w], **settings)
    with pytest.raises(ValueError, match=message):
        kind([{"params": [w], **settings}], lr=0.1)


MATRICES = [(64, 64), (5, 4), (192, 64), (64, 64), (64, 192), (1, 3), (3, 1), (64, 64)]


def matrices(dtype: torch.dtype) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(5)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in MATRICES]


def multiply_in(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both Muons compute their products in `dtype`. In bf16 the weights depend on the order of the sum in a norm,
    which differs between a single matrix and a batch, and between machines."""
    monkeypatch.setattr(muon, "product_dtype", lambda device: dtype)
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda x: x.to(dtype))


@pytest.mark.parametrize(("settings", "iterations"), [({}, 5), ({"lr": 0.02, "momentum": 0.8, "weight_decay": 0.3}, 3)])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 0)])
def test_muon_matches_torchs(
    dtype: torch.dtype, atol: float, settings: dict[str, Any], iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our Muon multiplies matrices of the same shape together, torch's one by one."""
    multiply_in(torch.float64, monkeypatch)
    mine, other = matrices(dtype), matrices(dtype)
    run(Muon(mine, **settings, iterations=iterations), mine, range(20))
    run(torch.optim.Muon(other, **settings, ns_steps=iterations), other, range(20))
    for w, reference, start in zip(mine, other, matrices(dtype), strict=True):
        torch.testing.assert_close(w, reference, rtol=0, atol=atol)
        assert not torch.equal(w, start)


def test_muon_on_a_cpu_matches_torchs_in_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's Muon rounds to bf16; without this rounding it equals ours."""
    mine, other, rounded = (matrices(torch.float32) for _ in range(3))
    run(Muon(mine), mine, range(20))
    run(torch.optim.Muon(rounded), rounded, range(20))
    multiply_in(torch.float32, monkeypatch)
    run(torch.optim.Muon(other), other, range(20))
    for w, reference in zip(mine, other, strict=True):
        torch.testing.assert_close(w, reference, rtol=0, atol=2e-6)
    assert max((w - coarse).abs().max().item() for w, coarse in zip(mine, rounded, strict=True)) > 1e-4


def test_fused_matrices_are_made_orthogonal_one_by_one() -> None:
    """Three matrices in one parameter are updated like three separate matrices."""
    parts = [nn.Parameter(torch.randn(rows, 8, generator=torch.Generator().manual_seed(rows))) for rows in (8, 4, 4)]
    fused = nn.Parameter(torch.cat([part.detach() for part in parts]))
    separate, joined = Muon(parts, 0.1), Muon([{"params": [fused], "rows": (8, 4, 4)}], 0.1)
    for step in range(4):
        set_gradients(parts, step + 2)
        fused.grad = torch.cat([part.new_zeros(part.shape) if part.grad is None else part.grad for part in parts])
        for part, gradient in zip(parts, fused.grad.split([8, 4, 4]), strict=True):
            part.grad = gradient.clone()
        separate.step()
        joined.step()
    assert torch.equal(fused, torch.cat(parts))


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((3,), {}, r"Muon is for matrices, not for a shape of \[3\]: use AdamW for it"),
        ((2, 2), {"momentum": 1.0}, r"momentum must be at least 0 and below 1, not 1\.0"),
        ((2, 2), {"iterations": 0}, "iterations must be at least 1 and below 100, not 0"),
    ],
)
def test_tensors_that_are_not_matrices_are_rejected_by_muon(
    shape: tuple[int, ...], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Muon([nn.Parameter(torch.ones(shape))], **settings)
