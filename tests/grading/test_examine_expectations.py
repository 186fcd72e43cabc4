"""Right and wrong answers are worked out once, and stay what they are."""

from __future__ import annotations

import pytest
import torch

from lmcourse.errors import CourseError
from lmcourse.exercises.limits import TimeLimitExceeded
from lmcourse.exercises.values import same
from lmcourse.grading.examination.expectations import Expectations, expectations
from tests.exercises.toy import doubling
from tests.grading.examining import ForkLauncher, reports_of


def test_a_second_submission_runs_neither_references_nor_wrong_answers() -> None:
    calls = []

    def reference(x: torch.Tensor) -> torch.Tensor:
        calls.append("right")
        return 2 * x

    exercise = doubling(reference=reference)

    @exercise.misconception("You triple.")
    def tripled(x: torch.Tensor) -> torch.Tensor:
        calls.append("wrong")
        return 3 * x

    wrong = "def double(x):\n    y = 3 * x\n    x.zero_()\n    return y", "def double(x):\n    return 3 * x"
    first = [reports_of([text], [exercise], seed=3, launcher=ForkLauncher())["double"] for text in wrong]
    before = len(calls)
    assert (calls.count("right"), calls.count("wrong")) == (4, 4)
    assert [reports_of([text], [exercise], seed=3, launcher=ForkLauncher())["double"] for text in wrong] == first
    assert len(calls) == before
    assert first[1].diagnosis == "You triple."
    assert (
        reports_of(["def double(x):\n    return 2 * x"], [exercise], seed=4, launcher=ForkLauncher())["double"].points
        == 2
    )
    assert len(calls) == before + 4


def test_what_is_kept_is_not_changed_by_comparing() -> None:
    exercise = doubling()
    known = expectations(exercise, 3)
    kept = [known.expected(case) for case, _ in known.cases]
    copies = [outcome.value.clone() for outcome in kept]
    for text in ("def double(x):\n    return -2 * x", "def double(x):\n    return (2 * x).double()", ""):
        reports_of([text], [exercise], seed=3, launcher=ForkLauncher())
    assert expectations(exercise, 3) is known
    assert all(known.expected(case) is outcome for (case, _), outcome in zip(known.cases, kept, strict=True))
    assert all(same(outcome.value, copy) for outcome, copy in zip(kept, copies, strict=True))


@pytest.mark.parametrize("error", [TimeLimitExceeded, MemoryError])
def test_a_reference_that_a_busy_machine_ended_is_tried_again(error: type[BaseException]) -> None:
    attempts = []

    def reference(x: torch.Tensor) -> torch.Tensor:
        attempts.append(x)
        if len(attempts) == 1:
            raise error
        return 2 * x

    exercise = doubling(reference=reference)
    known = Expectations(exercise, 1)
    case = known.cases[0][0]
    with pytest.raises(CourseError, match=r"`double`.*too busy or too small"):
        known.expected(case)
    assert known.expected(case).failure is None
    assert known.expected(case).failure is None
    assert len(attempts) == 2


def test_not_everything_is_kept_for_ever() -> None:
    assert expectations.cache_info().maxsize is not None
