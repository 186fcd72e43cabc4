"""Mutation test of the exercises: every known wrong answer must lose points and be named.

Every misconception of every exercise is submitted as if a learner had written it. It must lose points in the grade and
be named by its own sentence, and the printed solution must earn everything, whatever hidden cases the grader's seed
chooses. A table of all of them is what `lmcourse matrix` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmcourse.course import Chapter
from lmcourse.exercises.cases import Case
from lmcourse.exercises.checking import check_exercise, try_cases
from lmcourse.exercises.exercise import Exercise, Misconception
from lmcourse.exercises.judge import judge
from lmcourse.exercises.outcome import Outcome, run_case
from lmcourse.exercises.registry import exercises_of

SEEDS = tuple(range(3))
"""Seeds of the hidden cases under which misconceptions are submitted."""

SOLUTION_SEEDS = tuple(range(20))
"""Seeds under which printed solutions are; these are fewer, so they can have more of them."""


@dataclass(frozen=True)
class MisconceptionResult:
    """Result of submitting one wrong answer.

    Attributes:
        chapter, exercise, misconception: where it belongs, and its name.
        max_points: what the exercise is worth.
        public_points: what it earned in the notebook.
        hidden_points: the most that it earned in a grade, under any seed.
        diagnosed_in_public: whether the report in the notebook said its sentence.
        diagnosed_in_grade: whether the report of the grade did, under every seed.
    """

    chapter: str
    exercise: str
    misconception: str
    max_points: int
    public_points: float
    hidden_points: float
    diagnosed_in_public: bool
    diagnosed_in_grade: bool

    @property
    def killed(self) -> bool:
        """It lost points in the grade."""
        return self.hidden_points < self.max_points

    @property
    def named(self) -> bool:
        """The grade's report, and the public one if it failed there, says what the mistake is."""
        return self.diagnosed_in_grade and (self.diagnosed_in_public or self.public_points == self.max_points)


@dataclass(frozen=True)
class Matrix:
    """Results of the mutation test: misconceptions, printed solutions and untouched stubs.

    Attributes:
        exercises: the number of exercises.
        rows: a result for every misconception.
        not_full: exercises whose printed solution does not earn all points.
        not_zero: exercises whose untouched stub earns points.
    """

    exercises: int
    rows: tuple[MisconceptionResult, ...]
    not_full: tuple[str, ...]
    not_zero: tuple[str, ...]

    @property
    def proved(self) -> bool:
        """Whether every misconception is caught and named, every solution earns all points and every stub none."""
        return all(row.killed and row.named for row in self.rows) and not self.not_full and not self.not_zero

    def to_json(self) -> dict[str, Any]:
        """The results as plain data."""
        return {
            "exercises": self.exercises,
            "misconceptions": len(self.rows),
            "killed": sum(row.killed for row in self.rows),
            "named": sum(row.named for row in self.rows),
            "solutions_full": not self.not_full,
            "stubs_zero": not self.not_zero,
            "rows": [asdict(row) | {"killed": row.killed, "named": row.named} for row in self.rows],
        }


def prove(chapters: Sequence[Chapter], solutions: dict[str, Any], stubs: dict[str, Any]) -> Matrix:
    """Submit every misconception, printed solution and stub of these chapters.

    Args:
        chapters: what to prove.
        solutions: by exercise name, the answer printed in the solution notebook.
        stubs: by exercise name, the answer a student copy starts with.
    """
    rows: list[MisconceptionResult] = []
    not_full: list[str] = []
    not_zero: list[str] = []
    pairs = [(chapter, exercise) for chapter in chapters for exercise in exercises_of(chapter)]
    for chapter, exercise in pairs:
        known = _KnownAnswers(exercise)
        rows += [_row(chapter, exercise, wrong, known) for wrong in exercise.misconceptions]
        if _points(exercise, solutions[exercise.name], SOLUTION_SEEDS) != {exercise.points}:
            not_full.append(exercise.name)
        if _points(exercise, stubs[exercise.name]) != {0.0}:
            not_zero.append(exercise.name)
    return Matrix(len(pairs), tuple(rows), tuple(not_full), tuple(not_zero))


def _points(exercise: Exercise, answer: Any, seeds: Sequence[int] = ()) -> set[float]:
    """What an answer earns in the notebook, in the grade, and with the hidden cases of more seeds.

    Rules are about code and not about inputs: looking whether they are kept takes longest, and once is enough.
    """
    reports = [check_exercise(exercise, answer, hidden=hidden) for hidden in (False, True)]
    if exercise.hidden_cases:
        reports += [check_exercise(exercise, answer, hidden=True, enforce=False, seed=seed) for seed in seeds]
    return {report.points for report in reports}


class _KnownAnswers:
    """What the reference and the misconceptions of an exercise give on its cases.

    Each is run once on each case: a misconception is submitted, and compared with the results of all others.
    """

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        self.hidden = {seed: exercise.hidden(seed) for seed in SEEDS}
        self._outcomes: dict[tuple[str, int], Outcome] = {}

    def expected(self, case: Case) -> Outcome:
        """The outcome of the reference on a case."""
        return self._once(
            "", case, lambda: run_case(self.exercise.reference, case, name=self.exercise.name, seconds=60)
        )

    def given(self, wrong: Misconception, case: Case) -> Outcome:
        """The outcome of a misconception on a case."""
        name, seconds = self.exercise.name, self.exercise.seconds
        return self._once(wrong.name, case, lambda: run_case(wrong.answer, case, name=name, seconds=seconds))

    def _once(self, answer: str, case: Case, run: Callable[[], Outcome]) -> Outcome:
        key = (answer, id(case))  # the cases live as long as this object
        if key not in self._outcomes:
            self._outcomes[key] = run()
        return self._outcomes[key]


def _row(chapter: Chapter, exercise: Exercise, wrong: Misconception, known: _KnownAnswers) -> MisconceptionResult:
    def answer(case: Case) -> Outcome:
        return known.given(wrong, case)

    graded = []
    for seed in SEEDS:
        cases = [(case, False) for case in exercise.cases] + [(case, True) for case in known.hidden[seed]]
        trials = try_cases(cases, answer, known.expected)
        graded.append(judge(exercise, trials, hidden=True, guess=known.given))
    public = judge(exercise, [trial for trial in trials if not trial.hidden], guess=known.given)
    return MisconceptionResult(
        chapter.id,
        exercise.name,
        wrong.name,
        exercise.points,
        public.points,
        max(report.points for report in graded),
        public.diagnosis == wrong.sentence,
        all(report.diagnosis == wrong.sentence for report in graded),
    )
