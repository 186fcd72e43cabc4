"""Make a report from outcomes: passed cases, points, diagnosis.

The judge gets only plain outcomes and does not run the learner's code. So it does not matter whether the answer ran in
this process, in plain nbgrader, or in a sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lmcourse.base.text import one_line
from lmcourse.exercises.case_result import case_result
from lmcourse.exercises.diagnosis import break_down, broken_rule, diagnose
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.failure import is_unwritten
from lmcourse.exercises.forbidden_names import Use
from lmcourse.exercises.open_task import OpenTask
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.outcomes import Outcomes, outcomes_of
from lmcourse.exercises.recognition import Recognised, recognise
from lmcourse.exercises.result_parts import recognise_parts
from lmcourse.exercises.trial import Trial, groups_of, score
from lmcourse.report import CaseResult, Report


def judge(
    exercise: Exercise,
    trials: Sequence[Trial],
    *,
    hidden: bool = False,
    forbidden: Sequence[Use] = (),
    unread: str = "",
    table: Outcomes | None = None,
) -> Report:
    """Return the report on an answer from its trials, public cases first; if `hidden`, they include the hidden ones.

    Args:
        forbidden: the forbidden names in the answer's source; outcomes have the operations that it used.
        unread: an argument that the answer's source does not mention.
        table: the outcomes of the known mistakes; by default those that all judging shares.
    """
    broken = broken_rule(forbidden, [use for trial in trials for use in trial.outcome.forbidden])
    if exercise.task:
        return _measured(exercise, exercise.task, trials, broken, hidden=hidden)
    results = [case_result(exercise, trial) for trial in trials]
    failing = [trial for trial, result in zip(trials, results, strict=True) if not result.passed]
    earned = score(trials, [result.passed for result in results], groups_of(trials))
    preview = exercise.preview if not (hidden or failing or broken) else None
    points, foretold = preview(trials[0].outcome.value) if preview else (earned.points, "")
    short = points < exercise.points
    graded = [trial for trial in trials if trial.hidden and not trial.outcome.failure] if exercise.remark else []
    remarks = [exercise.remark(trial.case, trial.outcome.value) for trial in graded if exercise.remark]
    known = exercise, trials, table or outcomes_of(exercise)
    named = (recognise(*known) or recognise_parts(*known)) if failing and not broken else None
    returned = all(one.outcome.failure is None and one.outcome.value is not None for one in failing)
    observed = f"Your answer never uses `{unread}`. " * bool(failing and unread and returned)
    observed += "" if broken or named else _diagnosis(exercise, trials, failing)
    return Report(
        exercise=exercise.name,
        points=0.0 if broken else points,
        max_points=exercise.points,
        hidden=hidden,
        cases=tuple(results),
        diagnosis=broken or (named.sentence if named else observed.strip() or foretold * short),
        mistake=named.sentence if named else "",
        also_wrong=_also_wrong(exercise, trials, named) if named else "",
        groups=(earned.passed, earned.total),
        notes=(
            *_notes([trial.outcome for trial in trials]),
            *[foretold] * (bool(foretold) and not short),
            *filter(None, remarks),
        ),
        hints=tuple(exercise.hints) if failing or broken else (),
        to_come=() if hidden else tuple(case.name for case in exercise.hidden),
        answered=not all(_unanswered(trial.outcome, exercise) for trial in trials),
    )


_NOTHING_REACHED = (
    "This is a valid answer, but it reaches none of the steps below: a step counts if all of its limits are met."
)


def _measured(exercise: Exercise, task: OpenTask, trials: Sequence[Trial], broken: str, *, hidden: bool) -> Report:
    """Return the report on an answer to an open task: a band counts if the answer reaches it in every case."""
    outcomes = {trial.case.name: trial.outcome for trial in trials}
    missed = [band for outcome in outcomes.values() for band in task.unreached(outcome)]
    reached = [band for band in task.bands if band not in missed]
    failed = [trial for trial in trials if trial.outcome.failure]
    unfit = next((trial.wrong for trial in failed if trial.outcome.failed_with("Unfit")), None)
    bands = [CaseResult(band.name, band in reached, task.said(band, outcomes)) for band in task.bands]
    answered = not all(_unanswered(trial.outcome, exercise) for trial in trials)
    remark = next(filter(None, map(task.remark, outcomes.values())), "")
    return Report(
        exercise=exercise.name,
        points=0.0 if broken else sum(band.points for band in reached),
        max_points=exercise.points,
        hidden=hidden,
        cases=tuple(
            [CaseResult(one.case.name, False, "" if unfit else one.wrong or "") for one in failed[:1]] or bands
        ),
        diagnosis=broken
        or unfit
        or diagnose(exercise, trials, failed)
        or (remark if missed else "")
        or ("" if reached or failed else _NOTHING_REACHED),
        groups=(len(reached), len(task.bands)),
        notes=tuple(note for note in _notes([*outcomes.values()]) if not note.startswith("It warned: Remark: ")),
        hints=tuple(exercise.hints) if broken or missed else (),
        to_come=() if hidden else tuple(case.name for case in exercise.hidden),
        answered=answered,
        table=task.table(outcomes) if answered else (),
    )


def _also_wrong(exercise: Exercise, trials: Sequence[Trial], named: Recognised) -> str:
    """Return a sentence on the failing cases that known mistakes do not explain, with the reason if they break down."""
    reason = break_down(exercise, trials, named.unexplained)
    return f"{named.also_wrong.removesuffix('.')}: {reason[0].lower()}{reason[1:]}" if reason else named.also_wrong


def instead_of(report: Report, earlier: Report) -> Report | None:
    """Return a report on an earlier answer that fails its own check, in place of the report on an answer that calls it.

    Only the points are those of the answer. None if the earlier answer passes all public cases.
    """
    name, wrong = f"`{earlier.exercise}`", [case for case in earlier.cases if not case.passed and not case.hidden]
    if not earlier.answered:
        return only_earlier(report, f"{name}, which is not written yet.")
    if wrong:
        return only_earlier(report, f"{name}, which does not pass its own check yet:", wrong[0])
    broken = earlier.diagnosis if not earlier.points and not any(not case.passed for case in earlier.cases) else ""
    return only_earlier(report, f"{name}, which does not pass its own check yet. {broken}") if broken else None


def only_earlier(report: Report, what: str, *failing: CaseResult) -> Report:
    """Return a report with the points of another one that says only which earlier answer comes first."""
    nothing: dict[str, Any] = {"mistake": "", "also_wrong": "", "groups": (0, 0), "answered": True}
    nothing |= dict.fromkeys(("notes", "hints", "to_come", "table"), ())
    return replace(report, diagnosis=f"This calls your {what}", cases=failing, **nothing)


def _diagnosis(exercise: Exercise, trials: Sequence[Trial], failing: Sequence[Trial]) -> str:
    """Return a diagnosis from the public cases, which are chosen to distinguish misconceptions; if all of them pass,
    from the hidden ones."""
    public = [trial for trial in trials if not trial.hidden]
    wrong = [trial for trial in failing if not trial.hidden]
    others = {trial.case.name for trial in failing if trial.hidden} if wrong else set()
    among, wrong = (public, wrong) if wrong else (trials, list(failing))
    if exercise.view:  # results differ for many reasons, so only missing results are diagnosed
        wrong = [trial for trial in wrong if trial.outcome.value is None]
    return diagnose(exercise, among, wrong, others)


def _unanswered(outcome: Outcome, exercise: Exercise) -> bool:
    if outcome.failure:
        return is_unwritten(outcome.failure) and {*outcome.failure.written} <= {*exercise.given_methods}
    return exercise.value and outcome.value is None


def _notes(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the code's printed text and warnings, shortened."""
    printed = "".join(outcome.printed for outcome in outcomes).strip()
    warned = dict.fromkeys(text for outcome in outcomes for text in outcome.warned)
    notes = [f"It printed: {one_line(printed, 200)}"] if printed else []
    return (*notes, *(f"It warned: {text}" for text in list(warned)[:3]))
