"""Measure the runs of notebook 16 and write lmcourse/chapters/stability/runs.json: about 3 minutes on one thread.

`python experiments/patients.py signs` renews one part, "table", "rates", "left_out" or "signs", and keeps the others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from lmcourse.chapters import stability
from lmcourse.chapters.stability.patients import Run, left_out, train, treat

SEEDS = (0, 1, 2)
TABLE = {
    "A": ("none", "clipping", "z-loss", "soft cap", "QK-clip", "QK-norm", "decay", "warm-up", "rate ÷ 10"),
    "B": ("none", "clipping", "z-loss", "QK-clip", "QK-norm", "rate ÷ 10"),
    "A, other models": (
        *("post-norm", "post-norm, warm-up", "double norm, QK-norm"),
        *("biases", "biases, QK-norm"),
    ),
}
RATES: dict[str, tuple[str, dict[str, tuple[float, ...]]]] = {
    "AdamW": ("A", {"none": (0.002, 0.003, 0.006, 0.01, 0.03), "QK-norm": (0.002, 0.003, 0.006, 0.01, 0.03)}),
    "SGD": ("B", {"none": (0.05, 0.1, 0.15, 0.2, 0.3), "clipping": (0.3, 0.5, 1.0, 2.0)}),
}
ADAMW: dict[str, Any] = {"optimizer": "adamw"}
SGD: dict[str, Any] = {"optimizer": "sgd"}
WARMUP: dict[str, Any] = {**ADAMW, "rate": 0.03, "warmup": 150}
SIGNS: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("healthy", 25, 1, WARMUP),
    ("scores", 50, 0, {**ADAMW, "rate": 0.03}),
    ("steps", 25, 1, {**SGD, "rate": 0.5}),
    ("bad batch", 50, 1, {**ADAMW, "rate": 0.002, "bad_step": 40}),
    ("too slow", 100, 2, {**SGD, "rate": 0.03}),
    ("healthy", 25, 3, {**ADAMW, "rate": 0.002, "grown": 60.0}),
    ("scores", 100, 2, {**ADAMW, "rate": 0.08}),
    ("steps", 100, 2, {**ADAMW, "rate": 0.1, "change": (80, "rate × 10")}),
    ("bad batch", 25, 0, {**ADAMW, "rate": 0.003, "bad_step": 15}),
    ("too slow", 25, 4, {**ADAMW, "rate": 0.0002, "grown": 12.0}),
    ("healthy", 25, 0, {**ADAMW, "rate": 0.003}),
    ("healthy", 50, 4, {**SGD, "rate": 0.3, "clip": 0.3}),
    ("healthy", 100, 3, {**ADAMW, "rate": 0.003, "grown": 30.0}),
    ("scores", 25, 4, {**ADAMW, "rate": 0.2}),
    ("scores", 50, 4, {**ADAMW, "rate": 0.08}),
    ("scores", 100, 5, {**ADAMW, "rate": 0.06}),
    ("steps", 25, 2, {**SGD, "rate": 0.6}),
    ("steps", 50, 2, {**SGD, "rate": 0.08, "change": (35, "rate × 10")}),
    ("steps", 100, 2, {**ADAMW, "rate": 1.0}),
    ("bad batch", 25, 4, {**ADAMW, "rate": 0.004, "bad_step": 18}),
    ("bad batch", 50, 5, {**ADAMW, "rate": 0.0025, "bad_step": 30}),
    ("bad batch", 100, 3, {**WARMUP, "bad_step": 44}),
    ("too slow", 25, 0, {**ADAMW, "rate": 0.0001}),
    ("too slow", 50, 3, {**ADAMW, "rate": 0.0003}),
    ("too slow", 100, 1, {**ADAMW, "rate": 0.0001, "grown": 8.0}),
)
"""Runs with their problem, their number of steps, seed and settings. The first five are shown with their names, the
next five are public cases, the others hidden; each problem has the same lengths among them."""


def short(number: float) -> float:
    """Return the number with four digits."""
    return float(f"{number:.4g}")


def row(patient: str, names: str, **changes: Any) -> dict[str, list[Any]]:
    """Return, for each seed, the number of steps, the last loss, the largest score and the last log Z."""
    treatments = [] if names == "none" else names.split(", ")
    runs = [train(seed, **{**treat(patient, *treatments), **changes}) for seed in SEEDS]
    return {
        "steps": [len(run.losses) for run in runs],
        "loss": [None if run.exploded else short(run.end) for run in runs],
        "score": [short(max(run.scores)) for run in runs],
        "log_z": [short(run.log_zs[-1]) for run in runs],
    }


def table() -> dict[str, Any]:
    """Return a row for each treatment of A and B."""
    return {patient: {names: row(patient[0], names) for names in rows} for patient, rows in TABLE.items()}


def rates() -> dict[str, Any]:
    """Return the losses of both patients' models at several rates, with a treatment and without."""
    return {
        optimizer: {
            name: {str(rate): row(patient, name, rate=rate)["loss"] for rate in few} for name, few in by.items()
        }
        for optimizer, (patient, by) in RATES.items()
    }


def signs(run: Run) -> dict[str, Any]:
    """Return the signs of a run with four digits."""
    return {name: part if name == "guessing" else [short(x) for x in part] for name, part in run.signs.items()}


PARTS: dict[str, Callable[[], Any]] = {
    "table": table,
    "rates": rates,
    "left_out": lambda: [[short(loss) for loss in left_out(train(seed, **treat("A", "QK-norm")))] for seed in SEEDS],
    "signs": lambda: [[name, signs(train(seed, steps=steps, **run))] for name, steps, seed, run in SIGNS],
    "unknown": lambda: signs(train(0, "adamw", 0.05, steps=90)),
}


def main(parts: Sequence[str]) -> None:
    torch.set_num_threads(1)
    path = Path(stability.__path__[0]) / "runs.json"
    found = {**json.loads(path.read_text()), **{part: PARTS[part]() for part in parts or PARTS}}
    kept = {part: found[part] for part in PARTS}
    path.write_text(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).replace(',"', ',\n"') + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
