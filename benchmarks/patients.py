"""Measure the runs of notebook 16 and write lmcourse/chapters/stability/runs.json: about 7 minutes on one thread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from lmcourse.chapters import stability
from lmcourse.chapters.stability.patients import GUESSING, MEDICINES, PATIENTS, Run, left_out, train, treat

SEEDS = (0, 1, 2)
TABLE = {
    "A": (
        (),
        *((name,) for name in MEDICINES),
        ("rate ÷ 10",),
        ("post-norm",),
        ("post-norm", "warm-up"),
        ("double norm", "QK-norm"),
        ("biases",),
        ("biases", "QK-norm"),
    ),
    "B": ((), ("clipping",), ("z-loss",), ("QK-norm",), ("rate ÷ 10",)),
}
RATES = (0.003, 0.03, 0.1)
SWEPT = ((), ("z-loss",), ("QK-norm",), ("decay",))
SEEN = 0.6
"""The fraction of a run that is shown for the diagnosis."""

HEALTHY: dict[str, Any] = {"optimizer": "adamw", "steps": 150}
SGD: dict[str, Any] = {"optimizer": "sgd", "steps": 150}
SIGNS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("healthy", 0, {**HEALTHY, "rate": 0.003}),
    ("scores", 0, {**HEALTHY, "rate": 0.03}),
    ("steps", 0, {**SGD, "rate": 0.5}),
    ("bad batch", 0, {**HEALTHY, "rate": 0.003, "bad_step": 60}),
    ("too slow", 0, {**SGD, "rate": 0.05}),
    ("healthy", 1, {**HEALTHY, "rate": 0.006}),
    ("healthy", 2, {**HEALTHY, "rate": 0.002}),
    ("scores", 1, {**HEALTHY, "rate": 0.02}),
    ("scores", 2, {**HEALTHY, "rate": 0.06}),
    ("steps", 1, {**SGD, "rate": 0.5}),
    ("steps", 2, {**SGD, "rate": 0.7}),
    ("bad batch", 1, {**HEALTHY, "rate": 0.004, "bad_step": 45}),
    ("bad batch", 2, {**HEALTHY, "rate": 0.0025, "bad_step": 75}),
    ("too slow", 2, {**SGD, "rate": 0.05}),
    ("too slow", 1, {**HEALTHY, "rate": 0.0002}),
    ("steps", 1, {**HEALTHY, "rate": 1.0}),
)
"""Sixteen runs: their problem, seed and settings. The first five are shown with their names."""


def short(number: float) -> float:
    """Return the number with four digits."""
    return float(f"{number:.4g}")


def row(patient: str, treatments: Sequence[str], **changes: Any) -> dict[str, list[Any]]:
    """Return, for each seed, the number of steps, the last loss, the largest score and the last log Z."""
    runs = [train(seed, **{**treat(patient, *treatments), **changes}) for seed in SEEDS]
    return {
        "steps": [len(run.losses) for run in runs],
        "loss": [None if run.exploded else short(run.end) for run in runs],
        "score": [short(max(run.scores)) for run in runs],
        "log_z": [short(run.log_zs[-1]) for run in runs],
    }


def signs(run: Run, steps: int) -> dict[str, Any]:
    """Return the signs of a run after the fraction SEEN of its steps; for an exploded run, of all but the last three
    steps."""
    seen = len(run.losses) - 3 if run.exploded else round(SEEN * steps)
    parts = {"loss": run.losses, "norm": run.norms, "score": run.scores, "log_z": run.log_zs}
    return {name: [short(number) for number in part[:seen]] for name, part in parts.items()} | {"guessing": GUESSING}


def few(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all sets of at most two names."""
    for count in range(3):
        yield from combinations(names, count)


def main() -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {"table": {}, "rates": {}, "sets": {}}
    for patient, rows in TABLE.items():
        found["table"][patient] = {", ".join(names) or "none": row(patient, names) for names in rows}
    for names in SWEPT:
        losses = {str(rate): row("A", names, rate=rate)["loss"] for rate in RATES}
        found["rates"][", ".join(names) or "untreated"] = losses
    for patient in ("X", "Y"):
        found["sets"][patient] = {", ".join(names): row(patient, names)["loss"] for names in few([*MEDICINES])}
    found["left_out"] = [[short(loss) for loss in left_out(train(seed, **treat("A", "QK-norm")))] for seed in SEEDS]
    found["signs"] = [[name, signs(train(seed, **settings), settings["steps"])] for name, seed, settings in SIGNS]
    found["unknown"] = signs(train(0, **PATIENTS["X"]), PATIENTS["X"]["steps"])
    path = Path(stability.__path__[0]) / "runs.json"
    path.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace(',"', ',\n"') + "\n")


if __name__ == "__main__":
    main()
