"""A gradebook on a PostgreSQL server, for plain nbgrader and for `lmcourse grade`: the same marks as in a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin

from lmcourse.grading.batch import Pool
from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.environment import SEED, run_seed
from lmcourse.grading.grader import grade
from lmcourse.grading.record import record
from tests.grading.postgres import Server, find_programs, running_server
from tests.grading.real_course import RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

SOLVED = ("decimal_error", "max_finite")
SOFTMAX_OF_ONE_MAXIMUM = """
def stable_softmax(logits):
    weights = (logits - logits.max()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
"""


@pytest.fixture(scope="module")
def server(in_ci: bool) -> Iterator[Server]:
    """A PostgreSQL server. Without one a person's run skips these tests; CI's fails."""
    programs = find_programs()
    if programs is None:
        missing = "there is no PostgreSQL server (on Debian and Ubuntu: apt install postgresql)"
        if in_ci:
            pytest.fail(f"The tests of PostgreSQL cannot run: {missing}")
        pytest.skip(f"The tests of PostgreSQL are left out: {missing}")
    with running_server(programs) as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def same_questions() -> Iterator[None]:
    """All runs ask the same, so that their marks can be compared."""
    run_seed.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SEED, "1806")
        yield
    run_seed.cache_clear()


def answered(course: RealCourse, *names: str) -> NotebookNode:
    """A notebook with little in it but some answers, which is soon examined."""
    notebook = course.partly(*names)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = [cell for cell in code if cell is code[0] or cell["id"] in (*names, "stable_softmax")]
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> RealCourse:
    """Two learners have handed in: one has some of it right, the other half of an answer."""
    course = RealCourse(tmp_path_factory.mktemp("course").resolve())
    course.submit("ada", answered(course, *SOLVED))
    half = answered(course, SOLVED[0])
    half.cells[-1].source = SOFTMAX_OF_ONE_MAXIMUM
    course.submit("bob", half)
    return course


@pytest.fixture(scope="module")
def url(server: Server, course: RealCourse) -> str:
    """The gradebook on the server; plain nbgrader has put the marks there."""
    url = server.new_database()
    course.nbgrader("generate_assignment", course.chapter.id, "--force", "--db", url)
    course.nbgrader("autograde", course.chapter.id, "--db", url)
    return url


def test_marks_on_a_server_equal_those_in_a_file(course: RealCourse, url: str, pool: Pool) -> None:
    on_server = course.marks(url)
    assert on_server["ada"] == course.expected(SOLVED)
    assert 0 < on_server["bob"]["stable_softmax"] < course.points["stable_softmax"]
    in_file = grade([course.root / "submitted"], course=course.root, pool=pool)
    assert on_server == {result.student: result.exercises for result in in_file}


def test_feedback_and_export_read_the_server(course: RealCourse, url: str) -> None:
    config = nbgrader_configuration(course.root, url)
    config.CourseDirectory.assignment_id = course.chapter.id
    GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    page = (course.root / "feedback" / "bob" / course.chapter.id / course.name).with_suffix(".html").read_text()
    assert "The maximum of the whole tensor is not enough" in page
    export = CsvExportPlugin(to=str(course.root / "grades.csv"))
    with Gradebook(url) as book:
        export.export(book)
    with (course.root / "grades.csv").open(newline="") as file:
        exported = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert exported == {student: sum(marks.values()) for student, marks in course.marks(url).items()}


def test_lmcourse_grade_records_on_the_server(course: RealCourse, url: str, pool: Pool) -> None:
    """What was handed in anew gets its marks there, and everybody else keeps theirs."""
    before = course.marks(url)
    course.submit("ada", answered(course, *SOLVED, "ulp"))
    results = record([course.root / "submitted"], course=course.root, pool=pool, db=url)
    after = course.marks(url)
    assert after == {"ada": course.expected((*SOLVED, "ulp")), "bob": before["bob"]}
    assert after == {result.student: result.exercises for result in results}


def test_no_gradebook_was_left_in_a_file(course: RealCourse, url: str) -> None:
    assert not list(course.root.rglob("*.db"))
