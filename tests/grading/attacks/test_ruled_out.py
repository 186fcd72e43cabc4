"""Nobody earns a point with what an exercise rules out, nor by guessing."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext

import pytest

from lmcourse.course import find_chapter
from lmcourse.exercises.registry import exercises_of
from tests.grading.attacks import ruled_out
from tests.grading.attacks.ruled_out import FIRST, RULE_ATTACKS, RuleAttack
from tests.grading.examining import ForkLauncher, examined


@pytest.mark.parametrize("attack", RULE_ATTACKS, ids=lambda attack: attack.name)
def test_what_is_ruled_out_earns_nothing(attack: RuleAttack) -> None:
    everyone = exercises_of(find_chapter(attack.number))
    uses_others = attack.number == "08"
    exercises = everyone if uses_others else [one for one in everyone if one.name == attack.exercise]
    report = examined([FIRST, attack.code], exercises, launcher=ForkLauncher()).reports[attack.exercise]
    assert report.points == 0, report
    assert report.answered or not attack.right


@pytest.fixture(scope="module")
def throw_away() -> BaseContext:
    """Starts processes in which an attack may patch what it likes: nothing of it is left for the tests after it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo", ruled_out.__name__])  # slow imports, once for all processes
    return context


@pytest.mark.parametrize("attack", [one for one in RULE_ATTACKS if one.right], ids=lambda attack: attack.name)
def test_it_would_be_right_if_nothing_were_refused(attack: RuleAttack, throw_away: BaseContext) -> None:
    with ProcessPoolExecutor(1, throw_away) as process:
        wrong = process.submit(ruled_out.verdicts_if_nothing_is_refused, attack).result()
    assert wrong.count(None) > len(wrong) / 2, wrong
