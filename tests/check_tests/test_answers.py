"""Test printed solutions and stubs as objects, which `lmcourse test-checks` submits."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.check_tests.answers import AnswerCell, answer_cells, only
from lmcourse.check_tests.prove import prove
from lmcourse.check_tests.results import CheckResults
from lmcourse.course.chapters import Chapter
from tests.authoring.tiny import SOURCE, TINY, write_source


def cells(root: Path) -> dict[Chapter, list[AnswerCell]]:
    return answer_cells([TINY], root)


def proof(root: Path) -> CheckResults:
    return prove(cells(root))


def test_solutions_are_right_and_stubs_are_not(tmp_path: Path) -> None:
    write_source(tmp_path)
    double, half = cells(tmp_path)[TINY]
    assert [cell.exercise.name for cell in (double, half)] == ["double", "half"]
    assert (double.run(double.solution)(3), half.run(half.solution)(), half.run(half.stub)()) == (6, 0.5, None)
    with pytest.raises(NotImplementedError):
        double.run(double.stub)(3)
    assert proof(tmp_path).proved


def test_inspect_finds_the_source_of_each_answer(tmp_path: Path) -> None:
    """The rules of an exercise read the source, so a solution that is read as its stub would break no rule."""
    write_source(tmp_path)
    [double, _] = cells(tmp_path)[TINY]
    assert "return x + x" in inspect.getsource(double.run(double.solution))
    assert "raise NotImplementedError" in inspect.getsource(double.run(double.stub))


def test_one_exercise_can_be_selected(tmp_path: Path) -> None:
    write_source(tmp_path)
    assert [cell.exercise.name for cell in only("half", cells(tmp_path))[TINY]] == ["half"]
    with pytest.raises(CourseError, match="no exercise called 'third'"):
        only("third", cells(tmp_path))


@pytest.mark.parametrize(
    ("solution", "not_full"),
    [
        ("return 3 * x", ("double",)),
        ("return x + x if x == x else math.ldexp(x, 1)", ("double",)),  # a forbidden call in a branch that never runs
        ("return math.ldexp(x, 1)", ("double",)),
        ("return math.fsum([x, x])", ()),  # imports of earlier cells are available
        # definitions of earlier cells are not available, because an answer must run alone
        ("return check(x)", ("double",)),
    ],
)
def test_a_solution_that_is_wrong_or_breaks_a_rule_is_not_full(
    solution: str, not_full: tuple[str, ...], tmp_path: Path
) -> None:
    write_source(tmp_path, SOURCE.replace("return x + x", solution))
    assert proof(tmp_path).not_full == not_full


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("    ### BEGIN SOLUTION", "    return 2 * x\n    ### BEGIN SOLUTION", "double"),
        ("half = None", "half = 0.5", "half"),
    ],
)
def test_a_stub_that_gives_the_answer_away_is_not_zero(old: str, new: str, name: str, tmp_path: Path) -> None:
    write_source(tmp_path, SOURCE.replace(old, new, 1))
    assert proof(tmp_path).not_zero == (name,)
