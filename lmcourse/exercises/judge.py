"""From outcomes to a report: cases passed, points earned, diagnosis.

The judge sees plain outcomes only; it runs no learner code. So it works the same whether the answer ran in this
process, under plain nbgrader, or in a locked room that sent its results back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lmcourse.exercises.cases import Case
from lmcourse.exercises.diagnosis import diagnose
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.trial import Trial, verdict
from lmcourse.report import CaseResult, Report
from lmcourse.text import one_line

Guess = Callable[[Misconception, Case], Outcome]
"""What a known wrong answer gives on a case."""


def judge(
    exercise: Exercise,
    trials: Sequence[Trial],
    *,
    hidden: bool = False,
    forbidden: Sequence[str] = (),
    guess: Guess | None = None,
) -> Report:
    """The report on an answer.

    Args:
        exercise: what was asked.
        trials: its cases with their outcomes, public ones first.
        hidden: whether this is the run of a grade, with the hidden cases among the trials.
        forbidden: ruled-out names found in the answer's source; those called at run time are in the outcomes.
        guess: for whoever knows already what the wrong answers give; by default they are run.
    """
    guess = guess or (lambda wrong, case: run_case(wrong.answer, case, name=exercise.name, seconds=exercise.seconds))
    broken = list(dict.fromkeys([*forbidden, *(name for trial in trials for name in trial.outcome.forbidden)]))
    results = [_result(exercise, trial) for trial in trials]
    failing = [trial for trial, result in zip(trials, results, strict=True) if not result.passed]
    named = _misconception(exercise, trials, failing, guess) if failing and not broken else None
    return Report(
        exercise=exercise.name,
        points=0.0 if broken else earned(exercise.points, len(trials) - len(failing), len(trials)),
        max_points=exercise.points,
        hidden=hidden,
        cases=tuple(results),
        diagnosis=named.sentence if named else diagnose(exercise, [t for t in failing if not t.hidden], broken),
        notes=() if hidden else _notes(exercise, [trial.outcome for trial in trials], stuck=bool(failing)),
        to_come=() if hidden else tuple(exercise.categories()),
        answered=not all(_unanswered(trial.outcome, exercise) for trial in trials),
    )


def earned(points: int, passed: int, total: int) -> float:
    """The share of the points for the share of the cases, rounded down to half a point.

    Rounding down makes every failed case cost something.
    """
    return (2 * points * passed // total) / 2


def _result(exercise: Exercise, trial: Trial) -> CaseResult:
    """One line of the report. A hidden case tells its category and whether it passed, never its inputs or values."""
    wrong = trial.verdict(exercise)
    if trial.hidden:
        return CaseResult(trial.case.name, wrong is None, "", "", hidden=True)
    call = "" if wrong is None or exercise.value else trial.case.call(exercise.name)
    return CaseResult(trial.case.name, wrong is None, wrong or "", call)


def _unanswered(outcome: Outcome, exercise: Exercise) -> bool:
    if outcome.failure:
        return outcome.failure.kind == "NotImplementedError"
    return exercise.value and outcome.value is None


def _misconception(
    exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial], guess: Guess
) -> Misconception | None:
    """The known wrong answer that gives the same results on every case that failed, if there is one.

    Where several do, the one that also agrees on most of the others.
    """

    def agrees(wrong: Misconception, trial: Trial) -> bool:
        return agree(exercise, guess(wrong, trial.case), trial.outcome)

    candidates = [wrong for wrong in exercise.misconceptions if all(agrees(wrong, trial) for trial in failing)]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    return max(candidates, key=lambda wrong: sum(agrees(wrong, trial) for trial in trials))


def agree(exercise: Exercise, guess: Outcome, outcome: Outcome) -> bool:
    """Whether an outcome is what a known wrong answer gives."""
    if outcome.changed or guess.changed:
        return bool(outcome.changed) and outcome.changed == guess.changed
    if outcome.failure and outcome.failure.kind == "NotImplementedError":
        return False
    return verdict(exercise, guess, outcome) is None


def _notes(exercise: Exercise, outcomes: Sequence[Outcome], *, stuck: bool) -> tuple[str, ...]:
    """What the code printed and warned of, shortened, and where help is. None of it may reach a graded cell."""
    printed = "".join(outcome.printed for outcome in outcomes).strip()
    warned = dict.fromkeys(text for outcome in outcomes for text in outcome.warned)
    notes = [f"It printed: {one_line(printed, 200)}"] if printed else []
    notes += [f"It warned: {text}" for text in list(warned)[:3]]
    if stuck and exercise.hints:
        notes.append(f'Stuck? `hint("{exercise.name}")` gives a nudge; run it again for the next.')
    return tuple(notes)
