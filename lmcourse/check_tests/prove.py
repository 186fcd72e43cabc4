"""Submit every wrong answer, right answer, stub, mutant and constant of an exercise.

Every misconception is submitted as if a learner had written it: it must lose points in grading, and its own sentence
must name it. Printed solutions and variants must earn all points. Every mutant of a solution must fail a case. Stubs
and answers that ignore their inputs must earn no points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import Any

from lmcourse.base.errors import CourseError
from lmcourse.check_tests.answers import AnswerCell, answer_text
from lmcourse.check_tests.mutants import Mutant, mutants, with_change
from lmcourse.check_tests.mutilations import MUTILATIONS
from lmcourse.check_tests.repeats import repeats
from lmcourse.check_tests.results import CheckResults, IdeaResult, MisconceptionResult, MutantResult, VariantResult
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.cases import Case
from lmcourse.exercises.checking import seconds_after, try_cases
from lmcourse.exercises.edits import EditError, shown
from lmcourse.exercises.exercise import Misconception
from lmcourse.exercises.forbidden_names import Use, forbidden_in_source
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.outcomes import Outcomes
from lmcourse.exercises.recognition import agree, any_wrong_number, enough_evidence, recognise
from lmcourse.exercises.rules import warm_up
from lmcourse.exercises.slips import place_of
from lmcourse.exercises.trial import Trial, constants_of, groups_of, score, verdict
from lmcourse.exercises.values import Plain, copy_input, format_value, same
from lmcourse.report import Report

USUAL: tuple[Plain, ...] = (None, True, False, 0)
"""Constants that are submitted even if no case expects them."""


@dataclass(frozen=True)
class Constant:
    """An answer that ignores its inputs, with its name in a report ("True", "raises ValueError") and its outcome."""

    name: str
    answer: Callable[..., Any]
    outcome: Outcome


def constant_answers(trials: Sequence[Trial]) -> list[Constant]:
    """Return a constant answer for each value and exception that some case expects, and for the usual constants.

    If the cases compare properties of one result, a constant that is right in all cases is the answer, not a guess.
    """
    found = [[trial for trial in trials if passes(trial)] for passes in constants_of(trials)]
    view = trials[0].exercise.view
    asked = [right[0].expected for right in found if not (view and len(right) == len(trials))]
    values = [outcome.value for outcome in asked if not outcome.failure]
    for value in (*_in_scripts(trials), *USUAL):
        if not any(same(value, other) for other in values):
            values.append(value)
            asked.append(Outcome(value))
    return [*map(_always, asked)]


def _in_scripts(trials: Sequence[Trial]) -> Iterator[Plain]:
    """Yield the expected values of the lines of scripts, because a script may call a function several times."""
    for trial in trials:
        if trial.case.script is not None and isinstance(trial.expected.value, list):
            yield from trial.expected.value


def _always(outcome: Outcome) -> Constant:
    if outcome.failure:
        return Constant(f"raises {outcome.failure.kind}", _raiser(outcome.failure.kinds), outcome)
    value = outcome.value
    return Constant(format_value(value), lambda *_, **__: copy_input(value), outcome)


def _raiser(kinds: Sequence[str]) -> Callable[..., Any]:
    """Return an answer that raises an exception whose classes have these names, most specific first."""
    kind: type[Exception] = Exception
    for name in reversed(kinds):
        kind = Exception if name == "Exception" else type(name, (kind,), {})

    def answer(*_: Any, **__: Any) -> Any:
        raise kind("always")

    return answer


MUTANT_SECONDS, MUTANT_SHARE = 0.2, 20
"""The time limit of a mutant on a case, because many mutants loop forever: seconds, plus this many times the processor
time of the printed solution. Mutants that are declared equivalent have the exercise's limit.
"""

Run = Callable[[Case, float], Outcome]
"""A function that runs an answer on a case within a time limit."""


def prove(cells: Mapping[Chapter, Sequence[AnswerCell]], quick: bool = False) -> CheckResults:
    """Submit all known answers; if `quick`, only solutions, stubs and misconceptions, which takes a tenth of the
    time.

    Raises CourseError if slips have mistakes: they do not fit, are right in every case, or repeat another. All of them
    are listed.
    """
    warm_up()  # because an import that an answer's time limit interrupts could not be repeated
    proofs = [(chapter, _Proof(cell)) for chapter, found in cells.items() for cell in found]
    if mistakes := [line for _, proof in proofs for line in proof.slip_mistakes()]:
        raise CourseError("\n".join(mistakes))
    first = CheckResults(
        exercises=len(proofs),
        rows=tuple(
            proof.misconception(chapter, wrong, mutilate=not quick)
            for chapter, proof in proofs
            for wrong in proof.exercise.misconceptions
        ),
        not_full=tuple(proof.exercise.name for _, proof in proofs if proof.lost(proof.cell.solution)),
        not_zero=tuple(proof.exercise.name for _, proof in proofs if proof.stub_earns()),
    )
    if quick:
        return first
    return replace(
        first,
        variants=tuple(row for _, proof in proofs for row in proof.variants()),
        mutants=tuple(row for _, proof in proofs for row in proof.mutants),
        untrue=tuple(line for _, proof in proofs for line in proof.untrue()),
        confused=tuple(line for _, proof in proofs for line in proof.confused()),
        constants=sum(len(proof.constants) for _, proof in proofs),
        guessable=tuple(line for _, proof in proofs for line in proof.guessable()),
        repeated=tuple(line for _, proof in proofs for line in proof.repeated()),
        ideas=tuple(row for _, proof in proofs for row in proof.ideas()),
    )


def doubts(cells: Sequence[AnswerCell], file: Path) -> Iterator[str]:
    """Yield a line for each known mistake that earns all points, and for each right answer that does not.

    This takes a tenth of the time of `prove`. `file` is the place that the lines name.
    """
    warm_up()
    for cell in cells:
        yield from (f"{file}: `{cell.exercise.name}`: {line}" for line in _Proof(cell).doubts())


class _Proof:
    """The submitted answers of one exercise. Each answer runs once on each case."""

    def __init__(self, cell: AnswerCell) -> None:
        self.cell = cell
        self.exercise = cell.exercise
        self.table = Outcomes(self.exercise, self._run)
        self.cases, self._expected, self._given = self.table.cases, self.table.expected, self.table.of_mistake

    def doubts(self) -> Iterator[str]:
        """Yield a line for each known answer that earns other points than its author expects."""
        for wrong in self.exercise.misconceptions:
            if self._reports(self._trials(partial(self._given, wrong)))[1].passed:
                yield f"the known mistake {wrong.name} earns all points. Add a case that it fails."
        for row in self.variants():
            if row.lost:
                yield f"the right answer {row.variant} loses points. {row.lost}"

    def slip_mistakes(self) -> Iterator[str]:
        """Yield a line for each mistake of its author in a slip: file, exercise, edit and reason."""
        if unfit := self.exercise.unfit_slips():
            yield from unfit
            return
        seen: list[Misconception] = []
        for wrong in self.exercise.misconceptions:
            if wrong.base is None:
                continue
            if reason := self._slip_mistake(wrong, seen):
                yield f"{place_of(self.exercise.name, wrong.base, wrong.edits)}: {reason}"
            seen.append(wrong)

    def _slip_mistake(self, wrong: Misconception, others: Sequence[Misconception]) -> str:
        trials = self._trials(partial(self._given, wrong))
        if all(trial.wrong is None for trial in trials):
            return "it is right in every case"
        failures = {trial.outcome.failure.kind: trial.outcome.failure for trial in trials if trial.outcome.failure}
        if 2 * sum(trial.outcome.timed_out for trial in trials if not trial.hidden) > len(self.exercise.public):
            return "it does not come to an end, and every wrong answer of a learner would wait for it"
        if "NameError" in failures:
            return f"it raises {failures['NameError']}"
        if self.exercise.task:
            return ""
        same = next((one.name for one in others if self._same_in_public(one, wrong)), "")
        return same and f"add a public case: in all of them it has the same results as {same}"

    def _same_in_public(self, one: Misconception, other: Misconception) -> bool:
        """Return True if no public case distinguishes two known mistakes.

        A mistake may be a slip of several right answers, because pairs are made of slips of one.
        """
        again = one.sentence == other.sentence and one.base and other.base and one.base is not other.base
        return not again and all(
            agree(self.exercise, self._given(one, case), self._given(other, case)) for case in self.exercise.public
        )

    def confused(self) -> list[str]:
        """Return the pairs of known wrong answers that no public case distinguishes."""
        if self.exercise.task:
            return []
        return [
            f"{self.exercise.name}: {one.name} = {other.name}"
            for one, other in combinations(self.exercise.misconceptions, 2)
            if self._same_in_public(one, other)
        ]

    def ideas(self) -> list[IdeaResult]:
        """Return the results of the attempts at an open task."""
        found = []
        for idea in self.exercise.ideas:
            answer = self.cell.run(answer_text(self.exercise, idea.written, idea.edits))
            trials = self._trials(partial(self._run, answer))
            public, graded = self._reports(trials)
            rows = "; ".join(", ".join(row) for row in graded.table if row[0].startswith("yours"))
            found.append(
                IdeaResult(
                    self.exercise.name, idea.name, idea.points, public.points, graded.points, rows or graded.diagnosis
                )
            )
        return found

    def variants(self) -> list[VariantResult]:
        """Return the results of the right answers in other styles. The ideas of an open task are measured once."""
        if self.exercise.task:
            return []
        texts = [(variant.name, answer_text(self.exercise, variant.answer)) for variant in self.exercise.variants]
        return [VariantResult(self.exercise.name, name, self.lost(text)) for name, text in texts]

    def repeated(self) -> list[str]:
        """Return the variants that repeat another one, unless slips are made from them."""
        if self.exercise.task:
            return []
        bases = {wrong.base for wrong in self.exercise.misconceptions}
        needed = [variant.name for variant in self.exercise.variants if variant.answer in bases]
        written = [variant for variant in self.exercise.variants if not isinstance(variant.answer, str)]
        answers = {variant.name: self.cell.run(answer_text(self.exercise, variant.answer)) for variant in written}
        found = repeats(self.exercise, answers, partial(self._run, seconds=self.exercise.seconds), needed)
        return [f"{self.exercise.name}: {one} repeats {other}" for one, other in found.items()]

    @cached_property
    def mutants(self) -> list[MutantResult]:
        """Return the results of the mutants of the printed solution."""
        reasons = {text: self.exercise.equivalent_mutants[change] for change, text in self._equivalents.items()}
        return [
            MutantResult(self.exercise.name, shown(mutant.change), caught, reasons.get(mutant.text, ""))
            for mutant, caught in self._mutants
        ]

    @cached_property
    def _mutants(self) -> list[tuple[Mutant, str]]:
        changed = () if self.exercise.task else mutants(self.cell.solution)  # a mutant may be as good
        return [(mutant, self._caught(mutant)) for mutant in changed]

    @cached_property
    def _equivalents(self) -> dict[str, str]:
        """The text of each mutant that is declared equivalent, by its change, if the change fits the solution."""
        found = {}
        for change in self.exercise.equivalent_mutants:
            with suppress(EditError):
                found[change] = with_change(self.cell.solution, change)
        return found

    @cached_property
    def constants(self) -> list[Constant]:
        """Return the answers that ignore their inputs; there are none for a value or an open task."""
        if self.exercise.value or self.exercise.task:
            return []
        return constant_answers(self._right)

    @cached_property
    def _right(self) -> list[Trial]:
        expected = [(case, hidden, self._expected(case)) for case, hidden in self.cases]
        return [Trial(self.exercise, case, hidden, one, one) for case, hidden, one in expected]

    def untrue(self) -> list[str]:
        """Return the mutants that are declared equivalent but do not exist or fail a case."""
        alive = {mutant.text for mutant, caught in self._mutants if not caught}
        return [
            f"{self.exercise.name}: {shown(change)}"
            for change in self.exercise.equivalent_mutants
            if self._equivalents.get(change) not in alive
        ]

    def stub_earns(self) -> bool:
        """Return True if the untouched stub earns points, or counts as written."""
        try:
            stub = self.cell.run(self.cell.stub)
        except NotImplementedError:  # of a class whose whole body is the answer
            return False
        trials = self._trials(partial(self._run, stub))
        return any(report.points or report.answered for report in self._reports(trials))

    def guessable(self) -> list[str]:
        """Return the answers that ignore their inputs and still earn points."""
        found = []
        for constant in self.constants:
            passed, seconds = [True] * len(self.cases), self.exercise.seconds
            for place, (case, _) in enumerate(self.cases):
                needs_run = case.script is not None
                outcome = self._run(constant.answer, case, seconds) if needs_run else constant.outcome
                passed[place] = verdict(self.exercise, case, self._expected(case), outcome) is None
                earned = {"notebook": self._earns(passed[: len(self.exercise.public)]), "grade": self._earns(passed)}
                if not any(earned.values()):  # not even if it passes every other case
                    break
                seconds = seconds_after(outcome, seconds)
            else:
                found += [
                    f"{self.exercise.name}: {constant.name} earns {points:g} in the {where}"
                    for where, points in earned.items()
                    if points
                ]
        return found

    def _earns(self, passed: Sequence[bool]) -> float:
        trials = self._right[: len(passed)]
        return score(trials, passed, groups_of(trials)).points

    def lost(self, text: str) -> str:
        """Return why a right answer loses points, or ""."""
        try:
            answer = self.cell.run(text)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        rules = self.exercise.rules
        trials = self._trials(partial(self._run, answer, forbid=rules))
        for report in self._reports(trials, forbidden_in_source(answer, rules)):
            if not report.passed:
                wrong = [case for case in report.cases if not case.passed]
                return report.diagnosis or "; ".join(f"{case.name}: {case.message}" for case in wrong)
        return ""

    def misconception(self, chapter: Chapter, wrong: Misconception, *, mutilate: bool) -> MisconceptionResult:
        """Return the result of a known wrong answer, and of its mutilated forms."""
        trials = self._trials(partial(self._given, wrong))
        public, graded = self._reports(trials)
        previewed = self.exercise.preview is not None and all(case.passed for case in public.cases)
        mutilate = mutilate and not self.exercise.task
        forms = [self._mutilated(wrong, trials, name) for name in MUTILATIONS if mutilate]
        named = [wrong.sentence in (report.mistake, report.diagnosis) for report in (public, graded)]
        return MisconceptionResult(
            chapter.id,
            self.exercise.name,
            wrong.name,
            self.exercise.points,
            public.points,
            graded.points,
            named[0] or previewed,
            named[1],
            sum(form is not None for form in forms),
            tuple(name for form in forms for name in form or ()),
        )

    def _mutilated(self, wrong: Misconception, trials: Sequence[Trial], mutilation: str) -> list[str] | None:
        """Return where a mutilated form of a misconception is not named; None if no form has to be named.

        It must be named if its numbers are wrong in an ordinary case, and if these are enough evidence.
        """
        pairs = [(trial, MUTILATIONS[mutilation](trial)) for trial in trials]
        changed = [trial if new is trial.outcome else replace(trial, outcome=new) for trial, new in pairs]
        if all(one is other for one, other in zip(trials, changed, strict=True)):
            return None
        found: list[str] | None = None
        for where, count in (("grade", len(trials)), ("notebook", len(self.exercise.cases))):
            original, mutilated = trials[:count], changed[:count]
            deciding = [one for one in original if one.wrong is not None and not one.edge]
            still = [one for one in mutilated if one.wrong is not None and not one.edge]
            if not (any_wrong_number(deciding) and any_wrong_number(still)):
                break
            found = found or []
            named = recognise(self.exercise, mutilated, self.table)
            if enough_evidence(deciding) and (named is None or wrong not in named.mistakes):
                found.append(f"{mutilation} ({where})")
        return found

    def _caught(self, mutant: Mutant) -> str:
        """Return where a mutant first fails a case: "notebook", "grade" or ""."""
        try:
            answer = self.cell.run(mutant.text)
        except Exception:
            return "notebook"
        right = mutant.text in self._equivalents.values()
        for (case, hidden), seconds in zip(self.cases, self._mutant_seconds, strict=True):
            outcome = self._run(answer, case, self.exercise.seconds if right else seconds)
            if verdict(self.exercise, case, self._expected(case), outcome):
                return "grade" if hidden and not self.exercise.preview else "notebook"
        return ""

    @cached_property
    def _mutant_seconds(self) -> list[float]:
        answer, found = self.cell.run(self.cell.solution), []
        for case, _ in self.cases:
            begin = process_time()
            self._run(answer, case, self.exercise.seconds)
            taken = process_time() - begin
            found.append(min(MUTANT_SECONDS + MUTANT_SHARE * taken, self.exercise.seconds))
        return found

    def _reports(self, trials: Sequence[Trial], forbidden: Sequence[Use] = ()) -> tuple[Report, Report]:
        """Return two reports on an answer: of the notebook's check, and of grading."""
        return (
            judge(self.exercise, trials[: len(self.exercise.public)], forbidden=forbidden, table=self.table),
            judge(self.exercise, trials, hidden=True, forbidden=forbidden, table=self.table),
        )

    def _trials(self, run: Run) -> list[Trial]:

        def trial(case: Case, hidden: bool, seconds: float) -> Trial:
            return Trial(self.exercise, case, hidden, run(case, seconds), self._expected(case))

        return try_cases(self.cases, trial, self.exercise.seconds)

    def _run(self, answer: Callable[..., Any], case: Case, seconds: float, forbid: tuple[str, ...] = ()) -> Outcome:
        file = self.exercise.file  # answers read this file from the working folder
        with chdir(file.parent) if file else nullcontext():
            return run_case(answer, case, name=self.exercise.name, seconds=seconds, forbid=forbid)
