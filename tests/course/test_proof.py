"""The mutation proof of each chapter, once, through the command that prints it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from lmcourse.cli import main
from lmcourse.course import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN

EACH = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda chapter: chapter.id)


@cache
def proof(chapter: Chapter) -> dict[str, Any]:
    """What `lmcourse matrix NN --json` prints, with its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("lmcourse.cli.commands.print_json", lambda data: printed.append(json.dumps(data)))
        status = main(["matrix", chapter.number, "--json", "--course", str(ROOT)])
    return {**json.loads(printed[0]), "status": status}


@EACH
def test_every_exercise_and_every_misconception_was_tried(chapter: Chapter) -> None:
    found = proof(chapter)
    assert found["exercises"] == len(exercises_of(chapter))
    tried = [(row["exercise"], row["misconception"]) for row in found["rows"]]
    assert tried == [
        (exercise.name, wrong.name) for exercise in exercises_of(chapter) for wrong in exercise.misconceptions
    ]


@EACH
def test_every_misconception_loses_points_in_the_grade(chapter: Chapter) -> None:
    assert [row for row in proof(chapter)["rows"] if not row["killed"]] == []
    assert proof(chapter)["killed"] == proof(chapter)["misconceptions"]


@EACH
def test_every_misconception_is_named(chapter: Chapter) -> None:
    assert [row for row in proof(chapter)["rows"] if not row["named"]] == []
    assert proof(chapter)["named"] == proof(chapter)["misconceptions"]


@EACH
def test_printed_solutions_earn_everything_and_stubs_nothing(chapter: Chapter) -> None:
    assert proof(chapter)["solutions_full"]
    assert proof(chapter)["stubs_zero"]


@EACH
def test_the_command_says_so(chapter: Chapter) -> None:
    assert proof(chapter)["status"] == 0
