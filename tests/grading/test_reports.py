"""Reports that come from somebody who is not trusted: read as they are, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmcourse.exercises import Exercise, case, check_exercise
from lmcourse.grading.reports import read_report

DOUBLE = Exercise(
    "double",
    points=2,
    minutes=1,
    difficulty=1,
    reference=lambda x: 2 * x,
    cases=[case("two", 2)],
    hidden_cases=lambda random: [case("large", random.randrange(10**6, 10**7))],
)


def test_a_real_report_is_read_as_it_is() -> None:
    for hidden in (False, True):
        report = check_exercise(DOUBLE, lambda x: x + 2, hidden=hidden)
        again = read_report(json.loads(json.dumps(report.to_json())))
        assert again == report


def test_a_report_on_hidden_cases_tells_only_their_categories() -> None:
    data = check_exercise(DOUBLE, lambda x: x + 2, hidden=True).to_json()
    data["notes"] = ["It printed: 1234567"]
    data["cases"][-1] |= {"call": "double(1234567)", "message": "expected 2469134"}
    report = read_report(data)
    assert report is not None
    assert "1234567" not in str(report)
    assert "2469134" not in report._repr_html_()


@pytest.mark.parametrize(
    "change",
    [
        {"points": "2"},
        {"points": float("nan")},
        {"points": True},
        {"max_points": 2.5},
        {"exercise": ["double"]},
        {"exercise": "x" * 5000},
        {"cases": [1]},
        {"cases": [{"name": "a"}]},
        {"notes": [{}]},
        {"to_come": "other"},
        {"answered": None},
        {"extra": 1},
        {"points": -1},
        {"points": 3},
        {"points": 10**400, "max_points": 10**400},
        {"diagnosis": "half a character: \ud800"},
        {"notes": ["x" * 1000] * 100},
    ],
)
def test_what_is_not_a_report_is_none(change: dict[str, Any]) -> None:
    data = check_exercise(DOUBLE, lambda x: x).to_json()
    assert read_report(data) is not None
    assert read_report(data | change) is None


@pytest.mark.parametrize("data", [None, [], "text", {}, {"cases": 3}])
def test_nor_is_anything_else(data: Any) -> None:
    assert read_report(data) is None
