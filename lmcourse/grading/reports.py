"""Reports that come from a learner's process: believed only as far as their form can be checked."""

from __future__ import annotations

import json
from typing import Any

from nbformat import NotebookNode

from lmcourse.report import REPORT_MIME, Report, check_id
from lmcourse.text import replace_surrogates

MAX_TEXT_CHARS = 2_000
"""Characters of one text of a report."""

MAX_CASES = 200
"""Cases of one report."""

MAX_REPORT_CHARS = 50_000
"""Characters of a whole report."""

MAX_POINTS = 10**6
"""Points of one exercise."""

CASE_FIELDS = {"name": str, "passed": bool, "message": str, "call": str, "hidden": bool}
REPORT_FIELDS = {
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
STAND_INS_FIELD = {"stand_ins": list}


def read_report(data: Any) -> Report | None:
    """The report in this JSON, or None if it is not one.

    What hidden cases must never tell (their inputs and values, and what was printed meanwhile) is left out,
    even if somebody put it in.
    """
    fields = REPORT_FIELDS | (STAND_INS_FIELD if isinstance(data, dict) and "stand_ins" in data else {})
    if not (
        _has_fields(data, fields)
        and len(data["cases"]) <= MAX_CASES
        and all(_has_fields(case, CASE_FIELDS) for case in data["cases"])
    ):
        return None
    if not all(
        len(data[key]) <= MAX_CASES and all(_is_text(item) for item in data[key])
        for key in ("notes", "to_come", "stand_ins")
        if key in data
    ):
        return None
    if not 0 <= data["points"] <= data["max_points"] <= MAX_POINTS:  # so it is no NaN either
        return None
    if len(json.dumps(data)) > MAX_REPORT_CHARS:
        return None
    cases = [case | {"message": "", "call": ""} if case["hidden"] else case for case in data["cases"]]
    notes = [] if data["hidden"] else data["notes"]
    return Report.from_json({**data, "points": float(data["points"]), "cases": cases, "notes": notes})


def reports_in(graded: NotebookNode) -> dict[str, Report]:
    """The reports of a graded notebook by exercise."""
    found = {}
    for cell in graded.cells:
        for output in cell.get("outputs", []):
            report = read_report(output.get("data", {}).get(REPORT_MIME))
            if report is not None and cell.metadata.get("nbgrader", {}).get("grade_id") == check_id(report.exercise):
                found[report.exercise] = report
    return found


def _has_fields(data: Any, form: dict[str, Any]) -> bool:
    return (
        isinstance(data, dict)
        and data.keys() == form.keys()
        and all(isinstance(data[key], kind) for key, kind in form.items())
        and all(_is_text(value) for value in data.values() if isinstance(value, str))
        and not any(isinstance(data[key], bool) for key in ("points", "max_points") if key in form)
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_CHARS and value == replace_surrogates(value)
