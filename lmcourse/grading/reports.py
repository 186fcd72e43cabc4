"""Reports that come from a learner's process: believed only as far as their form can be checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmcourse.exercises.report import Report

MIME = "application/vnd.lmcourse.report+json"
"""`lmcourse.exercises.report.MIME`, spelled out: importing it would load PyTorch into every command."""

LONGEST = 2_000
"""Characters of one text of a report."""

MOST = 200
"""Cases of one report."""

CASE = {"name": str, "passed": bool, "message": str, "call": str, "hidden": bool}
REPORT = {
    "exercise": str,
    "points": (int, float),
    "max_points": int,
    "hidden": bool,
    "cases": list,
    "diagnosis": str,
    "notes": list,
    "to_come": list,
    "answered": bool,
}


def read_report(data: Any) -> Report | None:
    """The report in this JSON, or None if it is not one.

    What hidden cases must never tell (their inputs and values, and what was printed meanwhile) is left out,
    even if somebody put it in.
    """
    if not (_fits(data, REPORT) and all(_fits(case, CASE) for case in data["cases"]) and len(data["cases"]) <= MOST):
        return None
    if not all(_text(item) for item in [*data["notes"], *data["to_come"]]) or len(data["notes"]) > MOST:
        return None
    if not math.isfinite(data["points"]) or len(data["to_come"]) > MOST:
        return None
    from lmcourse.exercises.report import Report

    cases = [case | {"message": "", "call": ""} if case["hidden"] else case for case in data["cases"]]
    notes = [] if data["hidden"] else data["notes"]
    return Report.from_json({**data, "points": float(data["points"]), "cases": cases, "notes": notes})


def _fits(data: Any, form: dict[str, Any]) -> bool:
    return (
        isinstance(data, dict)
        and data.keys() == form.keys()
        and all(isinstance(data[key], kind) for key, kind in form.items())
        and all(_text(value) for value in data.values() if isinstance(value, str))
        and not any(isinstance(data[key], bool) for key in ("points", "max_points") if key in form)
    )


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST
