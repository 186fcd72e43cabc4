"""What a term asks of grading beside points: due dates, one student at a time, feedback that is released."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell

from lmcourse.grading.batch import Pool
from lmcourse.grading.cells import METADATA_KEY
from lmcourse.grading.grader import grade
from lmcourse.grading.record import record
from tests.grading.real_course import RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

SOME = ("decimal_error", "max_finite")

PENALTIES = """
from nbgrader.plugins import LateSubmissionPlugin

class APointAnHour(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 1.5 * total_seconds_late // 3600

c.AssignLatePenalties.plugin_class = APointAnHour
c.Exchange.root = "{exchange}"
c.Exchange.cache = "{exchange}-cache"
"""

REQUESTS = (
    "# regrade 08 causal_mask: one token sees itself,\nand so says the <b>formula</b>",
    "**Regrade** 01-floating-point `ulp`: =HYPERLINK(1)\n\nregrade 99 nothing: no such notebook",
    "I regrade 08 my own work: not a request",
)

TIMES = {
    "ada": "2026-03-01 11:59:59 UTC",
    "bob": "2026-03-01 14:00:00.5 UTC",
    "cyd": "yesterday, I swear",
    "dan": "2999-01-01 00:00:00 UTC",
    "eve": "1999-01-01 00:00:00 UTC",
    "fay": "2026-03-01 14:00:00 /proc/self/mem",
}
NOT_BELIEVED = {"cyd": "it holds no date", "dan": "it is in the future", "eve": "it is before the release"}


TASK = (
    "Why are there two zeros?\n\n### BEGIN MARK SCHEME\n2 points for the limits from both sides.\n### END MARK SCHEME"
)

TASK_MARKS = {
    "schema_version": 3,
    **{"grade_id": "why", "task": True, "locked": True, "grade": False, "solution": False, "points": 2},
}


class Term(RealCourse):
    """A course in the middle of a term, and what its first run said."""

    first: dict[str, dict[str, Any]]
    said: str


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Term:
    course = Term(tmp_path_factory.mktemp("term").resolve())
    exchange = tmp_path_factory.mktemp("exchange")
    exchange.chmod(0o777)
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(PENALTIES.format(exchange=exchange))
    solutions = course.solved()
    solutions.cells.insert(2, new_markdown_cell(TASK, metadata={"nbgrader": TASK_MARKS}, id="why"))
    nbformat.write(solutions, course.root / "solutions" / course.chapter.id / course.name)
    course.nbgrader("db", "assignment", "add", course.chapter.id, "--duedate", "2026-03-01 12:00:00 UTC")
    for student, time in TIMES.items():
        (course.submit(student, course.partly(*SOME)).parent / "timestamp.txt").write_text(time)
    asks = course.partly(*SOME)
    asks.cells += [new_markdown_cell(text) for text in REQUESTS]
    course.submit("bob", asks)
    for student, seconds in {"cyd": 1_772_362_800, "dan": 1_772_380_800, "eve": 0, "fay": 0}.items():
        path = course.root / "submitted" / student / course.chapter.id / course.name
        os.utime(path, (seconds, seconds))  # cyd saved it at 11:00, dan at 16:00 of that day
    ran = course.grade("--workers", "1", "--report", "report")
    assert ran.returncode == 0, ran.stderr
    course.first = {one["student"]: one for one in json.loads(ran.stdout)}
    return course


def test_who_is_late_is_told_and_loses_points(course: Term) -> None:
    full = sum(course.expected(SOME).values())
    assert {one["max_score"] for one in course.first.values()} == {sum(course.points.values()) + 2}
    late = {name: (one["late_seconds"], one["late_penalty"], one["score"]) for name, one in course.first.items()}
    assert late == {
        "ada": (0, 0, full),
        "bob": (7200.5, 3, full - 3),
        "cyd": (0, 0, full),
        "dan": (4 * 3600, min(6, full), max(full - 6, 0)),
        "eve": (0, 0, full),
        "fay": (0, 0, full),
    }
    assert course.first["bob"]["reason"].endswith("Late by 2 h, penalty 3 points.")
    assert "Late" not in course.first["ada"]["reason"]


def test_a_time_that_cannot_be_is_not_believed_and_stops_nobody(course: Term) -> None:
    for student, why in NOT_BELIEVED.items():
        assert f"timestamp.txt is not believed ({why}); " in course.first[student]["reason"]
    assert "is when the notebook was saved, 2026-03-01 11:00 UTC." in course.first["cyd"]["reason"]
    assert "Late by 4 h" in course.first["dan"]["reason"]
    for student in ("eve", "fay"):
        assert course.first[student]["reason"].endswith("when the notebook came is unknown.")


def test_the_gradebook_and_its_export_have_the_penalty(course: Term) -> None:
    course.nbgrader("export", "--to", "grades.csv")
    rows = [line.split(",") for line in (course.root / "grades.csv").read_text().splitlines()]
    header = rows[0]
    table = {row[header.index("student_id")]: dict(zip(header, row, strict=True)) for row in rows[1:]}
    assert {name: float(row["score"]) for name, row in table.items()} == {
        name: one["score"] for name, one in course.first.items()
    }
    assert float(table["bob"]["late_submission_penalty"]) == 3


def test_the_report_lists_who_is_late(course: Term) -> None:
    page = (course.root / "report" / "report.html").read_text()
    assert "Late by 2 h, penalty 3 points." in page
    assert "timestamp.txt is not believed (it is in the future)" in page
    [head, *rows] = (course.root / "report" / "students.csv").read_text().splitlines()
    names = head.replace('"', "").split(",")
    [bob] = [row.replace('"', "").split(",") for row in rows if '"bob"' in row]
    assert bob[names.index("late_penalty")] == "3"
    assert bob[names.index("late_seconds")] == "7200.5"


def test_requests_to_grade_again_are_listed(course: Term) -> None:
    found = [(one["assignment"], one["exercise"], one["known"]) for one in course.first["bob"]["regrade_requests"]]
    assert found == [("08-attention", "causal_mask", True), ("99", "nothing", False)]
    assert all(one["regrade_requests"] == [] for name, one in course.first.items() if name != "bob")
    page = (course.root / "report" / "report.html").read_text()
    assert "08-attention <code>causal_mask</code>: <bdi>one token sees itself,</bdi>" in page
    assert "99 <code>nothing</code> (no exercise of that notebook)" in page
    assert "one token sees itself" in (course.root / "report" / "students.csv").read_text()


def test_plain_nbgrader_believes_the_same(course: Term) -> None:
    """Its own command ends at the first text that is no date."""
    ran = course.nbgrader("autograde", course.chapter.id, "--student", "cyd", "--force")
    assert "timestamp.txt is not believed (it holds no date)" in ran.stderr
    assert course.marks()["cyd"] == course.expected(SOME) | {"why": 0}


def test_one_student_is_graded_alone(course: Term, pool: Pool) -> None:
    """By the folder of the student or of the assignment, for the record or not, and asked the same as the others."""
    course.submit("gus", course.partly(*course.points))
    [gus] = record([course.root / "submitted" / "gus"], course=course.root, pool=pool)
    assert (gus.student, gus.exercises) == ("gus", course.points | {"why": 0})
    assert course.marks()["gus"] == course.points | {"why": 0}
    assert gus.reason.endswith(" why: graded by hand.")
    seeds = {nbformat.read(course.graded(one), 4).metadata[METADATA_KEY]["seed"] for one in ("ada", "gus")}
    assert len(seeds) == 1
    alone = course.root / "submitted" / "ada" / course.chapter.id
    [ada] = record([alone], course=course.root, pool=pool)
    assert (ada.student, ada.to_json()) == ("ada", course.first["ada"])
    [bob] = grade([course.root / "submitted" / "bob" / course.chapter.id], course=course.root, pool=pool)
    assert (bob.student, bob.exercises) == ("bob", course.first["bob"]["exercises"])


def test_a_question_is_graded_by_hand_beside_its_rubric(course: Term, pool: Pool) -> None:
    """nbgrader puts the rubric back into the graded notebook, which the formgrader shows; the learner's cell is new."""
    from nbgrader.api import Gradebook

    assert "mark scheme" not in (course.root / "notebooks" / course.chapter.id / course.name).read_text().lower()
    assert "2 points for the limits from both sides." in course.graded("bob").read_text()
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as book:
        grade = book.find_grade("why", course.chapter.topic, course.chapter.id, "bob")
        assert grade.needs_manual_grade
        grade.manual_score = 1
        book.db.commit()
    [bob] = record([course.root / "submitted" / "bob"], course=course.root, pool=pool)
    assert (bob.exercises["why"], bob.score) == (1, course.first["bob"]["score"] + 1)


def test_feedback_is_released_for_work_placed_by_hand(course: Term, pool: Pool) -> None:
    secret = "the exchange's own"
    folder = course.root / "submitted" / "bob" / course.chapter.id
    (folder / "submission_secret.txt").write_text(secret)
    bob = folder / course.name
    bob.write_text(bob.read_text() + "\n")  # handed in again: through the exchange this time
    record([folder], course=course.root, pool=pool)
    course.nbgrader("generate_feedback", course.chapter.id)
    page = (course.root / "feedback" / "bob" / course.chapter.id / course.name).with_suffix(".html").read_text()
    assert "2 points for the limits from both sides." in page
    index = page[page.index('<div id="toc">') : page.index("</div>", page.index('<div id="toc">'))]
    entries = re.findall(r'<li><a href="#check_(\w+)"><code>(\w+)</code></a> \((\S+) of (\S+) points\)', index)
    marks = course.expected(SOME)
    assert [entry for entry in entries if entry[0] == "why"] == []
    assert re.search(r"<code>why</code></a>, task \([01] of 2 points\)", index)
    assert [entry[0] for entry in entries] == [entry[1] for entry in entries] == [*course.points]
    assert {name: float(earned) for name, _, earned, _ in entries} == marks
    assert {name: float(most) for name, _, _, most in entries} == course.points
    assert "Test cell" not in index
    assert "Late submission penalty (-3 points)" in index
    said = course.nbgrader("release_feedback", course.chapter.id).stderr
    assert (course.root / "feedback" / "bob" / course.chapter.id / "submission_secret.txt").read_text() == secret
    assert f"ada/{course.chapter.id} was put into submitted/ by hand" in said
    assert f"bob/{course.chapter.id} was put" not in said
    [exchange] = course.root.parent.glob("exchange?")
    assert len(list(exchange.glob("lmcourse/feedback/*.html"))) == len(course.marks())
