"""A report tells a learner all they need, and nbgrader only a number."""

from __future__ import annotations

import json
import math
from functools import partial
from html.parser import HTMLParser
from typing import Any

import pytest
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.exercises import Report, check, check_exercise, hint, script
from lmcourse.report import REPORT_MIME, CaseResult
from tests.exercises.toy import answering, doubling


def hostile_report() -> Report:
    evil = '<script>alert("x")</script>'
    result = CaseResult(evil, False, f"{evil} `{evil}`", evil)
    return Report(evil, 0.0, 1, False, (result,), diagnosis=evil, notes=(evil,), hints=(evil, evil), to_come=(evil,))


def unchanged(x: Tensor) -> Tensor:
    return x


def without_sign(x: Tensor) -> Tensor:
    return 2 * x.abs()


class Tags(HTMLParser):
    """Collects the tags of a page, and checks that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        self.labels += [value or "" for name, value in attrs if name == "aria-label"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    return tags


@pytest.mark.parametrize("answer", [lambda x: 2 * x, lambda x: x, lambda x: None, lambda x: x[:0]])
@pytest.mark.parametrize("hidden", [False, True])
def test_nbgrader_reads_a_plain_number(answer: Any, hidden: bool) -> None:
    report = check_exercise(doubling(), answer, hidden=hidden)
    points = float(repr(report))
    assert math.isfinite(points)
    assert 0 <= points <= report.max_points
    assert not repr(report).startswith("-")


def test_text_has_the_mistake_then_failures_then_passes() -> None:
    report = check_exercise(doubling(), without_sign)
    assert str(report).splitlines() == [
        "double   0 / 2 points",
        "→ Your results fit a known mistake. You forget the sign.",
        "✗ a negative one",
        "    double(torch.tensor([-3.]))",
        "    largest difference 12 at [0]: expected -6, yours 6",
        "✓ passes: two numbers",
        "· `hint()` gives a nudge.",
        "· All cases form one group, which fails: 0 of 2 points.",
        "· Grading adds 2 cases (other sizes): `check(double, hidden=True)` shows them.",
    ]


def test_report_of_a_right_answer_is_short() -> None:
    assert str(check_exercise(doubling(), lambda x: 2 * x, hidden=True)).splitlines() == [
        "double   2 / 2 points · all passed",
        "✓ passes: two numbers, a negative one; hidden: other sizes (2 of 2)",
    ]
    assert str(check_exercise(answering(), lambda: 42)) == "answer   1 / 1 points · all passed"


def test_notices_come_first_and_other_failures_last() -> None:
    result = CaseResult("one", False, "expected 1, yours 2", "f(1)")
    report = Report("f", 0.0, 1, False, (result,), "You square.", also_wrong="“none” fails, too.", notices=("Old.",))
    assert str(report).splitlines()[1:5] == ["! Old.", "→ You square.", "→ “none” fails, too.", "✗ one"]
    html = report._repr_html_()
    assert html.index("Old.") < html.index("You square.") < html.index("“none”") < html.index("f(1)")


def test_no_line_of_the_text_is_longer_than_a_terminal() -> None:
    cases = tuple(
        CaseResult(f"a case of number {number}", number > 5, "long " * 40, "f(1, 2)" * 10) for number in range(20)
    )
    text = str(Report("f", 0.0, 1, False, cases, diagnosis="word " * 60, notes=("noted " * 40,)))
    assert max(map(len, text.splitlines())) <= 80
    assert "✓ passes: a case of number 6, " in text
    assert "case of number 12, and 7 more" in " ".join(text.split())


def test_hints_are_in_the_report_until_it_passes() -> None:
    wrong, right = (check_exercise(doubling(), answer) for answer in (unchanged, lambda x: 2 * x))
    html = wrong._repr_html_()
    assert html.index("Hint 1 of 2") < html.index("Add it to itself.") < html.index("Hint 2 of 2") < html.index("2 * x")
    assert wrong.to_json()["hints"] == ["Add it to itself.", "2 * x"]
    assert "hints" not in right.to_json()
    assert "hint" not in right._repr_html_().casefold()


def test_nothing_a_learner_writes_becomes_html() -> None:
    html = hostile_report()._repr_html_()
    assert "<script" not in html
    assert parsed(html).seen <= {"section", "div", "b", "code", "pre", "details", "summary"}


def test_the_html_is_well_formed_and_labelled_for_screen_readers() -> None:
    tags = parsed(check_exercise(doubling(), without_sign)._repr_html_())
    assert tags.labels == ["double: 0 of 2 points", "failed", "passed"]


def test_a_report_survives_json() -> None:
    for report in (check_exercise(doubling(), unchanged), hostile_report()):
        assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert set(check_exercise(doubling(), unchanged)._repr_mimebundle_()) == {REPORT_MIME}


@pytest.mark.parametrize(
    ("count", "last"),
    [
        (1, ""),
        (2, "✗ and 2 more fail: hidden: two (0 of 1)"),
        (6, "✗ and 6 more fail: hidden: two (0 of 1)"),
    ],
)
def test_a_report_shows_three_failing_cases_and_counts_the_others(count: int, last: str) -> None:
    public = [CaseResult(name, False, f"message {name}", f"{name}()") for name in ("a", "b")]
    hidden = [CaseResult("one", False, f"message {number}", f"f({number})", hidden=True) for number in range(count)]
    right = [CaseResult("one", True, hidden=True), CaseResult("three", True, hidden=True)]
    others = [CaseResult("two", False, hidden=True)] if count > 1 else []
    report = Report("f", 0.0, 1, True, (*public, *hidden, *others, *right))
    shown = [f"✗ {name}\n    {name}()\n    message {name}" for name in ("a", "b")]
    shown.append(f"✗ hidden: one (1 of {count + 1})\n    f(0)\n    message 0")
    passing = "✓ passes: hidden: three (1 of 1)"
    assert str(report).split("\n", 1)[1] == "\n".join([*shown, *([last] if last else []), passing])
    html = report._repr_html_()
    assert (last.removeprefix("✗ ") in html, "f(1)" in html) == (True, False)


def test_a_message_is_shown_once() -> None:
    cases = tuple(CaseResult(name, False, "IndexError: out of range", f"{name}()") for name in "abc")
    assert str(Report("f", 0.0, 1, False, cases)).splitlines()[1:] == [
        "✗ a",
        "    a()",
        "    IndexError: out of range",
        "✗ and 2 more fail: b, c",
    ]


def test_script_of_one_line_is_not_repeated_in_its_message() -> None:
    exercise = doubling(cases=[script("one", "double(2)"), script("two", "double(1)\ndouble(3)")])
    assert [(case.call, case.message) for case in check_exercise(exercise, lambda x: 5).cases] == [
        ("double(2)", "expected 4, yours 5"),
        ("double(1)", "expected 2, yours 5"),
    ]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: check(), "Pass `check` the function"),
        (lambda: check(3), "Pass `check` the function"),  # type: ignore[arg-type]
        (lambda: check(lambda x: x), "a lambda, a partial, or decorated"),
        (lambda: check(partial(max, 1)), "a lambda, a partial, or decorated"),
        (lambda: check(type("Wrapper", (), {"__name__": "Wrapper", "__call__": max})()), "a lambda, a partial"),
        (lambda: check(stal_point=3), "Did you mean `stall_point`?"),
        (lambda: hint("ulps"), "Did you mean `ulp`?"),
    ],
)
def test_a_wrong_call_of_check_is_reported_in_one_line(call: Any, told: str) -> None:
    with pytest.raises(CourseError, match=r".") as error:
        call()
    assert told in str(error.value)
    assert error.value._render_traceback_() == [str(error.value)]


def test_hints_come_one_by_one_and_the_last_stays() -> None:
    texts = [repr(hint("max_finite")) for _ in range(4)]
    assert [text[:11] for text in texts] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]
    assert "<script" not in hint("max_finite")._repr_html_()


def test_first_lines_of_several_cases_are_shown_once() -> None:
    start = "x = [1,\n     2]\ny = f(x)\n"
    calls = {"a": f"{start}y.sum", "b": f"{start}y.max", "c": "x = [3]\ny = f(x)\ny.min"}
    cases = tuple(CaseResult(name, False, f"message {name}", call) for name, call in calls.items())
    report = Report("f", 0.0, 1, False, cases)
    assert str(report).count("y = f(x)") == report._repr_html_().count("y = f(x)") == 2
    assert "✗ b\n    The first 3 lines of “a”, then:\n    y.max\n" in str(report)
