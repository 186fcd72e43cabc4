"""Convert cases, outcomes and results of cells to and from plain values for sending.

A case goes out without what it is about. What comes back is from somebody who may lie: each field is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from lmcourse.exercises.cases import Case
from lmcourse.exercises.failure import MAX_MESSAGE_CHARS, Failure
from lmcourse.exercises.forbidden_names import Names
from lmcourse.exercises.isolated_state import MAX_PRINTED_CHARS
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.values import Plain, to_plain
from lmcourse.grading.examination.encoding import ProtocolError
from lmcourse.grading.examination.running_cells import Refused
from lmcourse.text import one_line, replace_surrogates, replace_unprintable

MAX_LINES = 100
"""Warnings, or names, that are sent."""

KEPT_CELL_PRINTED_CHARS = 2_000
"""Characters of what a cell printed that are kept."""

MAX_CELL_PRINTED_CHARS = 4_000_000
"""Characters after which a cell may print no more."""


@dataclass(frozen=True)
class CellOutcome:
    """Result of running a cell.

    Attributes:
        printed: its output.
        flooded: whether that was too much.
        failure: what it ended with.
        line: the line of its text that ended so; 0 if none did.
        refused: the statements that ran into rules, and which; none where the cell was run without any.
    """

    printed: str = ""
    flooded: bool = False
    failure: Failure | None = None
    line: int = 0
    refused: Refused = ()


def case_to_plain(case: Case) -> dict[str, Plain]:
    """The inputs and the script of a case. Its name stays here: it says what is asked, and whether it is hidden."""
    return {"args": list(case.args), "kwargs": dict(case.kwargs), "script": case.script}


def case_from_plain(value: Plain) -> Case:
    """A case that asks the same, with no name.

    Raises:
        ProtocolError: the value is none that `case_to_plain` gives.
    """
    record = record_of(value, ("args", "kwargs", "script"))
    args, kwargs, script = record["args"], record["kwargs"], record["script"]
    if not isinstance(args, list) or not isinstance(kwargs, dict) or not all(isinstance(key, str) for key in kwargs):
        raise ProtocolError("a case without inputs")
    if script is not None and not isinstance(script, str):
        raise ProtocolError("a script that is no text")
    try:
        return Case("", tuple(args), kwargs, script)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProtocolError("a script that is no Python") from error


def outcome_to_plain(outcome: Outcome) -> dict[str, Plain]:
    """An outcome, with texts cut to what a report can show."""
    return {
        "value": outcome.value,
        "failure": failure_to_plain(outcome.failure) if outcome.failure else None,
        "printed": replace_surrogates(outcome.printed[:MAX_PRINTED_CHARS]),
        "warned": _lines(outcome.warned),
        "changed": _lines(outcome.changed),
        "forbidden": _lines(outcome.forbidden),
    }


def outcome_from_plain(value: Plain) -> Outcome:
    """The outcome in a value from somebody who is not trusted.

    Raises:
        ProtocolError: the value is none that `outcome_to_plain` gives, down to the length of its texts.
    """
    record = record_of(value, tuple(field.name for field in fields(Outcome)))
    failure = None if record["failure"] is None else failure_from_plain(record["failure"])
    if failure and record["value"] is not None:
        raise ProtocolError("a value and a failure at once")
    printed = record["printed"]
    if not isinstance(printed, str) or len(printed) > MAX_PRINTED_CHARS:
        raise ProtocolError("more printed than is kept")
    notes = {name: _checked_lines(record[name]) for name in ("warned", "changed", "forbidden")}
    return Outcome(to_plain(record["value"]), failure, printed, **notes)


def cell_to_plain(cell: CellOutcome) -> dict[str, Plain]:
    """The outcome of a cell as a plain value to send."""
    return {
        "printed": replace_surrogates(cell.printed),
        "flooded": cell.flooded,
        "failure": None if cell.failure is None else failure_to_plain(cell.failure),
        "line": cell.line,
        "refused": [[number, list(rules)] for number, rules in cell.refused],
    }


def cell_from_plain(value: Plain) -> CellOutcome:
    """The outcome of a cell, from an untrusted sender.

    Raises:
        ProtocolError: the value is none that `cell_to_plain` gives.
    """
    record = record_of(value, ("printed", "flooded", "failure", "line", "refused"))
    printed, flooded = record["printed"], record["flooded"]
    if not isinstance(printed, str) or len(printed) > KEPT_CELL_PRINTED_CHARS or not isinstance(flooded, bool):
        raise ProtocolError("more printed than is kept")
    failure = None if record["failure"] is None else failure_from_plain(record["failure"])
    line, refused = record["line"], record["refused"]
    if type(line) is not int or not isinstance(refused, list):
        raise ProtocolError("a line and a list of statements were expected")
    printed = replace_unprintable(printed, keep="\n\t")
    return CellOutcome(printed, flooded, failure, line, tuple(_checked_refusal(one) for one in refused))


def failure_to_plain(failure: Failure) -> dict[str, Plain]:
    """A failure, each text on one line."""
    texts = {name: _line(getattr(failure, name)) for name in ("message", "line", "cause")}
    return {"kinds": _lines(failure.kinds), "number": failure.number, **texts}


def failure_from_plain(value: Plain) -> Failure:
    """The failure in a value from somebody who is not trusted.

    Raises:
        ProtocolError: the value is none that `failure_to_plain` gives.
    """
    record = record_of(value, ("kinds", "number", "message", "line", "cause"))
    kinds, number = _checked_lines(record["kinds"]), record["number"]
    if not kinds or type(number) is not int or not 0 <= number < 10**6:
        raise ProtocolError("a failure of no kind, or in no line")
    message, line, cause = (_checked_line(record[name]) for name in ("message", "line", "cause"))
    return Failure(kinds, message, line, number, cause)


def record_of(value: Plain, names: tuple[str, ...]) -> dict[str, Any]:
    """A dict with exactly these keys.

    Raises:
        ProtocolError: the value is something else.
    """
    if not isinstance(value, dict) or set(value) != set(names):
        raise ProtocolError(f"a record of {', '.join(names)} was expected")
    return value


def _checked_refusal(value: Plain) -> tuple[int, Names]:
    if not isinstance(value, list) or len(value) != 2 or type(value[0]) is not int:
        raise ProtocolError("the number of a statement and its rules were expected")
    return value[0], _checked_lines(value[1])


def _line(text: str) -> str:
    return one_line(text, MAX_MESSAGE_CHARS)


def _lines(texts: tuple[str, ...]) -> list[str]:
    return [_line(text) for text in texts[:MAX_LINES]]


def _checked_line(text: Plain) -> str:
    """A text that a page or a terminal can show as it is: one line, printable, not too long."""
    if not isinstance(text, str) or len(text) > MAX_MESSAGE_CHARS or text != one_line(text, MAX_MESSAGE_CHARS):
        raise ProtocolError("a text that is not one short line")
    return text


def _checked_lines(texts: Plain) -> tuple[str, ...]:
    if not isinstance(texts, list) or len(texts) > MAX_LINES:
        raise ProtocolError("a list of lines was expected")
    return tuple(_checked_line(text) for text in texts)
