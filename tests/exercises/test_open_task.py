"""An open task is measured: bands give points, the report shows the numbers, and grading measures again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lmcourse.check_tests.answers import AnswerCell
from lmcourse.check_tests.prove import prove
from lmcourse.course.chapters import Chapter
from lmcourse.exercises import check_exercise, checking, later_cells
from lmcourse.exercises.open_task import Band
from lmcourse.report import Report
from tests.exercises.toy import shrinking

PRINTED = "def shrink(seed):\n    return 0.1\n"
STUB = "def shrink(seed):\n    raise NotImplementedError\n"


def raising(seed: int) -> float:
    raise ValueError(f"seed {seed}")


def unwritten(seed: int) -> float:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "public", "graded", "said"),
    [
        (lambda seed: seed, 1, 1, "yours 1.00"),
        (lambda seed: seed / 3, 3, 1, "passes: it runs (1 point), mean at most 0.9 (1 point)"),
        (lambda seed: (seed + 1) / 10, 3, 3, "all passed"),
        (lambda seed: 0.504, 3, 3, "all passed"),  # numbers count as shown
        (lambda seed: 0.506, 2, 2, "yours mean 0.51, last 0.51"),
        (lambda seed: math.nan, 1, 1, "yours not a number"),
        (lambda seed: seed - 1, 0, 0, "→ At 0 your answer is negative."),
        (lambda seed: "0.1", 0, 0, "TypeError"),
        (raising, 0, 0, "ValueError: seed 0, in line"),
        (unwritten, 0, 0, "Nothing here yet"),
    ],
)
def test_bands_give_points(answer: Callable[..., Any], public: float, graded: float, said: str) -> None:
    reports = [check_exercise(shrinking(), answer, hidden=hidden) for hidden in (False, True)]
    assert [report.points for report in reports] == [public, graded]
    assert said in str(reports[0])


def test_table_has_the_baseline_the_answer_and_the_finish_line() -> None:
    report = check_exercise(shrinking(), lambda seed: 2 * seed, hidden=True)
    assert report.table == (
        ("", "mean", "last"),
        ("the seed", "1.00", "2.00"),
        ("yours, seeds 0 to 2", "2.00", "4.00"),
        ("yours, seeds 3 to 5", "8.00", "10.00"),
        ("finish line", "0.50", ""),
    )
    assert "  yours, seeds 0 to 2  2.00   4.00\n" in str(report)
    assert report._repr_html_().count("<tr>") == 5
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert check_exercise(shrinking(), lambda seed: 0.1).table[2] == ("yours, seeds 0 to 2", "0.10", "0.10")


def test_column_of_counts_is_shown_in_full() -> None:
    exercise = shrinking()
    exercise.task = replace(exercise.task, baseline={"the seed": {"mean": 1.0, "last": 2}})
    assert check_exercise(exercise, lambda seed: 1000 * seed).table[2][1:] == ("1,000.00", "2,000")


def test_valid_answer_that_reaches_no_limit_is_told_so() -> None:
    exercise = shrinking()
    exercise.task = replace(exercise.task, bands=exercise.task.bands[1:])
    assert "none of the steps below" in check_exercise(exercise, lambda seed: 1000 * seed).diagnosis


@pytest.mark.parametrize(("others", "said"), [(7.0, "At 100 your answer is 7."), (0.1, "")])
def test_remark_is_shown_until_all_bands_are_reached(others: float, said: str) -> None:
    report = check_exercise(shrinking(), lambda seed: 7.0 if seed == 100 else others)
    assert (report.diagnosis, report.notes) == (said, ())


def proof_of(**changed: Any) -> Any:
    exercise = shrinking()
    exercise.ideas = [replace(idea, **changed) for idea in exercise.ideas] if changed else exercise.ideas
    return prove({Chapter("99-toy", "Toy", "0"): [AnswerCell(exercise, PRINTED, STUB, {"__name__": "__main__"})]})


def test_proof_measures_each_idea() -> None:
    proof = proof_of()
    assert proof.proved
    assert [(one.idea, one.public_points, one.graded_points) for one in proof.ideas] == [
        ("the seed", 1, 1),
        ("a tenth", 3, 3),
        ("twice as much", 1, 1),
    ]
    assert proof.ideas[1].measured == "yours, seeds 0 to 2, 0.10, 0.20; yours, seeds 3 to 5, 0.40, 0.50"
    assert not proof_of(points=3).proved, "the seed earns 1"


def test_proof_reports_a_mistake_that_the_inspection_does_not_name() -> None:
    exercise = shrinking()
    exercise.slips(exercise.ideas[1].written, {"seed / 10 → -1": "Another sentence."})
    cell = AnswerCell(exercise, PRINTED, STUB, {"__name__": "__main__"})
    assert not prove({Chapter("99-toy", "Toy", "0"): [cell]}).proved


def test_bands_add_up_to_the_points() -> None:
    exercise = shrinking()
    assert exercise.task is not None
    exercise.task = replace(exercise.task, bands=[*exercise.task.bands, Band(1)])
    with pytest.raises(ValueError, match="do not add up to 3"):
        exercise.__post_init__()


def test_later_cell_runs_any_valid_answer_or_the_baseline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exercise = shrinking()
    monkeypatch.setattr(later_cells, "find_exercise", lambda name: exercise)
    monkeypatch.setattr(checking, "_reports", {})
    for answer, line in (("seed", "with your `shrink`"), ("-1", "with the baseline of `shrink`: yours does not pass")):
        names: dict[str, Any] = {"__name__": "__main__", "your": later_cells.your}
        exec(f"def shrink(seed):\n    return {answer}\nwith your('shrink'):\n    found = shrink(5)\n", names)
        assert capsys.readouterr().out.startswith(line)
        assert names["found"] == 5, "the baseline returns the seed"
