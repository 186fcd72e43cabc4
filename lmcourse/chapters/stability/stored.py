"""Runs measured by `experiments/patients.py`: the tables of treatments, losses at several rates, signs of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Signs = dict[str, Any]
"""Lists over the steps, "loss", "norm", "score" and "log_z"; and "guessing", the loss of guessing."""

SHOWN, PUBLIC = 5, 10
"""Numbers of runs that are shown with their diagnosis, and that are shown or public cases."""
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


def public_signs() -> list[tuple[str, Signs]]:
    """Return the diagnosis and the signs of five more runs, the other public cases."""
    return [(name, signs) for name, signs in stored()["signs"][SHOWN:PUBLIC]]


def unnamed_signs() -> list[tuple[str, Signs]]:
    """Return the diagnosis and the signs of the hidden runs."""
    return [(name, signs) for name, signs in stored()["signs"][PUBLIC:]]


def unknown_signs() -> Signs:
    """Return the signs of patient X."""
    signs: Signs = stored()["unknown"]
    return signs


def measured(patient: str, treatments: str) -> dict[str, list[Any]]:
    """Return a row of the table: "steps", "loss" (None for an explosion), "score" and "log_z" of three seeds."""
    row: dict[str, list[Any]] = stored()["table"][patient][treatments]
    return row


def table_lines(patient: str) -> Iterator[str]:
    """Yield the lines of a table of the treatments of A, "A, other models" or B, with three seeds.

    `*` marks a loss below the loss of a table of byte pairs; `†19` an explosion after 19 steps; `8.9M` is 8.9 million.
    """
    yield f"{patient:<20}{'loss at the end':>24}{'largest score':>24}{'log Z at the end':>24}"
    for name, row in stored()["table"][patient].items():
        cells = [
            f"{'†' + str(steps) + ' ':>8}" if loss is None else f"{loss:>7.2f}" + ("*" if loss < PAIRS else " ")
            for loss, steps in zip(row["loss"], row["steps"], strict=True)
        ]
        scores = (f"{score:,.0f}" if score < 1e6 else f"{score / 1e6:,.1f}M" for score in row["score"])
        cells += [*(f"{score:>8}" for score in scores), *(f"{log_z:>8,.1f}" for log_z in row["log_z"])]
        yield f"{name:<20}{''.join(cells)}"
