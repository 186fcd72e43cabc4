"""The definition of an exercise: reference, test cases, hints, forbidden names, misconceptions.

The notebook, the checks, the hints, the hidden tests, the grade, the answer checks and the progress table all use the
same `Exercise`.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from lmcourse.course.chapters import TERM
from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.derived import derived_cases
from lmcourse.exercises.edits import ALSO, EITHER, EditError, overlap, shown, spans
from lmcourse.exercises.forbidden_names import ANSWER_LIBRARIES
from lmcourse.exercises.open_task import OpenTask
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.slips import place_of, slipped, source_of
from lmcourse.exercises.values import Plain

Answer = Callable[..., Any]
HiddenCases = Callable[[random.Random], Sequence[Case]]


PRAISE = re.compile(r"\b(is|are) right\b")
"""Matches a sentence that says that a part of an answer is right."""

DIFFICULTY = {1: "●", 2: "●●", 3: "●●●"}


@dataclass(frozen=True, eq=False)
class Misconception:
    """A common wrong answer that can be run; `sentence` is the diagnosis for a learner whose results match.

    Attributes:
        made: returns the answer; it is called when the answer runs for the first time.
        base: for a slip, the right answer that its edits change.
        edits: for a slip, its edits.
        parts: for two slips at once, both of them; `sentence` has a line for each.
    """

    name: str
    sentence: str
    made: Callable[[], Answer]
    base: Answer | None = None
    edits: str = ""
    parts: tuple[Misconception, ...] = ()

    @cached_property
    def answer(self) -> Answer:
        """The wrong answer; EditError is raised if a slip's edits do not fit."""
        return self.made()


@dataclass(frozen=True)
class Variant:
    """A right answer in a different style than the printed solution; for a value, the expression to type."""

    name: str
    answer: Answer | str


@dataclass(frozen=True)
class Idea:
    """An attempt at an open task, and the points that it earns; `edits` change the text of `written`."""

    name: str
    written: Answer
    points: float
    edits: str = ""


@dataclass(eq=False)
class Exercise:
    """An exercise: its reference answer, test cases, hints, known misconceptions and right variants.

    Args:
        name: the name of the learner's function, class or variable; also the nbgrader id of its cell.
        difficulty: 1, 2 or 3.
        reference: the right answer, independent of the solution printed in the notebook. For a numeric answer, a
            function without arguments that computes it.
        cases: the public cases: few, named, small enough to print.
        hidden_cases: the cases that grading adds (other shapes, dtypes, edges, bad input): a list, or a function from a
            random generator to a list. Cases with the same name form a group. Learners see them only in grading, but
            they are not secret.
        forbid: dotted names that the answer must not use (see `forbidden_names`).
        may_use_package: whether the answer may use code of earlier notebooks from `lmcourse`. Otherwise the package is
            forbidden; its exercises and chapters, and libraries of whole models, are always forbidden.
        tolerance: the tolerance for numbers; by default as small as their dtype allows.
        value: whether the answer is a number, not code. A report then never shows the expected number.
        uses: the earlier exercises of its notebook whose functions an answer should call. If the learner's version of
            one is wrong, this answer is judged again with the printed solution in its place.
        view: for exercises with many right results, a function that returns the property to compare with the reference,
            such as a property of a design. It runs in the judge's process, never in the learner's, and must accept any
            plain data that an answer may return.
        right: for a `view` that also depends on the learner's folder or notebook, the property of a right answer for
            each name of a case. The reference, which no learner's notebook holds, is then not viewed.
        preview: for exercises whose grade measures what no public case shows, a function from a result that passes all
            public cases to the points that the grade would give on the data that the notebook has, and a sentence about
            them.
        remark: for exercises with a `view`, a sentence about a result in a hidden case, or "". A graded report shows
            it, also if all passes.
        new: whether the result must be new, that is, must not be an input or share memory with one.
        differentiable: whether autograd must reach the float inputs from the result, as in a model or a loss.
        file: a correct example of the file that an answer reads from the working folder. Learners create a file with
            this name, and hand it in inside the notebook (see `handed_in`).
        given_methods: for a class, the methods that its notebook gives.
        contiguous: the reason if inputs must not have gaps in memory; otherwise empty.
        task: for an open task, how it is measured. Its cases hold the inputs of the measurement, the reference is not
            called, and a slip's sentence is what the inspection says.
    """

    name: str
    points: int
    minutes: int
    difficulty: int
    reference: Answer
    cases: Sequence[Case]
    hidden_cases: HiddenCases | Sequence[Case] | None = None
    hints: Sequence[str] = ()
    forbid: Sequence[str] = ()
    may_use_package: bool = False
    tolerance: Tolerance | None = None
    seconds: float = 10.0
    value: bool = False
    uses: Sequence[str] = ()
    view: Callable[[Case, Plain], Plain] | None = None
    right: Mapping[str, Plain] = field(default_factory=dict)
    preview: Callable[[Plain], tuple[float, str]] | None = None
    remark: Callable[[Case, Plain], str] | None = None
    new: bool = False
    differentiable: bool = False
    file: Path | None = None
    given_methods: Sequence[str] = ()
    contiguous: str = ""
    task: OpenTask | None = None
    misconceptions: list[Misconception] = field(default_factory=list, init=False)
    variants: list[Variant] = field(default_factory=list, init=False)
    ideas: list[Idea] = field(default_factory=list, init=False)
    equivalent_mutants: dict[str, str] = field(default_factory=dict, init=False)
    _hidden: dict[str, tuple[Case, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.points < 1 or self.difficulty not in DIFFICULTY or not self.cases:
            raise ValueError(f"{self.name}: an exercise needs points, a difficulty of 1 to 3, and cases")
        if self.value and self.hidden_cases:
            raise ValueError(f"{self.name}: an exercise that asks for a value needs one case, and no hidden cases")
        if self.value and any(case.script is not None for case in self.cases):
            raise ValueError(f"{self.name}: no script can use an answer that is a value")
        if self.task and sum(band.points for band in self.task.bands) != self.points:
            raise ValueError(f"{self.name}: the points of its bands do not add up to {self.points}")

    def misconception(self, sentence: str) -> Callable[[Answer], Answer]:
        """Decorate a wrong answer; `sentence` is shown to a learner whose results match it."""

        def register(answer: Answer) -> Answer:
            name = answer.__name__.strip("_").replace("_", " ")
            self.misconceptions.append(Misconception(name, sentence, lambda: answer))
            return answer

        return register

    def slips(self, base: Answer, sentences: Mapping[str, str]) -> None:
        """Add common wrong answers as edits of a variant, each with its sentence: `{"dim=-1 → dim=-2": "…"}`.

        An old text must occur exactly once in the variant. Several edits of one slip are separated by " ;; ", several
        slips with the same sentence by " || ".
        """
        if not callable(base):
            raise ValueError(f"{self.name}: slips are edits of a function or class, not of {base!r}")
        slips = [(edits, sentence) for either, sentence in sentences.items() for edits in either.split(EITHER)]
        self.misconceptions += [self._slip(base, edits, sentence) for edits, sentence in slips]

    def wrong_value(self, value: Any, sentence: str) -> None:
        """Add a common wrong value to an exercise that asks for a value."""
        self.misconceptions.append(Misconception(str(value), sentence, lambda: lambda: value))

    def variant(self, answer: Answer) -> Answer:
        """Decorate a right answer in another style, which must earn all points.

        Its source text is submitted as if a learner had typed it, together with the imports of its module that it uses.
        So it must not call other code of its module, and it must follow the exercise's rules.
        """
        self.variants.append(Variant(answer.__name__.strip("_").replace("_", " "), answer))
        return answer

    def idea(self, points: float) -> Callable[[Answer], Answer]:
        """Decorate an attempt at an open task, which must earn these points. With all points it is also a variant."""

        def register(answer: Answer) -> Answer:
            self.ideas.append(Idea(answer.__name__.strip("_").replace("_", " "), answer, points))
            return self.variant(answer) if points == self.points else answer

        return register

    def edited_ideas(self, base: Answer, ideas: Mapping[str, tuple[float, str]]) -> None:
        """Add attempts as edits of another one: `{"by chance": (3, "nearest(x) → chance(x)")}`, points first."""
        self.ideas += [Idea(name, base, points, edits) for name, (points, edits) in ideas.items()]

    def right_value(self, *expressions: str) -> None:
        """Add other ways to write the right value of an exercise that asks for a value, such as "np.float64(21.5)"."""
        self.variants += [Variant(expression, expression) for expression in expressions]

    def equivalent_mutant(self, change: str, reason: str) -> None:
        """Declare that a change of the printed solution is right, written as `lmcourse test-checks` prints it."""
        self.equivalent_mutants[change] = reason

    @property
    def rules(self) -> tuple[str, ...]:
        """The dotted names that its answer may not use."""
        if self.value:
            return ()
        package = ("lmcourse.exercises", "lmcourse.chapters") if self.may_use_package else ("lmcourse",)
        return tuple(dict.fromkeys((*self.forbid, *package, *ANSWER_LIBRARIES)))

    @property
    def course_answer(self) -> Any:
        """A right answer that can replace a learner's: the variant of the slips, else the first one; or the value.

        A variant has the signature of the learner's answer, which the reference need not have. For an open task it is
        the attempt with the fewest points, because a later cell must not show a way to the finish line.
        """
        if self.task:
            least = min(self.ideas, key=lambda idea: idea.points)
            return slipped(self.name, least.written, least.edits) if least.edits else least.written
        bases = [wrong.base for wrong in self.misconceptions if wrong.base]
        right = [*bases, *(variant.answer for variant in self.variants), self.reference]
        return self.reference() if self.value else right[0]

    @property
    def call(self) -> str:
        """Its function with the parameters: "rope(x, theta=10000.0)"; "" for a class, or if they are unknown."""
        if not self.variants or isinstance(self.course_answer, type):
            return ""
        parameters = inspect.signature(self.course_answer).parameters.values()
        names = [str(one.replace(annotation=one.empty)) for one in parameters]
        return f"{self.name}({', '.join(names)})" if "*args" not in names else ""

    @property
    def summary(self) -> str:
        """The text in brackets in its heading: "2 points · 10 min · ●●", and " · differentiable" if that applies."""
        line = f"{self.points} {plural('point', self.points)} · {self.minutes} min · {DIFFICULTY[self.difficulty]}"
        return line + " · differentiable" * self.differentiable

    @cached_property
    def pairs(self) -> list[Misconception]:
        """All pairs of slips of one base that change different places, in the order of the places.

        A sentence such as "The peak is right, but …" may be false beside another mistake, and so is in no pair.
        """
        found = []
        for base in dict.fromkeys(wrong.base for wrong in self.misconceptions if wrong.base):
            slips = [wrong for wrong in self.misconceptions if wrong.base is base and not PRAISE.search(wrong.sentence)]
            places = {slip: spans(source_of(base), slip.edits) for slip in slips}
            for one, other in combinations(sorted(slips, key=lambda slip: places[slip][0]), 2):
                if one.sentence != other.sentence and not overlap([*places[one], *places[other]]):
                    both = f"{one.sentence}\n{other.sentence}"
                    found.append(self._slip(base, one.edits + ALSO + other.edits, both, (one, other)))
        return found

    def _slip(self, base: Answer, edits: str, sentence: str, parts: tuple[Misconception, ...] = ()) -> Misconception:
        return Misconception(shown(edits), sentence, partial(slipped, self.name, base, edits), base, edits, parts)

    def unfit_slips(self) -> list[str]:
        """Return a line for each slip that cannot be made, or whose base is not proven."""
        bases = [*(variant.answer for variant in self.variants), *(idea.written for idea in self.ideas)]
        found = []
        for wrong in self.misconceptions:
            if wrong.base is None:
                continue
            try:
                wrong.answer  # noqa: B018 - made for the first time
                if wrong.base not in bases:
                    place = place_of(self.name, wrong.base, wrong.edits)
                    raise EditError(f"{place}: its base is no variant: put @{self.name}.variant above it")
            except EditError as error:
                found.append(str(error))
        return found

    def recorded(self) -> Mapping[tuple[Answer | Misconception, Case], Outcome]:
        """Return outcomes of the reference and of known mistakes that need not run; a released exercise has all."""
        return {}

    def wanted(self, case: Case, value: Plain) -> Plain:
        """Return the property that a result must have, where the reference returns `value`."""
        return self.right[case.name] if case.name in self.right else self.compared(case, value)

    def compared(self, case: Case, value: Plain) -> Plain:
        """Return the property of a result that is compared."""
        return self.view(case, value) if self.view else value

    @cached_property
    def public(self) -> tuple[Case, ...]:
        """The public cases: the author's cases, and cases derived from them (see `derived`)."""
        return tuple(map(self._measured, self.cases)) if self.task else (*self.cases, *self._derived())

    def _derived(self) -> list[Case]:
        scattered, gradients = not self.contiguous, self.differentiable
        return derived_cases(self.name, self.reference, self.cases, scattered=scattered, gradients=gradients)

    @property
    def hidden(self) -> tuple[Case, ...]:
        """The hidden cases of the current term (see `TERM`), the same for everyone."""
        term = TERM.get()
        if term not in self._hidden:
            self._hidden[term] = tuple(map(self._measured, self._drawn(term)))
        return self._hidden[term]

    def _drawn(self, term: str) -> Sequence[Case]:
        if not callable(self.hidden_cases):
            return self.hidden_cases or ()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # a teacher's cases may use torch.rand
            return self.hidden_cases(random.Random(f"{self.name}/{term}"))

    def _measured(self, case: Case) -> Case:
        return replace(case, by=self.task.runners) if self.task else case


def plural(word: str, count: float) -> str:
    """Return a number with a noun, with an s unless the number is 1: "1 point", "2 points"."""
    return word if count == 1 else f"{word}s"


def value_exercise(name: str, *, reference: Callable[[], Any], **rest: Any) -> Exercise:
    """Make an exercise whose answer is a number (or a word): `check(training_days=...)`."""
    return Exercise(name, reference=reference, cases=[Case("the value")], value=True, **rest)
