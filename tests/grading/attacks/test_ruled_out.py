"""Nobody earns a point with what an exercise rules out, nor by guessing."""

from __future__ import annotations

import pytest

from lmcourse.course import find_chapter
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.exercises.trial import verdict
from tests.grading.attacks.ruled_out import RULE_ATTACKS, RuleAttack
from tests.grading.examining import ForkLauncher, examined

FIRST = "import math\nimport torch"


@pytest.mark.parametrize("attack", RULE_ATTACKS, ids=lambda attack: attack.name)
def test_what_is_ruled_out_earns_nothing(attack: RuleAttack) -> None:
    everyone = exercises_of(find_chapter(attack.number))
    uses_others = attack.number == "08"
    exercises = everyone if uses_others else [one for one in everyone if one.name == attack.exercise]
    report = examined([FIRST, attack.code], exercises, launcher=ForkLauncher()).reports[attack.exercise]
    assert report.points == 0, report
    assert report.answered or not attack.right


@pytest.mark.parametrize("attack", [one for one in RULE_ATTACKS if one.right], ids=lambda attack: attack.name)
def test_it_would_be_right_if_nothing_were_refused(attack: RuleAttack) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    exec(f"{FIRST}\n{attack.code}", names)
    exercise = find_exercise(attack.exercise)
    answer = names[attack.exercise]
    assert callable(answer)
    wrong = [
        verdict(exercise, run_case(exercise.reference, case, name=exercise.name), run_case(answer, case))
        for case in exercise.cases
    ]
    assert wrong.count(None) > len(wrong) / 2, wrong
