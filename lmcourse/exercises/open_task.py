"""Open tasks: exercises that are measured. There is no right answer to compare with, but a baseline and a finish line.

A check runs the learner's code under the exercise's limits, measures it, and gives the points of the bands that it
reaches. Grading measures it again on the hidden cases, for example with other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmcourse.exercises.cases import Case
from lmcourse.exercises.outcome import Outcome

Row = Mapping[str, float]


class Unfit(Exception):  # noqa: N818 - no error of the program, but a verdict
    """An answer is not valid; the text is a sentence for the learner."""


class Remark(UserWarning):
    """A warning of `inspect` or `measure` that names the mistake of a valid answer, in a sentence for the learner.

    It costs no points. A report shows it if the answer misses a band.
    """


@dataclass(frozen=True)
class Band:
    """Points for measured numbers that are at most, or at least, these limits; without limits, for any valid answer.

    Attributes:
        text: what earns the points, such as "causal, and it runs"; by default it is made from the limits.
    """

    points: float
    text: str = ""
    at_most: Row | None = None
    at_least: Row | None = None

    def reached(self, measured: Row, digits: int) -> bool:
        """Return True if the numbers, rounded as the report shows them, are within the limits."""
        shown = {name: round(value, digits) for name, value in measured.items()}
        low, high = (self.at_least or {}).items(), (self.at_most or {}).items()
        return all(shown[name] >= limit for name, limit in low) and all(shown[name] <= limit for name, limit in high)

    @property
    def columns(self) -> list[str]:
        """The names of the measured numbers that it limits."""
        return [*(self.at_most or {}), *(self.at_least or {})]

    @property
    def name(self) -> str:
        """The condition and its points: "mean at most 0.9 (1 point)"."""
        sides = (("at most", self.at_most), ("at least", self.at_least))
        limits = [f"{name} {word} {limit:,g}" for word, side in sides for name, limit in (side or {}).items()]
        return f"{self.text or ' and '.join(limits)} ({self.points:g} point{'s' * (self.points != 1)})"


@dataclass(frozen=True)
class OpenTask:
    """How an open task is measured, and what its points are for. All functions belong to modules of the chapter.

    Args:
        inspect: takes the answer; raises `Unfit` if it is not valid. It takes well below a second.
        measure: takes an answer that passed `inspect`, and the inputs of a case; returns a number for each column of
            the report's table.
        baseline: rows of that table that were measured beforehand, by name; the first is the baseline.
        finish: the last row, the finish line.
        bands: add up to the exercise's points.
        digits: the number of decimal places in the table, except in a column whose baseline is an int. Numbers count as
            they are shown.
    """

    inspect: Callable[..., None]
    measure: Callable[..., dict[str, float]]
    baseline: Mapping[str, Row]
    finish: Row
    bands: Sequence[Band]
    digits: int = 2

    @property
    def inspection(self) -> Case:
        """A case that only inspects an answer."""
        return Case("the inspection", by=(_dotted(self.inspect),))

    @property
    def runners(self) -> tuple[str, ...]:
        """The names of the functions that a case calls with the answer, one after the other."""
        return _dotted(self.inspect), _dotted(self.measure)

    def unreached(self, outcome: Outcome) -> list[Band]:
        """Return the bands that an answer does not reach: all of them if it could not be measured."""
        measured = self.measured(outcome)
        return [band for band in self.bands if not measured or not band.reached(measured, self.digits)]

    def measured(self, outcome: Outcome) -> dict[str, float]:
        """Return the measured numbers; nothing if an answer could not be measured."""
        value: Any = outcome.value
        columns = next(iter(self.baseline.values()))
        if not (isinstance(value, dict) and value.keys() == columns.keys() and all(map(_is_number, value.values()))):
            return {}
        return {name: type(known)(value[name]) for name, known in columns.items()}

    def verdict(self, outcome: Outcome) -> str | None:
        """Return in one line what an answer does not reach, or None."""
        if outcome.failure:
            return outcome.failure.message if outcome.failed_with("Unfit") else str(outcome.failure)
        return next((f"not reached: {band.name}" for band in self.unreached(outcome)), None)

    def remark(self, outcome: Outcome) -> str:
        """Return the first remark on an answer, or ""."""
        begin = f"{Remark.__name__}: "
        return next((line.removeprefix(begin) for line in outcome.warned if line.startswith(begin)), "")

    def said(self, band: Band, outcomes: Mapping[str, Outcome]) -> str:
        """Return the numbers that a band limits, by the names of the cases: "yours 2.58"."""
        rows = {name: self.measured(outcome) for name, outcome in outcomes.items() if outcome.value is not None}
        named = [(one, f"{one} " * (len(band.columns) > 1)) for one in band.columns]
        parts = {
            name: ", ".join(f"{words}{self.shown(row[one])}" for one, words in named)
            for name, row in rows.items()
            if row
        }
        if len(parts) == 1 or not band.columns:
            return "".join(f"yours {part}" for part in parts.values() if part)
        return f"yours {'; '.join(f'{part} ({name})' for name, part in parts.items())}"

    def table(self, outcomes: Mapping[str, Outcome]) -> tuple[tuple[str, ...], ...]:
        """Return the report's table: a header, the rows measured beforehand, the answer's rows, and the finish line.

        `outcomes` has the answer's outcomes by the names of their cases.
        """
        yours = {f"yours, {name}": self.measured(outcome) for name, outcome in outcomes.items()}
        rows = {**self.baseline, **{name: row for name, row in yours.items() if row}, "finish line": self.finish}
        columns = next(iter(self.baseline.values())).keys()
        cells = ((name, *(self.shown(row[one]) if one in row else "" for one in columns)) for name, row in rows.items())
        return (("", *columns), *cells)

    def shown(self, value: float) -> str:
        """Return a number as the table shows it."""
        if isinstance(value, int):
            return f"{value:,}"
        return f"{value:,.{self.digits}f}" if math.isfinite(value) else "not a number" if math.isnan(value) else "∞"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _dotted(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{function.__qualname__}"
