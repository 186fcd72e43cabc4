"""The results of `lmcourse test-checks`: the points of every wrong answer, right answer, mutant and constant."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MisconceptionResult:
    """The result of submitting one known wrong answer, and its mutilated forms that have wrong numbers in an ordinary
    case.

    `unnamed` lists those that are not named although the evidence is strong enough: "edges dropped (notebook)".
    """

    chapter: str
    exercise: str
    misconception: str
    max_points: int
    public_points: float
    graded_points: float
    named_in_public: bool
    named_in_grade: bool
    mutilated: int = 0
    unnamed: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """True if the misconception lost points in grading."""
        return self.graded_points < self.max_points

    @property
    def named(self) -> bool:
        """True if the reports of the notebook and of grading name the mistake."""
        return self.named_in_public and self.named_in_grade


@dataclass(frozen=True)
class VariantResult:
    """The result of submitting a right answer in another style: why it loses points, or ""."""

    exercise: str
    variant: str
    lost: str


@dataclass(frozen=True)
class IdeaResult:
    """The result of submitting an attempt at an open task: the points in the notebook and in the grade, and what was
    measured.
    """

    exercise: str
    idea: str
    points: float
    public_points: float
    graded_points: float
    measured: str

    @property
    def as_stated(self) -> bool:
        """True if it earns the points that its author states in the grade, and no fewer in the notebook."""
        return self.points == self.graded_points <= self.public_points


@dataclass(frozen=True)
class MutantResult:
    """The result of submitting a mutant: where it is caught, "notebook", "grade" or "", and the reason if its exercise
    declares it a right answer."""

    exercise: str
    change: str
    caught: str
    equivalent: str = ""


@dataclass(frozen=True)
class CheckResults:
    """The results of all submitted answers.

    Attributes:
        not_full: exercises whose printed solution does not earn all points.
        not_zero: exercises whose untouched stub earns points, or counts as written.
        untrue: mutants that are declared equivalent but do not exist or fail a case, such as "ulp: x → y".
        confused: pairs of misconceptions that no public case distinguishes, such as "ulp: doubled = halved".
        constants: the number of constant answers that were submitted.
        guessable: the constant answers that earn points, such as "is_causal: True earns 0.5 in the grade".
        repeated: the right answers that repeat another one, such as "ulp: in a loop repeats with frexp".
    """

    exercises: int
    rows: tuple[MisconceptionResult, ...]
    variants: tuple[VariantResult, ...] = ()
    mutants: tuple[MutantResult, ...] = ()
    not_full: tuple[str, ...] = ()
    not_zero: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()
    confused: tuple[str, ...] = ()
    constants: int = 0
    guessable: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    ideas: tuple[IdeaResult, ...] = ()

    @property
    def survivors(self) -> list[MutantResult]:
        """The mutants that earn all points although they are not declared equivalent."""
        return [mutant for mutant in self.mutants if not mutant.caught and not mutant.equivalent]

    @property
    def unseen(self) -> list[MutantResult]:
        """The mutants that pass the notebook's check and lose points in the grade."""
        return [mutant for mutant in self.mutants if mutant.caught == "grade"]

    @property
    def proved(self) -> bool:
        """True if every wrong answer loses points and is named, and every right answer earns all points."""
        wrong = all(row.killed and row.named and not row.unnamed for row in self.rows)
        right = not any(variant.lost for variant in self.variants) and not self.not_full
        right = right and all(idea.as_stated for idea in self.ideas)
        others = (self.survivors, self.unseen, self.not_zero, self.untrue, self.confused, self.guessable, self.repeated)
        return wrong and right and not any(others)

    def to_json(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return {
            "exercises": self.exercises,
            "misconceptions": len(self.rows),
            "killed": sum(row.killed for row in self.rows),
            "named": sum(row.named for row in self.rows),
            "mutilated": sum(row.mutilated for row in self.rows),
            "mutilated_unnamed": sum(len(row.unnamed) for row in self.rows),
            "variants": len(self.variants),
            "variants_full": sum(not variant.lost for variant in self.variants),
            "mutants": len(self.mutants),
            "mutants_killed": sum(bool(mutant.caught) for mutant in self.mutants),
            "equivalent": sum(bool(mutant.equivalent) for mutant in self.mutants),
            "constants": self.constants,
            "solutions_full": not self.not_full,
            "stubs_zero": not self.not_zero,
            "rows": [asdict(row) | {"killed": row.killed, "named": row.named} for row in self.rows],
            "variants_not_full": [asdict(variant) for variant in self.variants if variant.lost],
            "survivors": [asdict(mutant) for mutant in self.survivors],
            "unseen": [asdict(mutant) for mutant in self.unseen],
            "untrue": list(self.untrue),
            "confused": list(self.confused),
            "guessable": list(self.guessable),
            "repeated": list(self.repeated),
            "ideas": [asdict(idea) for idea in self.ideas],
        }
