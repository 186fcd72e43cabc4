"""Snapshots of a run, and trainers: the right one, and those of strangers, of which some break a promise.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.chapters.training.small_run import SmallRun
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.training.param_groups import parameter_groups
from lmcourse.training.run_settings import Settings
from lmcourse.training.small_model import ragged_loader, small_model

Fit = Callable[..., list[float]]

OPTIMIZERS: dict[str, tuple[Any, float, dict[str, float]]] = {
    "AdamW": (torch.optim.AdamW, 1.0, {}),
    "SGD": (torch.optim.SGD, 30.0, {"momentum": 0.9}),
    "Adagrad": (torch.optim.Adagrad, 5.0, {}),
    "RMSprop": (torch.optim.RMSprop, 0.5, {"momentum": 0.5}),
    "Adamax": (torch.optim.Adamax, 2.0, {}),
}
"""Optimizers, each with its rate as a multiple of the settings' rate and with other settings."""

SHOWN = {
    "mean of means": (1, "it averages the means of its micro-batches"),
    "optimizer": (2, "its snapshots forget the moments"),
    "clipped apart": (1, "it clips the gradient of every micro-batch, not only the sum"),
    "norms decay": (3, "everything decays, the scales of norms too"),
    "update lost": (5, "the rate of its first update is 0"),
}
"""Faults of trainers that learners meet: the promise that each breaks, and what is wrong."""

OTHERS = {
    "not cleared": (1, "it never clears the gradients"),
    "loader": (2, "its snapshots forget the place in the text"),
    "copy": (2, "its snapshots do not copy the model's weights"),
    "schedule restarts": (2, "its schedule begins again when it resumes"),
    "summed": (1, "it adds up the means of its micro-batches"),
    "never clipped": (4, "it never clips"),
    "each clipped": (4, "it clips the gradient of each parameter separately"),
    "entries clipped": (4, "it clips each entry of the gradient, and not the norm"),
    "chance": (2, "its snapshots forget torch's generator"),
    "a step ahead": (5, "its schedule is one step ahead"),
}
"""Other faults."""

FAULTS = {**SHOWN, **OTHERS}

_SHOWN = [("RMSprop", "mean of means"), ("AdamW", ""), ("Adamax", "optimizer"), ("Adamax", ""), ("Adagrad", "")]
_SHOWN += [("Adagrad", "clipped apart"), ("RMSprop", ""), ("AdamW", "norms decay"), ("SGD", ""), ("SGD", "update lost")]
_HIDDEN = [("SGD", "not cleared"), ("AdamW", "loader"), ("Adagrad", "copy"), ("Adamax", "schedule restarts")]
_HIDDEN += [("SGD", "summed"), ("AdamW", "never clipped"), ("RMSprop", "chance"), ("AdamW", "a step ahead")]
_HIDDEN += [("RMSprop", "each clipped"), ("Adamax", "entries clipped")]
_DEALT = [*_SHOWN, *_HIDDEN, ("AdamW", ""), ("Adagrad", "")]

ACCUSED = "Your probe accuses trainer {}, which keeps all five promises."
NOBODY = "Your probe accuses none of the ten trainers. Five of them break a promise."
NO_VERDICT = "Return True or False, not {}."


def train(
    model: Any,
    loader: Any,
    settings: Settings,
    start: Any = None,
    optimizer: Callable[[nn.Module], Any] | None = None,
    fault: str = "",
) -> list[float]:
    """Train as the exercise asks for, or with a fault; `optimizer` replaces that of the settings."""
    run = SimpleNamespace(model=model, optimizer=(optimizer or settings.optimizer)(model), loader=loader, step=0)
    rates = [group["lr"] for group in run.optimizer.param_groups]
    if start is not None:
        start.restore(run)
    behind = {"schedule restarts": run.step, "update lost": 1, "a step ahead": -1}.get(fault, 0)
    losses: list[float] = []
    for step in range(run.step, settings.steps):
        for group, rate in zip(run.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * settings.factor(step - behind)
        if fault != "not cleared" or not step:
            model.zero_grad()
        batches = [next(loader) for _ in range(settings.micro_batches)]
        counts = [max(1, int((batch.targets != -100).sum())) for batch in batches]
        losses.append(0.0)
        for batch, count in zip(batches, counts, strict=True):
            terms = {"mean of means": count * len(batches), "summed": count}.get(fault, sum(counts))
            logits = model(batch.inputs).flatten(0, 1)
            loss = F.cross_entropy(logits, batch.targets.flatten(), reduction="sum") / terms
            loss.backward()  # type: ignore[no-untyped-call]
            losses[-1] += loss.item() / (len(batches) if fault == "summed" else 1)
            if fault == "clipped apart":
                nn.utils.clip_grad_norm_(model.parameters(), settings.limit)
        if fault == "entries clipped":
            nn.utils.clip_grad_value_(model.parameters(), settings.limit)
        elif fault not in ("clipped apart", "never clipped"):
            for part in model.parameters() if fault == "each clipped" else [model.parameters()]:
                nn.utils.clip_grad_norm_(part, settings.limit)
        run.optimizer.step()
        run.step = step + 1
        settings.report(run.step, losses[-1])
        if run.step % settings.every == 0:
            settings.snapshots.append(Kept(run, fault))
    return losses


def stranger(number: int) -> Fit:
    """Return the trainer with this number: 1 to 10 are shown, 11 to 22 are not; from 101 on, faults are dealt anew."""

    def fit(model: nn.Module, loader: Any, settings: Settings, start: Any = None) -> list[float]:
        name, fault = _patient(number)
        kind, multiple, others = OPTIMIZERS[name]

        def optimizer(model: nn.Module) -> torch.optim.Optimizer:
            groups = parameter_groups(model, settings.weight_decay)
            if fault == "norms decay":
                groups[1]["weight_decay"] = settings.weight_decay
            made: torch.optim.Optimizer = kind(groups, lr=multiple * settings.rate, **others)
            return made

        return train(model, loader, settings, start, optimizer, fault)

    return fit


def _patient(number: int) -> tuple[str, str]:
    """Return a trainer's optimizer and fault."""
    deal, place = divmod(number, 100)
    name, fault = _DEALT[(7 * place if deal else place) % len(_DEALT) - 1]
    names = list(OPTIMIZERS)
    return names[(names.index(name) + 2 * deal) % len(names)] if fault else name, fault


def told(number: int, accused: bool) -> str:
    """Return what a verdict on a trainer is worth; a fault that was missed by the promise that it breaks."""
    _, fault = _patient(number)
    if not fault:
        return "accused, but it keeps all five promises" if accused else "nothing found, rightly"
    promise, what = FAULTS[fault]
    return f"accused, rightly: {what}" if accused else f"nothing found, but it breaks promise {promise}"


def curves() -> dict[int, list[float]]:
    """Return the losses of the ten trainers that are shown, in 150 updates of the small model."""
    settings = Settings(150, rate=0.02, warmup=10, decay=40, micro_batches=2)
    return {n: stranger(n)(small_model(), ragged_loader(2), replace(settings, snapshots=[])) for n in range(1, 11)}


def _accuses(suspicious: Callable[[Fit], bool], number: int) -> bool:
    verdict = suspicious(stranger(number))
    if not isinstance(verdict, bool | torch.Tensor) or verdict not in (True, False):
        raise Unfit(NO_VERDICT.format("None" if verdict is None else f"a {type(verdict).__name__}"))
    if verdict and not _patient(number)[1]:
        raise Unfit(ACCUSED.format(number))
    return bool(verdict)


@one_thread()
def inspect_suspicious(suspicious: Callable[[Fit], bool]) -> None:
    """Raise Unfit if an answer accuses one of two sound trainers, or none of those that are not."""
    _accuses(suspicious, 2), _accuses(suspicious, 9)
    if not any(_accuses(suspicious, number) for number in range(1, 11)):
        raise Unfit(NOBODY)


@one_thread()
def measure_suspicious(suspicious: Callable[[Fit], bool], first: int) -> dict[str, float]:
    """Return how many of the five faulty trainers that are shown, and of ten others, an answer accuses."""
    found = {_patient(number)[1] for number in range(first, first + len(_DEALT)) if _accuses(suspicious, number)}
    return {"of the five": len(found & SHOWN.keys()), "of ten others": len(found & OTHERS.keys())}


class Kept:
    """A snapshot of a run: what the exercise asks for.

    Args:
        run: the run.
        without: the part that is not restored: "model", "optimizer", "loader", "step" or "chance"; with "copy", the
            model's tensors are kept themselves.
    """

    def __init__(self, run: Any, without: str = "") -> None:
        states = {name: getattr(run, name).state_dict() for name in ("model", "optimizer", "loader") if name != without}
        self.states = {**deepcopy(states), **({"model": states["model"]} if without == "copy" else {})}
        self.step, self.chance, self.without = run.step, torch.get_rng_state(), without

    def restore(self, run: Any) -> None:
        """Restore what was kept into a run."""
        for name, state in deepcopy(self.states).items():
            getattr(run, name).load_state_dict(state)
        if self.without != "step":
            run.step = self.step
        if self.without != "chance":
            torch.set_rng_state(self.chance)


def resumed_without(part: str) -> list[float]:
    """Return the errors of 20 losses of a resumed run if a part is not restored; "" restores all of them (see Kept)."""
    run = SmallRun()
    run.train(8)
    kept = Kept(run, part)
    right, other = run.train(20), SmallRun()
    kept.restore(other)
    return [abs(a - b) for a, b in zip(other.train(20), right, strict=True)]


def forgetful_runs() -> dict[str, list[float]]:
    """Return these errors by what was forgotten."""
    parts = {"nothing forgotten": "", "without the moments": "optimizer", "without the step": "step"}
    parts["without the place in the text"] = "loader"
    return {name: resumed_without(part) for name, part in parts.items()}
