"""Submit every wrong answer, right answer, stub and mutant of an exercise.

Every misconception is submitted as if a learner had written it: it must lose points in the grade and be named by its
own sentence. Printed solutions and variants must earn everything. Every mutant of a solution must lose points. All of
that must hold whatever hidden cases the grader's seed chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from typing import Any

from lmcourse.course import Chapter
from lmcourse.exercises.cases import Case
from lmcourse.exercises.checking import REFERENCE_SECONDS, try_cases
from lmcourse.exercises.exercise import Misconception
from lmcourse.exercises.forbidden_names import forbidden_in_source
from lmcourse.exercises.guesses import RememberedGuesses
from lmcourse.exercises.judge import GUESSED, GUESSED_HIDDEN, agree, agree_on, judge
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.trial import Trial, verdict
from lmcourse.proof.answers import AnswerCell
from lmcourse.proof.matrix import Matrix, MisconceptionResult, MutantResult, VariantResult
from lmcourse.proof.mutants import mutants
from lmcourse.proof.variants import variant_text
from lmcourse.report import Report

SEEDS = range(20)
"""Seeds of the hidden cases under which answers are submitted."""

QUICK_SEEDS = SEEDS[:8]
"""Those under which a mark that depends on the seed is all but sure to be seen, in two thirds of the time."""

MUTANT_SECONDS = 2.0
"""The time limit of a mutant on one case: many of them loop for ever."""


def prove(cells: Mapping[Chapter, Sequence[AnswerCell]], mutant_seeds: int = 0, seeds: Sequence[int] = SEEDS) -> Matrix:
    """Submit everything that is known of the exercises in these cells.

    Args:
        cells: by chapter; see `answers.answer_cells`.
        mutant_seeds: under how many seeds the points of each mutant are compared. Many mutants make that slow; that
            they lose points is known without.
        seeds: under which all other answers are submitted, from 0 on.
    """
    proofs = [(chapter, _Proof(cell, range(mutant_seeds), seeds)) for chapter, found in cells.items() for cell in found]
    return Matrix(
        exercises=len(proofs),
        rows=tuple(row for chapter, proof in proofs for row in proof.misconceptions(chapter)),
        variants=tuple(row for _, proof in proofs for row in proof.variants()),
        mutants=tuple(row for _, proof in proofs for row in proof.mutants()),
        not_full=tuple(proof.exercise.name for _, proof in proofs if proof.solution_loses()),
        not_zero=tuple(proof.exercise.name for _, proof in proofs if proof.stub_earns()),
        untrue=tuple(line for _, proof in proofs for line in proof.untrue()),
        confused=tuple(line for _, proof in proofs for line in proof.confused()),
    )


class _Proof:
    """The proof of one exercise.

    Each answer runs once on each case, however many seeds have the case and however many others it is compared with.
    """

    def __init__(self, cell: AnswerCell, mutant_seeds: Sequence[int], seeds: Sequence[int]) -> None:
        self.cell = cell
        self.seeds = seeds
        self.mutant_seeds = mutant_seeds
        self.exercise = cell.exercise
        self._hidden: dict[int, list[Case]] = {}
        self._outcomes: dict[tuple[str, int], Outcome] = {}
        self._guesses = RememberedGuesses()
        self._mutants: list[MutantResult] | None = None

    def misconceptions(self, chapter: Chapter) -> list[MisconceptionResult]:
        """What became of the known wrong answers."""
        return [self._misconception(chapter, wrong) for wrong in self.exercise.misconceptions]

    def confused(self) -> list[str]:
        """The pairs of known wrong answers that no public case tells apart."""
        return [
            f"{self.exercise.name}: {one.name} = {other.name}"
            for one, other in combinations(self.exercise.misconceptions, 2)
            if all(agree(self.exercise, self.given(one, case), self.given(other, case)) for case in self.exercise.cases)
        ]

    def variants(self) -> list[VariantResult]:
        """What became of the right answers in other styles."""
        texts = [(variant.name, variant_text(self.exercise, variant)) for variant in self.exercise.variants]
        return [VariantResult(self.exercise.name, name, self._lost(text)) for name, text in texts]

    def mutants(self) -> list[MutantResult]:
        """What became of the mutants of the printed solution."""
        if self._mutants is None:
            reasons = self.exercise.equivalent_mutants
            self._mutants = [
                MutantResult(
                    self.exercise.name,
                    mutant.change,
                    self._killed(mutant.text),
                    reasons.get(mutant.change, ""),
                    self._points(mutant.text),
                )
                for mutant in mutants(self.cell.solution)
            ]
        return self._mutants

    def untrue(self) -> list[str]:
        """What is said of mutants without being so."""
        alive = {mutant.change for mutant in self.mutants() if not mutant.killed}
        return [f"{self.exercise.name}: {change}" for change in self.exercise.equivalent_mutants if change not in alive]

    def solution_loses(self) -> bool:
        """Whether the printed solution does not earn everything."""
        return bool(self._lost(self.cell.solution))

    def stub_earns(self) -> bool:
        """Whether the untouched stub earns points."""
        stub = self._trials(partial(self._run, self.cell.run(self.cell.stub)))
        return any(self._graded(stub, seed).points for seed in (None, self.seeds[0]))

    def _misconception(self, chapter: Chapter, wrong: Misconception) -> MisconceptionResult:
        answer = self._trials(partial(self.given, wrong))
        graded = [self._graded(answer, seed) for seed in self.seeds]
        public = self._graded(answer, None)
        return MisconceptionResult(
            chapter.id,
            self.exercise.name,
            wrong.name,
            self.exercise.points,
            public.points,
            max(report.points for report in graded),
            min(report.points for report in graded),
            _named(public, wrong),
            all(_named(report, wrong) for report in graded),
        )

    def _lost(self, text: str) -> str:
        """Why a right answer does not earn everything, or an empty text.

        Rules are about code and not about inputs: looking whether they are kept takes longest, and the cases of one
        seed are enough.
        """
        try:
            answer = self.cell.run(text)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        rules = self.exercise.rules
        watched = {id(case) for case in (*self.exercise.cases, *self._cases(self.seeds[0]))}

        def run(case: Case, seconds: float) -> Outcome:
            return self._run(answer, case, seconds, rules if id(case) in watched else ())

        trials, forbidden = self._trials(run), forbidden_in_source(answer, rules)
        for seed in (None, *self.seeds):
            report = self._graded(trials, seed, forbidden)
            if report.points < self.exercise.points:
                why = report.diagnosis or _failing(report)
                return f"seed {seed}: {why}" if seed else why
        return ""

    def _killed(self, text: str) -> bool:
        """Whether an answer fails on a case that is there under every seed."""
        try:
            answer = self.cell.run(text)
        except Exception:
            return True
        for case in chain(self.exercise.cases, self._fixed_cases()):
            seconds = min(MUTANT_SECONDS, self.exercise.seconds)
            outcome = run_case(answer, case, name=self.exercise.name, seconds=seconds)
            if verdict(self.exercise, case, self.expected(case), outcome):
                return True
        return False

    def _points(self, text: str) -> tuple[float, ...]:
        """The least and the most that a mutant earns under the seeds for mutants; nothing if it does not run."""
        try:
            answer = self.cell.run(text)
        except Exception:
            return ()

        def run(case: Case, seconds: float) -> Outcome:
            return self._run(answer, case, min(MUTANT_SECONDS, seconds))

        trials = self._trials(run)
        points = [self._graded(trials, seed).points for seed in self.mutant_seeds]
        return (min(points), max(points)) if points else ()

    def _trials(self, answer: Callable[[Case, float], Outcome]) -> _Trials:
        return _Trials(self, answer)

    def _graded(self, answer: _Trials, seed: int | None, forbidden: Sequence[str] = ()) -> Report:
        """The report of a grade under a seed; without one, of a check in the notebook. `forbidden` is in the source."""
        cases = [(case, False) for case in self.exercise.cases]
        if seed is not None:
            cases += [(case, True) for case in self._cases(seed)]
        trials = try_cases(cases, answer.trial, self.exercise.seconds)
        return judge(
            self.exercise,
            trials,
            hidden=seed is not None,
            forbidden=forbidden,
            agrees=answer.agrees,
            count_guesses=self._guesses,
        )

    def _cases(self, seed: int) -> list[Case]:
        """The hidden cases of a seed. One that is there under every seed is the same object each time."""
        if seed not in self._hidden:
            cases = self.exercise.hidden(seed)
            first = self._cases(0) if seed else cases
            self._hidden[seed] = [case if case.random else first[n] for n, case in enumerate(cases)]
        return self._hidden[seed]

    def _fixed_cases(self) -> list[Case]:
        """The hidden cases that are there under every seed."""
        return [case for case in self._cases(0) if not case.random]

    def expected(self, case: Case) -> Outcome:
        """The outcome of the reference on a case."""
        return self._once(
            "",
            case,
            lambda: run_case(self.exercise.reference, case, name=self.exercise.name, seconds=REFERENCE_SECONDS),
        )

    def given(self, wrong: Misconception, case: Case, seconds: float | None = None) -> Outcome:
        """The outcome of a misconception on a case, within a time limit; by default the exercise's."""
        return self._once(wrong.name, case, lambda: self._run(wrong.answer, case, seconds or self.exercise.seconds))

    def _run(self, answer: Callable[..., Any], case: Case, seconds: float, forbid: tuple[str, ...] = ()) -> Outcome:
        return run_case(answer, case, name=self.exercise.name, seconds=seconds, forbid=forbid)

    def _once(self, answer: str, case: Case, run: Callable[[], Outcome]) -> Outcome:
        key = (answer, id(case))  # the cases live as long as this object
        if key not in self._outcomes:
            self._outcomes[key] = run()
        return self._outcomes[key]


class _Trials:
    """The trials of one answer: it runs on each case once, and is compared once with each other answer."""

    def __init__(self, proof: _Proof, answer: Callable[[Case, float], Outcome]) -> None:
        self._proof = proof
        self._answer = answer
        self._trials: dict[int, Trial] = {}
        self._agreed: dict[tuple[str, int], bool] = {}

    def trial(self, case: Case, hidden: bool, seconds: float) -> Trial:
        """A case put to it, within a time limit, and to the reference."""
        if id(case) not in self._trials:
            outcome = self._answer(case, seconds)
            self._trials[id(case)] = Trial(self._proof.exercise, case, hidden, outcome, self._proof.expected(case))
        return self._trials[id(case)]

    def agrees(self, wrong: Misconception, trial: Trial) -> bool:
        """Whether a known wrong answer gives the same."""
        key = (wrong.name, id(trial.case))
        if key not in self._agreed:
            self._agreed[key] = agree_on(trial, self._proof.given(wrong, trial.case))
        return self._agreed[key]


def _named(report: Report, wrong: Misconception) -> bool:
    """Whether a report says its sentence, and at most why nothing is earned after it."""
    said = report.diagnosis.removesuffix(GUESSED).removesuffix(GUESSED_HIDDEN).rstrip()
    return bool(said) and said == wrong.sentence


def _failing(report: Report) -> str:
    return "; ".join(f"{case.name}: {case.message}" for case in report.cases if not case.passed)
