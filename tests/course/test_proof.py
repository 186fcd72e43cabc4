"""The mutation proof of every chapter, through the command that prints it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmcourse.cli import main
from lmcourse.exercises.registry import all_exercises
from tests.course.chapters import ROOT


@pytest.fixture(scope="module")
def proof() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("lmcourse.cli.commands.print_json", lambda data: printed.append(json.dumps(data)))
        status = main(["matrix", "--json", "--course", str(ROOT)])
    return {**json.loads(printed[0]), "status": status}


def test_every_exercise_and_every_misconception_was_tried(proof: dict[str, Any]) -> None:
    assert proof["exercises"] == len(all_exercises())
    tried = [(row["exercise"], row["misconception"]) for row in proof["rows"]]
    known = [(name, wrong.name) for name, exercise in all_exercises().items() for wrong in exercise.misconceptions]
    assert tried == known


def test_every_misconception_loses_points_in_the_grade(proof: dict[str, Any]) -> None:
    assert [row for row in proof["rows"] if not row["killed"]] == []
    assert proof["killed"] == proof["misconceptions"]


def test_every_misconception_is_named(proof: dict[str, Any]) -> None:
    assert [row for row in proof["rows"] if not row["named"]] == []
    assert proof["named"] == proof["misconceptions"]


def test_printed_solutions_earn_everything_and_stubs_nothing(proof: dict[str, Any]) -> None:
    assert proof["solutions_full"]
    assert proof["stubs_zero"]


def test_the_command_says_so(proof: dict[str, Any]) -> None:
    assert proof["status"] == 0
