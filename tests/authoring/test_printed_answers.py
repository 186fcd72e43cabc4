"""Printed solutions and stubs, as live objects: what `lmcourse matrix` submits."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from lmcourse.authoring import answers
from lmcourse.authoring.answers import imports
from lmcourse.exercises.matrix import prove
from tests.authoring.tiny import SOURCE, TINY, write_source


def test_solutions_are_right_and_stubs_are_not(tmp_path: Path) -> None:
    write_source(tmp_path)
    solutions, stubs = answers([TINY], tmp_path)
    assert list(solutions) == list(stubs) == ["double", "half"]
    assert (solutions["double"](3), solutions["half"](), stubs["half"]()) == (6, 0.5, None)
    with pytest.raises(NotImplementedError):
        stubs["double"](3)
    assert prove([TINY], solutions, stubs).proved


def test_each_has_the_source_that_it_was_made_of(tmp_path: Path) -> None:
    """The rules of an exercise read it: a solution that is read as its stub would break no rule."""
    write_source(tmp_path)
    solutions, stubs = answers([TINY], tmp_path)
    assert "return x + x" in inspect.getsource(solutions["double"])
    assert "raise NotImplementedError" in inspect.getsource(stubs["double"])


@pytest.mark.parametrize(
    ("solution", "not_full"),
    [
        ("return 3 * x", ("double",)),
        ("return x + x if x == x else math.ldexp(x, 1)", ("double",)),  # forbidden, in a branch that never runs
        ("return math.ldexp(x, 1)", ("double",)),
        ("return math.fsum([x, x])", ()),  # what a cell above imports is there
        ("return check(x)", ("double",)),  # what it defines is not: an answer stands alone
    ],
)
def test_a_solution_that_is_wrong_or_breaks_a_rule_is_not_full(
    solution: str, not_full: tuple[str, ...], tmp_path: Path
) -> None:
    write_source(tmp_path, SOURCE.replace("return x + x", solution))
    assert prove([TINY], *answers([TINY], tmp_path)).not_full == not_full


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("    ### BEGIN SOLUTION", "    return 2 * x\n    ### BEGIN SOLUTION", "double"),
        ("half = None", "half = 0.5", "half"),
    ],
)
def test_a_stub_that_gives_the_answer_away_is_not_zero(old: str, new: str, name: str, tmp_path: Path) -> None:
    write_source(tmp_path, SOURCE.replace(old, new, 1))
    assert prove([TINY], *answers([TINY], tmp_path)).not_zero == (name,)


def test_imports_are_taken_from_the_top_of_a_cell() -> None:
    text = "import math, os.path as p\nfrom torch import (\n    Tensor,\n)\nx = 1\nprint(x)"
    assert imports(text) == "import math, os.path as p\nfrom torch import Tensor"
