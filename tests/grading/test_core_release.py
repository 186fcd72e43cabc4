"""The exercises of an assignment change while marks are recorded: the core alone, all of it, an exercise less."""

from __future__ import annotations

import pytest

from lmcourse.exercises.released import read_released
from tests.authoring.tiny import IN_PARTS
from tests.grading.conftest import Course, needs_bubblewrap, own_course

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(1200)]

NAME = "w1-tiny"
DOUBLE = "def double(x):\n    return 2 * x"


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A teacher's course: the core of one notebook."""
    exercises = "from tests.authoring.tiny import EXERCISES\n"
    course = own_course(tmp_path_factory.mktemp("teacher"), NAME, exercises=exercises, tiny=IN_PARTS)
    course.run("lmcourse", "--course", ".", "build", "--core")
    return course


def test_core_is_graded_both_ways_and_further_after_a_plain_build(teacher: Course) -> None:
    teacher.run("lmcourse", "--course", ".", "build", "--check", "--core")
    assert "core alone" in teacher.run("lmcourse", "--course", ".", "build", "--check", rc=1)
    released = read_released(teacher.root / "notebooks" / NAME / "tiny.ipynb")
    assert [one.name for one in released] == ["double"]
    teacher.hand_in(NAME, "unsolved")
    teacher.hand_in(NAME, "solved", double=DOUBLE)
    results = teacher.grade("--record")
    scores = {name: (one["score"], one["max_score"]) for name, one in results.items()}
    assert scores == {"unsolved": (0.0, 2.0), "solved": (2.0, 2.0)}
    expected = {"unsolved": {"double": 0.0}, "solved": {"double": 2.0}}
    assert teacher.marks(NAME) == expected
    assert teacher.run("lmcourse", "--course", ".", "build", "--core") == f"{NAME}  up to date\n"
    teacher.run("nbgrader", "generate_assignment", NAME, "--force")
    teacher.run("nbgrader", "autograde", NAME, "--force")
    assert teacher.marks(NAME) == expected

    told = teacher.run("lmcourse", "--course", ".", "build", "--force")
    assert told.startswith(
        f"{NAME} has recorded marks. The next `lmcourse grade … --record` changes the gradebook: `half`"
    )
    teacher.hand_in(NAME, "late", double=DOUBLE, half="half = 1 / 2")
    results = teacher.grade("--record", "--report", "report")
    assert f"{NAME}: `half` is new in the notebook and counts 1 point.\n" in teacher.told
    assert results["solved"]["reason"].startswith(
        "This is an older copy, or cells of it were deleted: it has no exercise `half`."
    )
    assert ">Further</b>" in (teacher.root / "report" / "report.html").read_text()
    assert teacher.marks(NAME) == {
        "unsolved": {"double": 0.0, "half": 0.0},
        "solved": {"double": 2.0, "half": 0.0},
        "late": {"double": 2.0, "half": 1.0},
    }


def test_dropped_exercise_and_other_points_move_the_recorded_marks(teacher: Course) -> None:
    from nbgrader.api import Gradebook

    folder = teacher.root / "solutions" / NAME
    where = ("check_double", "tiny", NAME, "solved")
    with Gradebook(f"sqlite:///{teacher.root}/gradebook.db") as book:
        book.find_grade(*where).manual_score = 1.5
        book.db.commit()
    source = IN_PARTS.partition("# %% [markdown]\n# ## Further")[0].replace("2 points", "3 points")
    (folder / "tiny.py").write_text(source)
    (folder / "exercises.py").write_text(
        "from dataclasses import replace\nfrom tests.authoring.tiny import double\n"
        "EXERCISES = (replace(double, points=3),)\n"
    )
    teacher.run("lmcourse", "--course", ".", "build", "--force")
    told = teacher.run("nbgrader", "generate_assignment", NAME, "--force")
    assert told == ""
    teacher.grade("--record")
    assert teacher.marks(NAME) == {"unsolved": {"double": 0.0}, "solved": {"double": 1.5}, "late": {"double": 3.0}}
    with Gradebook(f"sqlite:///{teacher.root}/gradebook.db") as book:
        assert book.find_grade(*where).needs_manual_grade
