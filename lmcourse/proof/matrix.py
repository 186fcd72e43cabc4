"""The results of the proof: what became of every wrong answer, right answer and mutant."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MisconceptionResult:
    """Result of submitting one known wrong answer.

    Attributes:
        chapter, exercise, misconception: where it belongs, and its name.
        max_points: what the exercise is worth.
        public_points: what it earned in the notebook.
        hidden_points: the most that it earned in a grade, under any seed.
        least_points: the least.
        diagnosed_in_public: whether the report in the notebook said its sentence.
        diagnosed_in_grade: whether the report of the grade did, under every seed.
    """

    chapter: str
    exercise: str
    misconception: str
    max_points: int
    public_points: float
    hidden_points: float
    least_points: float
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

    @property
    def lucky(self) -> bool:
        """Its points depend on the seed."""
        return self.least_points < self.hidden_points


@dataclass(frozen=True)
class VariantResult:
    """Result of submitting a right answer: a variant, or the printed solution.

    Attributes:
        exercise, variant: where it belongs, and its name.
        lost: why it does not earn everything, or an empty text.
    """

    exercise: str
    variant: str
    lost: str


@dataclass(frozen=True)
class MutantResult:
    """Result of submitting a mutant of a printed solution.

    Attributes:
        exercise: what it answers.
        change: the statement before and after.
        killed: whether it lost points, by a case that is the same under every seed.
        equivalent: why it is right too, if somebody said so.
        points: what it earned, least and most, under the seeds that it was submitted with; nothing if there were none.
    """

    exercise: str
    change: str
    killed: bool
    equivalent: str = ""
    points: tuple[float, ...] = ()

    @property
    def lucky(self) -> bool:
        """Its points depend on the seed."""
        return len(set(self.points)) > 1


@dataclass(frozen=True)
class Matrix:
    """Everything that was submitted.

    Attributes:
        exercises: the number of exercises.
        rows: a result for every misconception.
        variants: one for every right variant.
        mutants: one for every mutant.
        not_full: exercises whose printed solution does not earn all points.
        not_zero: exercises whose untouched stub earns points.
        untrue: what was said of mutants that are no mutants, or are not equivalent: "ulp: x → y".
        confused: pairs of misconceptions that no public case tells apart: "ulp: doubled = halved".
    """

    exercises: int
    rows: tuple[MisconceptionResult, ...]
    variants: tuple[VariantResult, ...] = ()
    mutants: tuple[MutantResult, ...] = ()
    not_full: tuple[str, ...] = ()
    not_zero: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()
    confused: tuple[str, ...] = ()

    @property
    def survivors(self) -> list[MutantResult]:
        """The mutants that keep all points, and of which nobody says why."""
        return [mutant for mutant in self.mutants if not mutant.killed and not mutant.equivalent]

    @property
    def lucky_mutants(self) -> list[MutantResult]:
        """The mutants whose points depend on the seed, of those that were submitted under several."""
        return [mutant for mutant in self.mutants if mutant.lucky]

    @property
    def proved(self) -> bool:
        """Whether every wrong answer loses points and is named, whatever the seed, and every right one earns them."""
        wrong = all(row.killed and row.named and not row.lucky for row in self.rows)
        right = not any(variant.lost for variant in self.variants) and not self.not_full
        others = (self.survivors, self.lucky_mutants, self.not_zero, self.untrue, self.confused)
        return wrong and right and not any(others)

    def to_json(self) -> dict[str, Any]:
        """The results as plain data."""
        return {
            "exercises": self.exercises,
            "misconceptions": len(self.rows),
            "killed": sum(row.killed for row in self.rows),
            "named": sum(row.named for row in self.rows),
            "lucky": sum(row.lucky for row in self.rows),
            "variants": len(self.variants),
            "variants_full": sum(not variant.lost for variant in self.variants),
            "mutants": len(self.mutants),
            "mutants_killed": sum(mutant.killed for mutant in self.mutants),
            "equivalent": sum(bool(mutant.equivalent) for mutant in self.mutants),
            "solutions_full": not self.not_full,
            "stubs_zero": not self.not_zero,
            "rows": [asdict(row) | {"killed": row.killed, "named": row.named, "lucky": row.lucky} for row in self.rows],
            "variants_not_full": [asdict(variant) for variant in self.variants if variant.lost],
            "survivors": [asdict(mutant) for mutant in self.survivors],
            "lucky_mutants": [asdict(mutant) for mutant in self.lucky_mutants],
            "untrue": list(self.untrue),
            "confused": list(self.confused),
        }
