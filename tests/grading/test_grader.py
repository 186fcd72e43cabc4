"""`lmcourse grade` on the real notebook 01: perfect, blank, half-solved and broken, by file and by folder."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from lmcourse.course import find_chapter
from lmcourse.errors import CourseError
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.batch import ExaminationSettings, Pool
from lmcourse.grading.config import nbgrader_configuration
from lmcourse.grading.grader import GradingOptions, grade, grade_all
from lmcourse.grading.intake.submissions import Submission, assignments
from lmcourse.grading.private_folders import private_folders
from lmcourse.grading.result import SubmissionResult
from lmcourse.grading.sandbox import isolation
from lmcourse.grading.workspace import NbgraderWorkspace
from tests.grading.tiny_course import REPOSITORY, Course, tiny_notebook

CHAPTER = find_chapter("01-floating-point")
SOURCE = REPOSITORY / "solutions" / CHAPTER.id / f"{CHAPTER.topic}.ipynb"
RELEASE = REPOSITORY / "notebooks" / CHAPTER.id / SOURCE.name
POINTS = {exercise.name: float(exercise.points) for exercise in exercises_of(CHAPTER)}
SOLVED = ("decimal_error", "max_finite")

SOFTMAX_OF_ONE_MAXIMUM = """
def stable_softmax(logits):
    weights = (logits - logits.max()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
"""


@dataclass
class Graded:
    """What `grade` gave, by student."""

    results: dict[str, SubmissionResult]

    def __getitem__(self, student: str) -> SubmissionResult:
        return self.results[student]


def notebook(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def half_solved() -> NotebookNode:
    """Two exercises right, one a known mistake, one another's answer, the others untouched."""
    right = {cell["id"]: cell.source for cell in notebook(SOURCE).cells}
    half = notebook(RELEASE)
    for cell in half.cells:
        if cell["id"] in SOLVED:
            cell.source = right[cell["id"]]
        elif cell["id"] == "stable_softmax":
            cell.source = SOFTMAX_OF_ONE_MAXIMUM
        elif cell["id"] == "ulp":
            cell.source = "ulp = max_finite"
    return half


def digests(*folders: Path) -> dict[Path, str]:
    files = [path for folder in folders for path in [folder, *folder.rglob("*")] if path.is_file()]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, pool: Pool) -> Graded:
    folder = tmp_path_factory.mktemp("handed in")
    own = folder / "my notes (2).ipynb"
    nbformat.write(notebook(SOURCE), own)
    group = folder / "class"
    crash = copy.deepcopy(notebook(RELEASE))
    crash.cells.insert(0, nbformat.v4.new_code_cell("import os; os._exit(1)"))
    submissions = {
        "blank": json.dumps(notebook(RELEASE)),
        "half (x), 1": json.dumps(half_solved()),
        "crash": json.dumps(crash),
        "broken": "{not json",
    }
    for student, text in submissions.items():
        place = group / student / CHAPTER.id / ("renamed.ipynb" if student == "blank" else SOURCE.name)
        place.parent.mkdir(parents=True)
        place.write_text(text)
    (group / "missing" / CHAPTER.id).mkdir(parents=True)
    (group / "lost" / "1-floats").mkdir(parents=True)
    stranger = folder / "stranger.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), stranger)
    before = digests(folder, SOURCE.parent)
    results = grade([own, group, stranger], course=REPOSITORY, pool=pool)
    assert digests(folder, SOURCE.parent) == before
    *known, last = results
    return Graded({each.student: each for each in known} | {"stranger": last})


def test_a_learner_s_own_perfect_notebook_earns_all_points_under_any_name(graded: Graded) -> None:
    mine = graded["me"]
    assert mine.exercises == POINTS
    assert (mine.assignment, mine.score, mine.max_score) == (CHAPTER.id, sum(POINTS.values()), sum(POINTS.values()))
    assert mine.reason == "Every check passed."


def test_an_untouched_notebook_earns_nothing(graded: Graded) -> None:
    assert graded["blank"].exercises == dict.fromkeys(POINTS, 0.0)
    assert "not answered" in graded["blank"].reason


def test_a_half_solved_notebook_earns_what_is_solved_and_says_what_is_wrong(graded: Graded) -> None:
    half = graded["half (x), 1"]
    assert {name for name, points in half.exercises.items() if points == POINTS[name]} == set(SOLVED)
    assert 0 < half.exercises["stable_softmax"] < POINTS["stable_softmax"]
    assert half.exercises["ulp"] == 0  # although `max_finite` itself is right
    assert half.reason.startswith(f"2 of {len(POINTS)} exercises earn all their points.")


def test_what_cannot_be_graded_gets_zero_of_the_maximum_and_a_reason(graded: Graded) -> None:
    reasons = {
        "broken": "cannot be read as a notebook",
        "crash": "ended Python itself",
        "missing": f"{SOURCE.name} is missing",
    }
    for student, reason in reasons.items():
        result = graded[student]
        assert (result.score, result.max_score) == (0, sum(POINTS.values()))
        assert result.exercises == dict.fromkeys(POINTS, 0.0)
        assert reason in result.reason


def test_what_belongs_nowhere_says_so(graded: Graded) -> None:
    assert "There is no assignment 1-floats" in graded["lost"].reason
    assert "belongs to no assignment" in graded["stranger"].reason


def test_every_result_is_one_line_and_json(graded: Graded) -> None:
    for result in graded.results.values():
        assert result.reason
        assert "\n" not in result.reason
        data = json.loads(json.dumps(result.to_json()))
        assert list(data) == [
            *("student", "assignment", "score", "max_score", "exercises", "reason", "evidence"),
            *("late_seconds", "late_penalty", "late", "regrade_requests"),
        ]


def test_a_run_is_asked_alike_and_can_be_repeated(graded: Graded) -> None:
    seeds = {graded[student].seed for student in ("me", "blank", "half (x), 1")}
    assert len(seeds) == 1
    assert seeds != {None}


def test_a_wrong_path_is_told_in_one_line(tmp_path: Path) -> None:
    for path, told in ((tmp_path / "no.ipynb", "There is no file"), (tmp_path, "There are no submissions")):
        with pytest.raises(CourseError, match=told):
            grade([path], course=REPOSITORY)
    with pytest.raises(CourseError, match="lmcourse build"):
        grade([tmp_path], course=tmp_path)


@pytest.mark.parametrize(
    ("does", "packages"),
    [
        ("import lmcourse.grading.examination.child", {"nbgrader", "nbformat", "nbconvert"}),
        ("import lmcourse.grading.config as writer; writer.nbgrader_configuration(writer.Path())", {"torch"}),
        (
            "import lmcourse.grading.batch.worker; from lmcourse.exercises import registry; registry.all_exercises()",
            {"torch._dynamo", "matplotlib", "IPython", "nbgrader"},
        ),
    ],
    ids=["of a notebook", "that writes marks", "that judges"],
)
def test_a_process_loads_nothing_that_it_does_not_need(does: str, packages: set[str]) -> None:
    """The first must not know nbgrader; the others, and each `nbgrader` command, would begin seconds later."""
    code = f"import sys; {does}; print({packages} & {{*sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


@pytest.fixture(scope="module")
def feedback_page(tmp_path_factory: pytest.TempPathFactory, pool: Pool) -> tuple[str, int]:
    """The feedback of the half-solved notebook, and the seed it was judged with."""
    from nbgrader.converters import GenerateFeedback

    root = tmp_path_factory.mktemp("workspace").resolve()
    private = private_folders(nbgrader_configuration(REPOSITORY))
    workspace = NbgraderWorkspace.temporary(root, ExaminationSettings("bubblewrap", seed=11, private=private))
    assignment = assignments(REPOSITORY)[CHAPTER.id]
    handed_in = root / "half.ipynb"
    nbformat.write(half_solved(), handed_in)
    workspace.copy_source(assignment)
    workspace.add_assignment(assignment)
    half = Submission("half", assignment, handed_in)
    [(_, result)] = grade_all(workspace, {half: "half"}, pool, lambda done, of: None)
    assert not result.failed
    GenerateFeedback(coursedir=workspace.course, config=workspace.config).start()
    html = (root / "feedback" / "half" / CHAPTER.id / SOURCE.with_suffix(".html").name).read_text()
    return html, workspace.graded("half", assignment).metadata["lmcourse"]["seed"]


def test_feedback_draws_each_report(feedback_page: tuple[str, int]) -> None:
    soup = BeautifulSoup(feedback_page[0], "html.parser")
    reports = {section["aria-label"].split(":")[0]: section for section in soup.select("section[role=status]")}
    assert reports.keys() == POINTS.keys()
    assert "The maximum of the whole tensor is not enough" in reports["stable_softmax"].text
    assert "border-left" in reports["stable_softmax"]["style"]


def test_feedback_tells_no_hidden_case(feedback_page: tuple[str, int]) -> None:
    html, seed = feedback_page
    text = BeautifulSoup(html, "html.parser").text
    assert "hidden: " in text  # the categories are told
    public = {case.call(each.name) for each in exercises_of(CHAPTER) for case in each.cases}
    for exercise in exercises_of(CHAPTER):
        hidden = {case.call(exercise.name) for case in exercise.hidden(seed)} - public
        assert not [call for call in hidden if call in text]
    assert "hidden=True" not in text


def test_a_cluster_s_machines_say_themselves_whether_they_have_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "isolation_problem", lambda: "there is no bubblewrap.")
    assert GradingOptions(scheduler="tcp://somewhere:8786").examination_settings(1).isolation == "bubblewrap"
    with pytest.raises(CourseError, match="cannot be locked in here: there is no bubblewrap"):
        GradingOptions().examination_settings(1)


def test_a_notebook_with_checks_of_its_own_is_graded_only_where_nothing_is_locked_in(tmp_path: Path) -> None:
    course = Course(tmp_path.resolve())
    course.source.rename(course.source.with_name("own.ipynb"))
    course.submit("ada", tiny_notebook(), "own.ipynb")
    [locked] = grade([tmp_path / "submitted"], course=tmp_path)
    assert (locked.score, locked.max_score) == (0, 6)
    assert locked.reason.startswith("01-tiny is no notebook of this course: its checks would run in one process")
    [free] = grade([tmp_path / "submitted"], course=tmp_path, options=GradingOptions(isolation="process"))
    assert (free.score, free.reason) == (6, "Every check passed.")


def test_without_bubblewrap_nbgrader_stops_before_it_touches_a_submission(tmp_path: Path) -> None:
    course = Course(tmp_path.resolve())
    course.submit("ada", tiny_notebook())
    (tmp_path / "no programs").mkdir()
    ran = course.nbgrader("autograde", "01-tiny", PATH=str(tmp_path / "no programs"))
    assert ran.returncode == 1
    told = ran.stderr.splitlines()[-1]
    assert told.startswith("Submissions cannot be locked in here: bubblewrap is not installed")
    assert "--ExamineNotebook.isolation=process; it limits only time and output" in told
    assert not (tmp_path / "autograded").exists()
