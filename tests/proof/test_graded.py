"""Right answers in graded processes: the cases of all seeds are put to them, and what only a grade refuses is told."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lmcourse.cli import main
from lmcourse.course import find_chapter
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.proof.graded import under_seeds
from lmcourse.proof.prove import SEEDS
from tests.course.chapters import ROOT
from tests.exercises.toy import doubling
from tests.grading.sandboxed import needs_bubblewrap

CHAPTER = find_chapter("07")


def test_the_cases_of_all_seeds_are_there_and_fixed_ones_once() -> None:
    exercise = find_exercise("ulp")
    fixed = [case for case in exercise.hidden(0) if not case.random]
    asked = under_seeds(exercise, SEEDS).hidden(7)
    assert [case for case in asked if not case.random] == fixed
    assert len(asked) == len(fixed) + len(SEEDS) * (len(exercise.hidden(0)) - len(fixed))
    for seed in SEEDS:
        assert all(any(case.asks_the_same(other) for other in asked) for case in exercise.hidden(seed))


def test_an_answer_that_is_wrong_under_one_seed_only_loses() -> None:
    exercise = doubling()
    unlucky = exercise.hidden(13)[-1].args[0]

    def double(x: Tensor) -> Tensor:
        return 2 * x + (x.shape == unlucky.shape and torch.equal(x, unlucky))

    assert check_exercise(under_seeds(exercise, range(13)), double, hidden=True).passed
    assert not check_exercise(under_seeds(exercise, range(14)), double, hidden=True).passed


def with_a_file(words: list[list[int]], times: list[int]) -> dict[tuple[int, int], int]:
    assert Path("pyproject.toml").is_file()
    if len(words) != len(times):
        raise ValueError("there must be a number for each word")
    totals: Counter[tuple[int, int]] = Counter()
    for word, many in zip(words, times, strict=True):
        for pair in pairwise(word):
            totals[pair] += many
    return {pair: total for pair, total in totals.items() if total}


@pytest.mark.parametrize("isolation", ["process", pytest.param("bubblewrap", marks=needs_bubblewrap)])
def test_a_right_answer_that_only_a_grade_refuses_is_told(
    isolation: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs a file of the course's folder, which lies where a notebook runs and not where it is graded."""
    monkeypatch.chdir(ROOT)
    for exercise in exercises_of(CHAPTER):
        monkeypatch.setattr(exercise, "variants", [])
    pairs = find_exercise("count_pairs")
    pairs.variant(with_a_file)
    assert check_exercise(pairs, with_a_file, hidden=True).passed
    assert main(["matrix", CHAPTER.number, "--isolation", isolation, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)[CHAPTER.id]
    assert {answer["variant"] for answer in found} == {"as printed", "with a file"}
    [told] = [answer for answer in found if answer["lost"]]
    assert (told["exercise"], told["variant"]) == ("count_pairs", "with a file")


def test_flags_that_are_about_mutants_or_one_exercise_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in (["--seeds", "20"], ["--exercise", "count_pairs"], ["--quick"]):
        assert main(["matrix", "07", "--isolation", "process", *flag]) == 2
        assert "leave out --exercise, --seeds and --quick" in capsys.readouterr().err
    assert main(["matrix", "07", "--isolation", "jail"]) == 2
    assert "There is no isolation" in capsys.readouterr().err
