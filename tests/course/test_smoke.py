"""The solution that each notebook prints, on two cases of each exercise. `test_checks` submits all known answers."""

from __future__ import annotations

import pytest

from lmcourse.check_tests.answers import answer_cells
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.outcomes import Outcomes
from lmcourse.exercises.registry import exercises_of
from lmcourse.exercises.trial import verdict
from tests.course.chapters import EACH, ROOT


@EACH
def test_printed_solutions_pass_a_public_and_a_hidden_case(chapter: Chapter, monkeypatch: pytest.MonkeyPatch) -> None:
    [cells] = answer_cells([chapter], ROOT).values()
    assert [cell.exercise for cell in cells] == [*exercises_of(chapter)]
    for cell in cells:
        exercise = cell.exercise
        if exercise.task:  # its solution is trained
            continue
        monkeypatch.chdir(exercise.file.parent if exercise.file else ROOT)
        answer, table = cell.run(cell.solution), Outcomes(exercise)
        for case in (*exercise.public[:1], *exercise.hidden[:1]):
            outcome = run_case(answer, case, name=exercise.name, seconds=exercise.seconds)
            assert verdict(exercise, case, table.expected(case), outcome) is None, (exercise.name, case)
