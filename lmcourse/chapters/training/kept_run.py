"""Snapshots of a run, and what a resumed run loses if a part was forgotten.

Learners read `small_run.py` before they write a snapshot, so this is no part of it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

from lmcourse.chapters.training.small_run import SmallRun


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
