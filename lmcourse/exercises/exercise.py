"""The definition of an exercise: reference, test cases, hints, forbidden names, misconceptions.

The notebook, the checks under each cell, the hints, the hidden tests, the grade, the proof that the tests have teeth
and the progress table all read the same `Exercise`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.derived import derived_cases
from lmcourse.exercises.forbidden_names import ANSWER_LIBRARIES
from lmcourse.exercises.values import Plain

Answer = Callable[..., Any]
HiddenCases = Callable[[random.Random], Sequence[Case]]

DIFFICULTY = {1: "●", 2: "●●", 3: "●●●"}


@dataclass(frozen=True)
class Misconception:
    """A common wrong answer, executable.

    Attributes:
        name: a few words for tables: "unscaled".
        sentence: the diagnosis for a learner whose results match exactly.
        answer: the wrong answer itself.
    """

    name: str
    sentence: str
    answer: Answer


@dataclass(frozen=True)
class Variant:
    """A right answer in another style than the printed one.

    Attributes:
        name: a few words for tables: "with loops".
        answer: the answer itself; for a value, the expression that a learner would type.
    """

    name: str
    answer: Answer | str


@dataclass(eq=False)
class Exercise:
    """An exercise: its reference answer, test cases, hints, known misconceptions and right variants.

    Args:
        name: the name of the learner's function, class or variable; also the nbgrader id of its cell.
        points: the most it can earn.
        minutes: how long a reader needs.
        difficulty: 1, 2 or 3.
        reference: the right answer, independent of the solution printed in the notebook. For a numeric answer, a
            function of nothing that computes it.
        cases: public cases: few, named, small enough to print.
        hidden_cases: given a random generator, the cases that grading adds: other shapes, dtypes, edges, bad input.
            Cases of one name form a group. They are held back until grading, not secret.
        hints: from a nudge to nearly the answer.
        forbid: dotted names the answer must do without (see `forbidden_names`).
        may_use_package: whether the answer may use what earlier notebooks built, from `lmcourse`. Otherwise the
            package is among the forbidden names; its exercises and chapters, and libraries of whole models, always are.
        tolerance: for numbers; by default as tight as their dtype allows.
        seconds: the time limit of one case.
        value: the answer is a number, not code; a report then never shows the expected one.
        uses: the earlier exercises of its notebook whose functions an answer is meant to call. Where the learner's is
            wrong, this answer is judged again with the printed solution in that cell.
        view: where many results are right, what of a result is compared with the same of the reference's, case by
            case: a property of a design, say. It works where the judge does, never where the learner's code runs, and
            has to take whatever plain data an answer may return.
        new: the result is new: it is no input, and shares no memory with one.
        differentiable: the result is part of a model or a loss, and autograd must reach the float inputs from it.
        file: a right example of the file that an answer reads from the working folder. Learners make a file of that
            name, and hand it in inside the notebook (see `handed_in`).
        contiguous: why its inputs are never laid out with gaps in memory; empty if they may be.
    """

    name: str
    points: int
    minutes: int
    difficulty: int
    reference: Answer
    cases: Sequence[Case]
    hidden_cases: HiddenCases | None = None
    hints: Sequence[str] = ()
    forbid: Sequence[str] = ()
    may_use_package: bool = False
    tolerance: Tolerance | None = None
    seconds: float = 10.0
    value: bool = False
    uses: Sequence[str] = ()
    view: Callable[[Case, Plain], Plain] | None = None
    new: bool = False
    differentiable: bool = False
    file: Path | None = None
    contiguous: str = ""
    misconceptions: list[Misconception] = field(default_factory=list, init=False)
    variants: list[Variant] = field(default_factory=list, init=False)
    equivalent_mutants: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.points < 1 or self.difficulty not in DIFFICULTY or not self.cases:
            raise ValueError(f"{self.name}: an exercise needs points, a difficulty of 1 to 3, and cases")
        if self.value and self.hidden_cases:
            raise ValueError(f"{self.name}: an exercise that asks for a value needs one case, and no hidden cases")

    def misconception(self, sentence: str) -> Callable[[Answer], Answer]:
        """Decorate a wrong answer; `sentence` is shown to a learner whose results match it."""

        def register(answer: Answer) -> Answer:
            name = answer.__name__.strip("_").replace("_", " ")
            self.misconceptions.append(Misconception(name, sentence, answer))
            return answer

        return register

    def wrong_value(self, value: Any, sentence: str) -> None:
        """Add a wrong value that people really give, for an exercise that asks for a value."""
        self.misconceptions.append(Misconception(str(value), sentence, lambda: value))

    def variant(self, answer: Answer) -> Answer:
        """Decorate a right answer in another style: it must earn everything.

        It is submitted as the text that stands here, as if a learner had typed it, with the imports above it that it
        uses; so it calls nothing else of its module, and keeps the exercise's rules.
        """
        self.variants.append(Variant(answer.__name__.strip("_").replace("_", " "), answer))
        return answer

    def right_value(self, *expressions: str) -> None:
        """Other ways to write the right value of an exercise whose answer is a value: "np.float64(21.5)"."""
        self.variants += [Variant(expression, expression) for expression in expressions]

    def equivalent_mutant(self, change: str, reason: str) -> None:
        """Declare that a mutant of the printed solution is right, with the reason.

        Args:
            change: as `lmcourse matrix` prints it: "n // 2 → n / 2".
            reason: why no case can tell it from the solution.
        """
        self.equivalent_mutants[change] = reason

    @property
    def rules(self) -> tuple[str, ...]:
        """The dotted names its answer may not use."""
        if self.value:
            return ()
        package = ("lmcourse.exercises", "lmcourse.chapters") if self.may_use_package else ("lmcourse",)
        return tuple(dict.fromkeys((*self.forbid, *package, *ANSWER_LIBRARIES)))

    @property
    def summary(self) -> str:
        """The text in brackets in its heading: "2 points · 10 min · ●●", and " · differentiable" if it is."""
        line = f"{self.points} {plural('point', self.points)} · {self.minutes} min · {DIFFICULTY[self.difficulty]}"
        return line + " · differentiable" * self.differentiable

    def seen(self, case: Case, value: Plain) -> Plain:
        """Return the property of a case's result that is compared."""
        return self.view(case, value) if self.view else value

    @cached_property
    def public(self) -> tuple[Case, ...]:
        """The public cases: the author's, and those derived from them (see `derived`)."""
        return (*self.cases, *derived_cases(self))

    @cached_property
    def hidden(self) -> tuple[Case, ...]:
        """The hidden cases: the same for everybody, drawn once from a generator that depends on the name alone."""
        if self.hidden_cases is None:
            return ()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # for a teacher's cases from torch.rand
            return tuple(self.hidden_cases(random.Random(f"{self.name}/0")))


def plural(word: str, count: float) -> str:
    """The word, with an s unless there is exactly one: "1 point", "2 points"."""
    return word if count == 1 else f"{word}s"


def value_exercise(name: str, *, reference: Callable[[], Any], **rest: Any) -> Exercise:
    """Make an exercise whose answer is a number (or a word): `check(training_days=...)`."""
    return Exercise(name, reference=reference, cases=[Case("the value")], value=True, **rest)
