"""Runs measured by `benchmarks/patients.py`: the table of treatments, pairs of medicines, signs of seventeen runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lmcourse.chapters.stability.patients import MEDICINES

Signs = dict[str, Any]
"""Lists over the steps, "loss", "norm", "score" and "log_z"; and "guessing", the loss of guessing."""

LIMITS = {"X": 1.6, "Y": 2.2}
"""The loss that a patient must reach at each of the three seeds."""
SHOWN = 5
"""Number of runs that are shown with their diagnosis."""
LENGTHS = (84, 87, 90, 42, 90, 90, 84, 90, 42, 60, 90)
"""Steps after which the records of the other runs end at the latest, so that a record's length is no sign."""
PAIRS = 1.91
"""Entropy of a byte of the stories if the byte before it is known, in nats."""


@cache
def stored() -> dict[str, Any]:
    """Return the file of measured runs."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("runs.json").read_text())
    return found


def shown_signs() -> dict[str, Signs]:
    """Return the signs of the five runs that are shown, by diagnosis."""
    return dict(stored()["signs"][:SHOWN])


def unnamed_signs() -> list[tuple[str, Signs]]:
    """Return the diagnosis and the signs of the eleven other runs, which end after `LENGTHS` steps."""
    return [
        (name, {part: value[:end] if isinstance(value, list) else value for part, value in signs.items()})
        for (name, signs), end in zip(stored()["signs"][SHOWN:], LENGTHS, strict=True)
    ]


def unknown_signs() -> Signs:
    """Return the signs of patient X."""
    signs: Signs = stored()["unknown"]
    return signs


def losses_under(patient: str, medicines: Iterable[str]) -> list[float | None]:
    """Return the final losses for the seeds 0, 1 and 2, with None for an explosion.

    KeyError unless the patient is "X" or "Y" and there are at most two medicines, both known.
    """
    wanted = set(medicines)
    losses: list[float | None] = stored()["sets"][patient][", ".join(name for name in MEDICINES if name in wanted)]
    return losses


def measured(patient: str, treatments: str) -> dict[str, list[Any]]:
    """Return a row of the table: "steps", "loss" (None for an explosion), "score" and "log_z" of three seeds."""
    row: dict[str, list[Any]] = stored()["table"][patient][treatments]
    return row


def table_lines(patient: str) -> Iterator[str]:
    """Yield the lines of a table of the treatments of A or B; see `table_line`."""
    yield f"{'patient ' + patient:<22}{'loss at the end':>24}{'largest score':>28}{'log Z at the end':>26}"
    yield from (table_line(name, row) for name, row in stored()["table"][patient].items())


def table_line(name: str, row: dict[str, list[Any]]) -> str:
    """Return a line of the table with the losses of three seeds.

    `*` marks a loss below the loss of a table of byte pairs; `†19` an explosion after 19 steps.
    """
    cells = [
        f"{'†' + str(steps) + ' ':>8}" if loss is None else f"{loss:>7.2f}" + ("*" if loss < PAIRS else " ")
        for loss, steps in zip(row["loss"], row["steps"], strict=True)
    ]
    cells += ["  ", *(f"{score:>9,.0f}" for score in row["score"]), *(f"{log_z:>9,.1f}" for log_z in row["log_z"])]
    return f"{name:<22}{''.join(cells)}"
