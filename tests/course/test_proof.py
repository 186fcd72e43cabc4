"""The answer checks of each chapter, through the command that prints them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from lmcourse.cli import main
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN

Proof = Callable[[Chapter], dict[str, Any]]

EACH = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)


@pytest.fixture(scope="module")
def proof() -> Proof:
    """Gives what `lmcourse matrix NN --json` prints, with its exit status."""
    return cache(proved)


def proved(chapter: Chapter) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("lmcourse.cli.commands.print_json", lambda data: printed.append(json.dumps(data)))
        status = main(["matrix", chapter.number, "--json", "--course", str(ROOT)])
    return {**json.loads(printed[0]), "status": status}


@EACH
def test_every_exercise_and_every_misconception_was_tried(chapter: Chapter, proof: Proof) -> None:
    found = proof(chapter)
    assert found["exercises"] == len(exercises_of(chapter))
    tried = [(row["exercise"], row["misconception"]) for row in found["rows"]]
    assert tried == [
        (exercise.name, wrong.name) for exercise in exercises_of(chapter) for wrong in exercise.misconceptions
    ]


@EACH
def test_every_misconception_loses_points_in_the_grade(chapter: Chapter, proof: Proof) -> None:
    assert [row for row in proof(chapter)["rows"] if not row["killed"]] == []
    assert proof(chapter)["killed"] == proof(chapter)["misconceptions"]


@EACH
def test_every_misconception_is_named(chapter: Chapter, proof: Proof) -> None:
    assert [row for row in proof(chapter)["rows"] if not row["named"]] == []
    assert proof(chapter)["named"] == proof(chapter)["misconceptions"]


@EACH
def test_a_constant_earns_nothing(chapter: Chapter, proof: Proof) -> None:
    """Neither in the notebook nor in the grade, whatever a case asks for."""
    assert proof(chapter)["constants"] > 0
    assert proof(chapter)["guessable"] == []


@EACH
def test_a_public_case_tells_every_two_misconceptions_apart(chapter: Chapter, proof: Proof) -> None:
    assert proof(chapter)["confused"] == []


@EACH
def test_every_mutant_of_a_solution_loses_points_or_is_right_too(chapter: Chapter, proof: Proof) -> None:
    found = proof(chapter)
    assert found["survivors"] == found["untrue"] == []
    assert found["mutants"] == found["mutants_killed"] + found["equivalent"]


@EACH
def test_right_answers_in_other_styles_earn_everything(chapter: Chapter, proof: Proof) -> None:
    found = proof(chapter)
    assert found["variants_not_full"] == []
    assert [each.name for each in exercises_of(chapter) if len(each.variants) < 3] == []


@EACH
def test_printed_solutions_earn_everything_and_stubs_nothing(chapter: Chapter, proof: Proof) -> None:
    assert proof(chapter)["solutions_full"]
    assert proof(chapter)["stubs_zero"]


@EACH
def test_the_command_says_so(chapter: Chapter, proof: Proof) -> None:
    assert proof(chapter)["status"] == 0
