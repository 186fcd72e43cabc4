"""Test a teacher's own notebooks: any folder, exercises next to the source, learners with only the release."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lmcourse.authoring.build import build, check_built
from lmcourse.authoring.folders import chapters_in
from lmcourse.base.errors import CourseError
from lmcourse.cli import main
from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import exercises_beside, exercises_of
from lmcourse.exercises.released import read_released
from lmcourse.exercises.values import same

pytestmark = pytest.mark.prove

CONFIG = """\
from pathlib import Path
from lmcourse.grading.config import configure
configure(get_config(), Path(__file__).parent)
"""

EXERCISES = '''
from __future__ import annotations

from dataclasses import dataclass

import torch

from lmcourse.exercises import Exercise, Tolerance, case, script, value_exercise

SIDES = ["left", "right"]


@dataclass
class Row:
    """A dataclass looks for the module that it is in."""

    size: int


class Adder:
    def __init__(self):
        self.total = 0

    def add(self, x):
        self.total += x


def _scaled(x, by=2.0):
    if by == 0:
        raise ValueError("by nothing")
    return {"sum": (x * by).sum(), (1, "two"): x * by}


scaled = Exercise(
    "stable_softmax", points=4, minutes=5, difficulty=2, reference=_scaled,
    cases=[
        case("two", torch.tensor([1.0, 2.5], dtype=torch.bfloat16)),
        case("half", torch.tensor([[1.0, 3.0]]).mT, by=0.5),
        case("by nothing", torch.ones(2), by=0),
    ],
    hidden_cases=lambda random: [case("SECRET names", torch.rand(3)), case("bad input", torch.rand(3), by=0)],
    hints=["Multiply first.", "Then add."], forbid=["torch.nn"], tolerance=Tolerance(0.01), seconds=3.0,
)


@scaled.misconception("You divide: multiply.")
def divided(x, by=2.0):
    return {"sum": (x / by).sum(), (1, "two"): x / by}


@scaled.misconception("You forget the sum.")
def no_sum(x, by=2.0):
    return {"sum": x * by, (1, "two"): x * by}


adder = Exercise(
    "Adder", points=1, minutes=2, difficulty=1, reference=Adder,
    cases=[script("two numbers", "a = Adder()\\na.add(2)\\na.add(3)\\na.total")],
)
days = value_exercise("days", points=1, minutes=2, difficulty=1, reference=lambda: 3)
days.wrong_value(4, "You count the first day twice.")
left_out = value_exercise("left_out", points=7, minutes=2, difficulty=1, reference=lambda: 3)

EXERCISES = (scaled, adder, days, left_out)
'''

SOURCE = """
# %% [markdown]
# # Warm-up
#
# **20 min · 1 exercise · 1 point**

# %%
import torch
from lmcourse.notebook import check, hint, start

start("w1-warmup")

# %%
print("a demonstration")

# %% [markdown]
# ### Exercise 1 · Scaled  (4 points · 5 min · ●●)

# %% exercise="stable_softmax"
def stable_softmax(x, by=2.0):
    ### BEGIN SOLUTION
    if by == 0:
        raise ValueError("SECRET")
    return {"sum": (x * by).sum(), (1, "two"): x * by}
    ### END SOLUTION

# %% check="stable_softmax"
check(stable_softmax)
### BEGIN HIDDEN TESTS
check(stable_softmax, hidden=True)
### END HIDDEN TESTS

# %% exercise="Adder"
class Adder:
    def __init__(self):
        self.total = 0

    def add(self, x):
        ### BEGIN SOLUTION
        self.total += x
        ### END SOLUTION

# %% check="Adder"
check(Adder)
### BEGIN HIDDEN TESTS
check(Adder, hidden=True)
### END HIDDEN TESTS

# %% exercise="days"
days = None
### BEGIN SOLUTION
days = 1 + 2
### END SOLUTION

# %% check="days"
check(days=days)
### BEGIN HIDDEN TESTS
check(days=days, hidden=True)
### END HIDDEN TESTS
"""

PLAIN = new_notebook(cells=[new_code_cell("assert 1")])

LEARNER = """
from lmcourse.notebook import check, hint, start
from lmcourse.base.errors import CourseError

start("w1-warmup")

def stable_softmax(x, by=2.0):
    if by == 0:
        raise ValueError
    return {"sum": (x * by).sum(), (1, "two"): x * by}

class Adder:
    def __init__(self):
        self.total = 0
    def add(self, x):
        self.total += x

right = check(stable_softmax)
assert right.points == 4 and right.groups == (3, 3), right
assert "Grading adds 2 cases (SECRET names, bad input)." in str(right), right
assert "hidden=True" not in str(right)
assert check(Adder).passed and check(days=3.0).passed
wrong = check(days=4)
assert wrong.points == 0 and wrong.mistake == "You count the first day twice.", wrong
assert str(hint("stable_softmax")).startswith("Hint 1 of 2: Multiply first.")

def stable_softmax(x, by=2.0):
    return {"sum": (x / by).sum(), (1, "two"): x / by}

wrong = check(stable_softmax)
assert wrong.mistake == "You divide: multiply." and wrong.points == 0, wrong

def stable_softmax(x, by=2.0):
    import torch
    torch.nn.Linear(1, 1)
    return {}

assert "without `torch.nn" in check(stable_softmax).diagnosis
for call in (lambda: check(stable_softmax, hidden=True), lambda: check(days=3, hidden=True)):
    try:
        call()
    except CourseError as error:
        assert "belong to the teacher" in str(error) and "\\n" not in str(error)
    else:
        raise AssertionError
def ulp(x):
    return x
assert check(ulp).exercise == "ulp"  # the course's own are known, too
print("ALL WELL")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher's built course folder, which tests must not change."""
    root = tmp_path_factory.mktemp("teacher")
    folder = root / "solutions" / "w1-warmup"
    folder.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG)
    (folder / "warmup.py").write_text(SOURCE)
    (folder / "exercises.py").write_text(EXERCISES)
    (root / "solutions" / "w2-plain").mkdir()
    nbformat.write(PLAIN, root / "solutions" / "w2-plain" / "plain.ipynb")
    assert main(["--course", str(root), "build"]) == 0
    return root


@pytest.fixture
def course(built: Path, tmp_path: Path) -> Path:
    """A copy of the folder, which a test may change."""
    return Path(shutil.copytree(built, tmp_path / "course"))


def test_both_notebooks_and_the_exercises_are_built(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(str(path.relative_to(built)) for path in built.rglob("*") if path.is_file())
    assert files == [
        "nbgrader_config.py",
        "notebooks/w1-warmup/warmup.ipynb",
        "solutions/w1-warmup/exercises.py",
        "solutions/w1-warmup/warmup.ipynb",
        "solutions/w1-warmup/warmup.py",
        "solutions/w2-plain/plain.ipynb",
    ]
    solution = nbformat.read(built / "solutions/w1-warmup/warmup.ipynb", as_version=4)
    assert "**20 min · 3 exercises · 6 points**" in solution.cells[0].source
    reports = [cell.outputs[-1].data["text/plain"] for cell in solution.cells if cell.id.startswith("check_")]
    assert reports == ["4", "1", "1"]
    capsys.readouterr()
    for names in ([], ["w1-warmup"]):
        assert main(["--course", str(built), "build", "--check", *names]) == 0
        assert capsys.readouterr().out == "Every notebook is up to date.\n"


def test_printed_solution_that_loses_points_is_not_released(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = course / "solutions" / "w1-warmup" / "warmup.py"
    source.write_text(SOURCE.replace("days = 1 + 2", "days = 1 + 3"))
    released = (course / "notebooks/w1-warmup/warmup.ipynb").read_bytes()
    assert main(["--course", str(course), "build"]) == 2
    line = SOURCE.split("\n").index('# %% check="days"') + 1
    assert f"warmup.py:{line}: the printed solution of `days` earns 0 of 1 points." in capsys.readouterr().err
    assert (course / "notebooks/w1-warmup/warmup.ipynb").read_bytes() == released


DOUBTFUL = """
@scaled.misconception("You write it in another order.")
def other_order(x, by=2.0):
    if by == 0:
        raise ValueError
    return {(1, "two"): by * x, "sum": (by * x).sum()}


@scaled.variant
def without_the_error(x, by=2.0):
    return {"sum": (x * by).sum(), (1, "two"): x * by}


days.wrong_value(3.0, "You count from 1.")
days.right_value("2 + 2")
EXERCISES ="""


def test_known_answers_with_other_points_are_warned_of(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--course", str(course), "build", "--force"]) == 0
    assert capsys.readouterr().out == "w1-warmup  built\n"
    (course / "solutions/w1-warmup/exercises.py").write_text(EXERCISES.replace("EXERCISES =", DOUBTFUL))
    assert main(["--course", str(course), "build"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "w1-warmup  built"
    assert [line.removeprefix("solutions/w1-warmup/exercises.py: ").partition(".")[0] for line in lines] == [
        "`stable_softmax`: the known mistake other order earns all points",
        "`stable_softmax`: the right answer without the error loses points",
        "`days`: the known mistake 3",
        "`days`: the right answer 2 + 2 loses points",
    ]


def test_the_checks_are_tested_from_any_folder(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(built / "solutions" / "w1-warmup", tmp_path / "w1-warmup")
    (folder / "warmup.ipynb").unlink()
    for words in (
        ["--course", str(built), "test-checks", "w1-warmup"],
        ["test-checks", str(folder)],
        ["test-checks", "w1-warmup"],
    ):
        assert main([*words, "--exercise", "days", "--json"]) == 0, capsys.readouterr()
        assert json.loads(capsys.readouterr().out)["killed"] == 1
    (folder / "exercises.py").unlink()
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("nowhere/", "There is no folder nowhere."),
        ("./empty", "empty contains no notebook source, a .py file with cells (`# %%`)."),
        ("w1-warmup/", "w1-warmup contains no exercises: they belong in exercises.py."),
    ):
        assert main(["test-checks", name]) == 2
        assert capsys.readouterr().err == f"lmcourse: {message}\n"


def test_released_exercises_have_no_reference_and_no_hidden_case(built: Path) -> None:
    released = "".join(path.read_text() for path in (built / "notebooks").rglob("*.*") if path.is_file())
    assert "SECRET names" in released
    for secret in ('"SECRET"', "left_out", "def divided", "BEGIN"):
        assert secret not in released


def test_a_learner_checks_answers_with_the_release_alone(built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(built / "notebooks" / "w1-warmup", tmp_path / "mine")
    (folder / "answers.py").write_text(LEARNER)
    ran = subprocess.run([sys.executable, "answers.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("ALL WELL\n", 0), ran.stderr


def test_changed_exercises_make_the_release_stale(course: Path) -> None:
    file = course / "solutions/w1-warmup/exercises.py"
    before = exercises_beside(file.parent / "warmup.ipynb")
    assert exercises_beside(file.parent) is before
    file.write_text(EXERCISES.replace('"Then add."', '"Then add up."'))
    assert exercises_beside(file.parent)[0].hints[1] == "Then add up."
    assert len(check_built(chapters_in(course), course)) == 2
    build(chapters_in(course), course)
    assert check_built(chapters_in(course), course) == []
    assert "Then add up." in (course / "notebooks/w1-warmup/warmup.ipynb").read_text()


def test_own_folders_resolve_their_exercises(course: Path) -> None:
    attention = course / "solutions" / "08-attention"
    attention.mkdir()
    assert exercises_beside(attention / "attention.ipynb") == exercises_of(find_chapter("08"))
    assert exercises_beside(course / "solutions/w2-plain/plain.ipynb") == ()
    assert [chapter.id for chapter in chapters_in(course)] == ["08-attention", "w1-warmup"]
    assert chapters_in(course, ["08"]) == [find_chapter("08")]
    with pytest.raises(CourseError, match="Did you mean w1-warmup"):
        chapters_in(course, ["w1-warmups"])
    (course / "solutions/w1-warmup/more.py").write_text("# %%\n1\n")
    with pytest.raises(CourseError, match="a folder may have only one source"):
        chapters_in(course)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("SIDES =", "1 / 0\nSIDES =", "exercises.py:10: ZeroDivisionError: division by zero"),
        ("EXERCISES = (", "OTHERS = (", "exercises.py:1: it defines no EXERCISES"),
        ("EXERCISES = (scaled,", "EXERCISES = (scaled, scaled,", "two exercises are called 'stable_softmax'"),
        ("seconds=3.0,", "view=lambda case, value: 1,", "exercises.py: `stable_softmax` has a `view`"),
        (
            "days.wrong",
            'scaled.slips(divided, {"x * by → x": "No."})\ndays.wrong',
            "`stable_softmax`: x * by → x: 'x * by' does not occur",
        ),
        ("reference=lambda: 3)\ndays", "reference=lambda: chr(0xD800))\ndays", "`days`: "),
    ],
)
def test_mistakes_in_exercises_are_reported_in_one_line(course: Path, old: str, new: str, told: str) -> None:
    file = course / "solutions/w1-warmup/exercises.py"
    assert old in EXERCISES
    file.write_text(EXERCISES.replace(old, new, 1))
    with pytest.raises(CourseError) as error:
        build(chapters_in(course), course)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_damaged_exercises_of_a_notebook_are_reported_in_one_line(course: Path) -> None:
    path = course / "notebooks/w1-warmup/warmup.ipynb"
    notebook = json.loads(path.read_text())
    about = notebook["metadata"]["lmcourse"]
    whole = about["exercises"]
    one = whole["exercises"][0]
    damaged = [
        *({**whole, "tensors": "AAAA"}, {**whole, "format": 9}),
        *({**whole, "exercises": [{**one, **change}]} for change in (
            {"points": "4"}, {"cases": []}, {"mistakes": [{"sentence": "x"}]},
            {"cases": [{**case, "script": "1 ="} for case in one["cases"]]},
        )),
    ]  # fmt: skip
    texts = [json.dumps({**notebook, "metadata": {"lmcourse": {**about, "exercises": data}}}) for data in damaged]
    for text in (*texts, path.read_text()[:-20]):
        path.write_text(text)
        with pytest.raises(
            CourseError, match=r"^The exercises in warmup.ipynb are damaged \(\w+\): get the assignment"
        ):
            read_released(path)


def test_notebook_away_from_its_exercises_says_what_is_missing(tmp_path: Path) -> None:
    nbformat.write(PLAIN, tmp_path / "other.ipynb")
    words = "from lmcourse.notebook import start; start('w1-warmup')"
    ran = subprocess.run([sys.executable, "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "no notebook in this folder carries them" in ran.stderr


def test_cases_and_outcomes_survive_a_round_trip(built: Path) -> None:
    released = read_released(built / "notebooks/w1-warmup/warmup.ipynb")
    for mine, theirs in zip(released, exercises_beside(built / "solutions/w1-warmup"), strict=False):
        for part in ("name", "points", "minutes", "difficulty", "value", "rules", "seconds", "tolerance", "summary"):
            assert getattr(mine, part) == getattr(theirs, part)
        for got, case in zip(mine.public, theirs.public, strict=True):
            assert (got.name, got.script, got.of, got.layout) == (case.name, case.script, case.of, case.layout)
            assert same([*got.args, dict(got.kwargs)], [*case.args, dict(case.kwargs)])
        assert [wrong.sentence for wrong in mine.misconceptions] == [one.sentence for one in theirs.misconceptions]
    assert str(released[0].expected[2].failure) == "ValueError: by nothing"
