"""Every detector of a general mistake returns its sentence if and only if the sentence is true."""

from __future__ import annotations

import io
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from lmcourse.exercises import Exercise, case, check_exercise, script, value_exercise
from lmcourse.exercises.diagnosis import simple_ratio
from lmcourse.exercises.evidence import Evidence, exceptions, features, kinds, positions, relations
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.trial import Trial
from tests.exercises.toy import doubling

ROWS = torch.tensor([[1.5, 2.25, 4.0], [5.0, 7.5, 9.25], [10.0, 11.0, 13.5]], dtype=torch.float64)
CUBE = torch.arange(2.0, 26.0).reshape(2, 3, 4).sqrt()
NAN, INF = math.nan, math.inf


def trial(expected: Any, received: Any, *args: Any, **kwargs: Any) -> Trial:
    """Return a trial with these inputs and results; a `Failure` as a result stands for an exception."""
    outcomes = [Outcome(failure=x) if isinstance(x, Failure) else Outcome(x) for x in (received, expected)]
    return Trial(doubling(), case("a case", *args, **kwargs), False, *outcomes)


def misusing(*changed: str) -> Trial:
    """Return a trial in which these inputs were changed."""
    return Trial(doubling(), case("a case", 1.0), False, Outcome(2.0, changed=changed), Outcome(2.0))


def not_new(shared: str = "input `x`") -> Trial:
    """Return a trial whose result is an input although it must be new."""
    return Trial(doubling(new=True), case("a case", 1.0), False, Outcome(2.0, shared=(shared,)), Outcome(2.0))


def evidence(*failing: Trial, passing: tuple[Trial, ...] = ()) -> Evidence:
    return Evidence(doubling(), failing, passing)


def numbers(*pairs: tuple[Any, Any]) -> Evidence:
    return evidence(*(trial(*pair) for pair in pairs))


def changed(x: Tensor, *index: Any, to: float = 77.0) -> Tensor:
    """Return a copy with changed entries at an index."""
    x = x.clone()
    x[index] = to
    return x


def raised(kind: str, message: str = "", line: str = "y = f(x)") -> Failure:
    return Failure((kind,), message, line, 2)


def fails(kind: str, message: str = "", line: str = "y = f(x)") -> Evidence:
    return numbers((1.0, raised(kind, message, line)))


WEIGHTS = ROWS.softmax(-1)
Detector = Callable[[Evidence], str]

NUMBERS: list[tuple[Detector, Evidence, str]] = [
    (relations.only_sign, numbers((ROWS, -ROWS)), "right except for its sign"),
    (relations.only_sign, numbers((ROWS, changed(-ROWS, 0, 0))), ""),
    (relations.same_function_of_expected, numbers((2.5, 2), (7.75, 7)), "the expected one without its fraction"),
    (relations.same_function_of_expected, numbers((2.5, 2), (7.75, 8)), "rounded to a whole number"),
    (relations.same_function_of_expected, numbers((ROWS, ROWS.sqrt())), "is the square root of the expected one."),
    (relations.same_function_of_expected, numbers((ROWS, ROWS * (1 + 1e-10))), ""),
    (relations.same_function_of_expected, numbers((ROWS, 1 / ROWS)), "is 1 divided by the expected one."),
    (relations.same_function_of_expected, numbers((ROWS, ROWS.log())), "the natural logarithm of the expected"),
    (relations.same_function_of_expected, numbers((WEIGHTS, 1 - WEIGHTS)), "is 1 minus the expected one."),
    (relations.same_function_of_expected, numbers((4.0, 2.0)), ""),  # a single number proves no function
    (relations.same_function_of_expected, numbers((0.0, 1.0), (1.0, 0.0)), ""),  # nor do 0 and 1
    (relations.same_function_of_expected, numbers((0.6, 1.0), (0.7, 1.0)), ""),  # nor does one result for all
    (relations.same_function_of_expected, numbers((ROWS, changed(ROWS.sqrt(), 1, 1))), ""),
    (relations.constant_offset, numbers((ROWS, ROWS + 0.5)), "is 0.5 too large"),
    (relations.constant_offset, numbers((torch.arange(5), torch.arange(5) - 1)), "is one too small"),
    (relations.constant_offset, numbers((3, 4), (9, 8)), ""),
    (relations.constant_offset, numbers((3.0, 4.0)), ""),
    (relations.constant_offset, numbers((ROWS, 2 * ROWS)), ""),
    (relations.truth_reversed, numbers((ROWS > 5, ROWS <= 5)), "Every truth value is reversed"),
    (relations.truth_reversed, numbers((ROWS > 5, ROWS > 10)), "Every wrong entry should be True but is False."),
    (relations.truth_reversed, numbers((True, False), (True, False)), "gives False instead of True"),
    (relations.truth_reversed, numbers(*[({"a": 1, "few": True}, {"a": 1, "few": False})] * 2), "'few' is False where"),
    (relations.truth_reversed, numbers((True, False), (False, True), (True, False)), "Every truth value is reversed"),
    # beside cases that pass, a single truth value says nothing: each wrong one is the reverse of the right one
    (relations.truth_reversed, numbers((True, True), (True, False), (False, True), (True, False)), ""),
    (relations.truth_reversed, numbers((ROWS > 5, changed(ROWS > 5, 0, to=1).logical_xor(ROWS > 10))), ""),
    (relations.nearly_right, numbers((ROWS, ROWS * 1.002)), "No number is off by more than 0.2 %."),
    (relations.single_precision, numbers((ROWS, ROWS.float().double() * (1 + 5e-8))), "as small as those of float32"),
    (relations.single_precision, numbers((ROWS, ROWS * (1 + 1e-6))), ""),
    (relations.nearly_right, numbers((ROWS, ROWS * 1.02)), ""),
    (relations.nearly_right, numbers((torch.zeros(2), torch.tensor([1e-3, 1e-3]))), ""),
    (positions.wrong_order, numbers((ROWS, ROWS.flip(-1))), "The numbers are right, but in the wrong order."),
    (positions.wrong_order, numbers((ROWS, changed(ROWS, 0, 0))), ""),
    # one row is its own reverse, so this is only rounding
    (positions.wrong_order, numbers((ROWS[:1], ROWS[:1] * (1 + 1e-7))), ""),
    (relations.one_sided, numbers((ROWS, ROWS**2)), "All 9 numbers that differ are too large (1.5 to"),
    (relations.one_sided, numbers((ROWS, changed(ROWS**2, 0, to=0))), ""),
    (relations.one_sided, numbers((torch.ones(3), torch.full((3,), 4.0))), "too large (4 times the expected ones)."),
    # A factor below 1 beside "too large" would read as a contradiction.
    (relations.one_sided, numbers((-ROWS, -ROWS / 2)), "All 9 numbers that differ are too large."),
    (relations.one_sided, numbers((ROWS[0], ROWS[0] * torch.tensor([0.9999, 0.5, 0.7]))), "(0.5 to 0.9999 times"),
    (relations.constant_factor, numbers((ROWS, 8 * ROWS)), "is 8 times the expected one."),
    (relations.constant_factor, numbers((1.0, 1.024**3)), "times the expected one (2³⁰/10⁹)."),
    (relations.constant_factor, numbers((ROWS, ROWS * math.log(2))), "is 0.6931 times the expected one (ln 2)."),
    (relations.constant_factor, numbers((ROWS, ROWS / math.pi)), "(1 over π)."),
    (relations.constant_factor, numbers((ROWS, -math.pi * ROWS)), "is -3.142 times the expected one."),
    (relations.constant_factor, numbers((1.0, 8.0)), ""),  # any two numbers have some ratio
    (relations.constant_factor, numbers((ROWS, ROWS.float())), ""),  # must not report "1 times the expected one"
    (relations.constant_factor, numbers((ROWS, changed(8 * ROWS, 0, 0))), ""),
    (relations.one_factor_per_case, numbers((ROWS, 4 * ROWS), (ROWS, 5 * ROWS)), "4 in “a case”, 5 in “a case”."),
    (relations.one_factor_per_case, numbers((ROWS, 4 * ROWS), (ROWS, 4 * ROWS)), ""),
    (relations.one_factor_per_case, numbers((1.0, 4.0), (1.0, 5.0)), ""),  # any two numbers have some ratio
    (positions.only_one_right, numbers((ROWS, changed(ROWS, [1, 2]))), "Where it fails, only the first row is right."),
    (positions.only_one_right, numbers((ROWS, changed(ROWS, ..., [0, 1]))), "only the last column is right."),
    (positions.only_one_right, numbers((ROWS, changed(ROWS, 1))), ""),
    # another part, the cube, is right, too
    (positions.only_one_right, numbers(([ROWS, CUBE], [changed(ROWS, [1, 2]), CUBE])), ""),
    (positions.only_one_right, numbers((ROWS[:2], changed(ROWS[:2], 1))), ""),  # only the other one of two is wrong
    (positions.not_finite, numbers((ROWS, changed(ROWS, 0, to=NAN))), "Every wrong number in your result is NaN"),
    (positions.not_finite, numbers((ROWS, changed(ROWS, 0, to=INF))), "Every wrong number in your result is +inf"),
    (positions.not_finite, numbers((ROWS, changed(changed(ROWS, 0, to=NAN), 1))), ""),
    (positions.not_finite, numbers((changed(ROWS, 0, to=INF), changed(ROWS, 0, to=NAN))), ""),
]

OTHERS: list[tuple[Detector, Evidence, str]] = [
    (kinds.only_dtype, numbers((ROWS.half(), ROWS)), "it should be float16, not float64"),
    (kinds.only_dtype, numbers((ROWS.half(), ROWS), (ROWS.bfloat16(), ROWS)), "it should be bfloat16 or float16, not"),
    (kinds.only_dtype, numbers((ROWS.half(), ROWS), (ROWS.bfloat16(), ROWS.half())), ""),
    (kinds.only_dtype, numbers((ROWS.half(), ROWS + 1)), ""),
    (kinds.only_dtype, numbers((ROWS, ROWS + 1)), ""),
    (kinds.other_kind, numbers((ROWS, 3), (ROWS[0], 4)), "It gives a number where a tensor is expected."),
    (kinds.other_kind, numbers(([1, ROWS], [1, "x"])), "It gives a str where a tensor is expected."),
    (kinds.other_kind, numbers((ROWS, 3), (ROWS, "x")), ""),
    (kinds.other_kind, numbers((ROWS, ROWS[0])), ""),
    (kinds.wrong_shape, numbers((ROWS[:1], ROWS[0])), "an axis of size 1 is missing or superfluous"),
    (kinds.wrong_shape, numbers((ROWS, ROWS.flatten())), "but the shape is wrong"),
    (kinds.wrong_shape, numbers((ROWS[0, 0], ROWS[0])), "Your result has axes: reduce it to one number"),
    (kinds.wrong_shape, numbers((CUBE, CUBE[0])), "only the first entry of the expected"),
    (kinds.wrong_shape, numbers(([1.0, 2.0, 3.5], [1.0, 2.0])), "entries are missing at the end."),
    (kinds.wrong_shape, numbers((ROWS[1:], ROWS)), "It ends correctly, but has superfluous rows at the start."),
    (kinds.wrong_shape, numbers((ROWS, ROWS + 1)), ""),
    (kinds.missing_or_extra, numbers((["a", "b"], ["b"])), "something is missing"),
    (kinds.missing_or_extra, numbers(({"a": 1}, {"a": 1, "b": 2})), "but also more."),
    (kinds.missing_or_extra, numbers((["a", "b"], ["c"])), ""),
    (kinds.other_keys, numbers(({"a": 1, "b": 2}, {"A": 1, "b": 2})), "Your dict lacks 'a', and has 'A' instead."),
    (kinds.other_keys, numbers(({"a": 1, "b": 2}, {"a": 1}), ({"a": 1, "b": 2}, {"b": 2})), ""),
    (kinds.other_kind, numbers(({"a": 1}, [1]), ({"a": 2}, [1])), "It gives a list or tuple where a dict is expected."),
    (exceptions.raises, fails("ZeroDivisionError"), "divides by something that is 0"),
    (exceptions.raises, fails("IndexError", "tensors used as indices must be long"), "holds floats"),
    (exceptions.raises, fails("OverflowError", "math range error"), "too large for a float"),
    (
        exceptions.raises,
        fails("RuntimeError", "The size of tensor a (2) must match the size of tensor b (3)"),
        "Two shapes in that",
    ),
    (exceptions.raises, fails("ValueError", "no", line="raise ValueError"), "`raise` or an `assert`"),
    (
        exceptions.raises,
        fails("ValueError", "max() arg is an empty sequence", line="if max(x) > 2: raise ValueError"),
        "is empty.",
    ),
    (
        exceptions.raises,
        fails("RuntimeError", "self and mat2 must have the same dtype, but got Float and Double"),
        "Float32 meets float64",
    ),
    (exceptions.raises, fails("TypeError", "cannot unpack non-iterable NoneType object"), "is None."),
    (exceptions.raises, fails("StrangeError"), ""),
    (exceptions.raises, numbers((1.0, raised("KeyError")), (1.0, raised("ZeroDivisionError"))), ""),
    (exceptions.not_refused, numbers((raised("ValueError"), 3.0)), "In “a case” `ValueError` must be raised, but your"),
    (
        exceptions.not_refused,
        numbers((raised("ValueError"), raised("TypeError", "no", line="raise TypeError"))),
        "wrong type: `raise`",
    ),
    (exceptions.not_refused, numbers((raised("ValueError"), raised("TypeError"))), "a line of your answer fails"),
    (exceptions.not_refused, numbers((raised("ValueError"), raised("TypeError")), (raised("ValueError"), 4.0)), ""),
    (
        exceptions.not_refused,
        numbers((raised("ValueError"), raised("NotPlainError", "returned an exception, a ValueError"))),
        "returns the exception",
    ),
    (
        features.same_result_for_all,
        evidence(trial(1, 3, 1), trial(2, 3, 2), passing=(trial(3, 3, 3),)),
        "3 in each of the 3 public",
    ),
    (features.same_result_for_all, evidence(trial(1, 3), trial(2, 4), passing=(trial(3, 3),)), ""),
    (features.input_misused, evidence(misusing("input `x`"), misusing("input `x`", "`w`")), "input `x` in place"),
    (features.input_misused, evidence(misusing("input `x`"), misusing("`w`")), "changes an input in place"),
    (features.input_misused, evidence(misusing("input `x`"), not_new()), "or its result shares memory"),
    (features.input_misused, evidence(not_new(), not_new("`w`")), ""),
    (features.one_part_wrong, numbers(({"w": ROWS, "b": ROWS}, {"w": ROWS + 1, "b": ROWS})), "only 'w' is wrong"),
    (features.one_part_wrong, numbers(({"w": ROWS, "b": ROWS}, {"w": ROWS + 1, "b": ROWS + 1})), ""),
]


@pytest.mark.parametrize(("detector", "seen", "told"), [*NUMBERS, *OTHERS], ids=lambda x: getattr(x, "__name__", None))
def test_every_detector_states_only_true_observations(detector: Detector, seen: Evidence, told: str) -> None:
    sentence = detector(seen)
    assert told in sentence
    assert bool(told) == bool(sentence)


def test_every_detector_is_tested_both_ways() -> None:
    from lmcourse.exercises import diagnosis

    asked = {*diagnosis.NUMBERS, *(detector for detectors in diagnosis.OTHERS.values() for detector in detectors)}
    for speaks in (True, False):
        tested = {detector for detector, _, told in [*NUMBERS, *OTHERS] if bool(told) is speaks}
        assert asked - tested == set()


def generator(x: Tensor) -> Any:
    yield x


async def coroutine(x: Tensor) -> Tensor:
    return x


def ask(x: Tensor) -> Tensor:
    with patch("sys.stdin", io.StringIO()):
        return x * float(input())


class double:  # noqa: N801 - a learner's class with the name of the exercise
    def __init__(self, x: Tensor) -> None:
        self.x = x


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (generator, "Your function has a `yield`"),
        (coroutine, "Your function is `async`"),
        (double, "Your answer is a class, and the exercise asks for a function"),
        (lambda x: lambda: 2 * x, "You return a function"),
        (lambda x: int, "You return a class"),
        (lambda x: object(), "It gives an object where a tensor is expected."),
        (lambda x: print(2 * x), "Your function prints, but it returns None"),
        (lambda x: sys.exit(), "The line would end Python"),
        (ask, "The line asks for `input`"),
    ],
)
def test_an_answer_that_returns_no_result_is_explained(answer: Any, told: str) -> None:
    assert check_exercise(doubling(), answer).diagnosis.startswith(told)


def test_an_explanation_of_some_cases_names_them() -> None:
    def answer(x: Tensor) -> Tensor:
        if len(x) == 1:
            raise KeyError("no")
        return 6 * x

    told = check_exercise(doubling(), answer).diagnosis
    assert told == "In “two numbers”: every number that differs is 3 times the expected one."


def test_failing_cases_are_named_if_no_detector_matches() -> None:
    three = case("three numbers", torch.tensor([0.5, -4.0, 7.0]))
    exercise = doubling(
        cases=[*doubling().cases, three], hidden_cases=lambda random: [case("half", three.args[0].half())]
    )

    def answer(x: Tensor) -> Tensor:
        return 2 * x if len(x) < 3 else x**3 + 1

    assert check_exercise(exercise, answer).diagnosis == "Only “three numbers” fails."
    assert check_exercise(exercise, answer, hidden=True).diagnosis == "Of the public cases, only “three numbers” fails."
    assert check_exercise(exercise, lambda x: x**3 + 1).diagnosis == ""
    twins = doubling(hidden_cases=lambda random: [three, three])
    assert check_exercise(twins, answer, hidden=True).diagnosis == "Only cases of “three numbers” fail."


@pytest.mark.parametrize(
    ("expected", "received", "words"),
    [
        (2.0, 8.0, ": your number is 4 times the expected one"),
        (9, 3, ": your number is a third of the expected one"),
        (2.0, 8.1, ""),
        (0.0, 8.0, ""),
        (2.0, "8", ""),
    ],
)
def test_a_simple_ratio_is_told_beside_the_only_failing_case(expected: Any, received: Any, words: str) -> None:
    assert simple_ratio(trial(expected, received)) == words


def test_a_case_without_a_result_is_reported_at_its_place() -> None:
    def deep(x: Tensor) -> Tensor:
        return x if len(x) == 2 else deep(x)

    def none(x: Tensor) -> Tensor | None:
        return 2 * x if len(x) == 2 else None

    def endless(x: Tensor) -> Tensor:
        return endless(x)

    exercise = doubling(reference=lambda x: x)
    assert check_exercise(exercise, deep).diagnosis.startswith("In “a negative one” calls are nested deeper")
    assert check_exercise(exercise, endless).diagnosis.startswith("Calls are nested deeper")
    assert check_exercise(doubling(), none).diagnosis == "In “a negative one” your function returns None."
    assert check_exercise(doubling(), lambda x: None).diagnosis == "Your function returns None."


class Pair:
    def __init__(self, x: float) -> None:
        self.once, self.twice = x, 2 * x

    def halved(self) -> float:
        return self.once / 2


def test_a_script_report_names_the_wrong_line() -> None:
    class Wrong(Pair):
        def __init__(self, x: float) -> None:
            self.once, self.twice = x, x**3 - 1

    def diagnosis(line: str) -> str:
        cases = [script(f"{x}", f"p = Pair(x)\n{line}\np.twice", x=x) for x in (3.0, -5.0)]
        return check_exercise(Exercise("Pair", 1, 1, 1, reference=Pair, cases=cases), Wrong).diagnosis

    assert diagnosis("p.halved()") == "Of the results only `p.twice` is wrong; the other is right."
    assert not diagnosis("p.once")  # the code in the report leaves this line out


@pytest.mark.parametrize(
    ("other", "told"), [("q.twice", "Every number that differs is 3 times the expected one."), ("p.once", "")]
)
def test_a_relation_is_one_of_results_of_one_kind(other: str, told: str) -> None:
    class Wrong(Pair):
        def __init__(self, x: float) -> None:
            self.once, self.twice = 3 * x, 6 * x

    cases = [script(f"{x}", f"p, q = Pair(x), Pair(7 * x)\np.twice\n{other}", x=x) for x in (3.0, -5.0)]
    exercise = Exercise("Pair", 1, 1, 1, reference=Pair, cases=cases)
    assert check_exercise(exercise, Wrong).diagnosis == told


@pytest.mark.parametrize(
    ("given", "told"),
    [({"a": 1.0, "d": 2.0}, "a dict with the keys ['a', 'd']"), ((1.0, 2.0), "a list or tuple"), (3.0, "a float")],
)
def test_a_part_that_is_missing_is_asked_for_by_name(given: Any, told: str) -> None:
    cases = [script(f"{x}", 'both(x)["b"]', x=x) for x in (1.0, 2.0)]
    exercise = Exercise("both", 1, 1, 1, reference=lambda x: {"a": x, "b": x}, cases=cases)
    report = check_exercise(exercise, lambda x: given)
    assert report.cases[0].message == f"LookupError: your result has no part 'b': it is {told}"
    assert report.diagnosis.startswith("The parts of your result have other names")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (-2304.0, "Only the sign is wrong."),
        (2304 * 8, "It is off by a factor of 8."),
        (2304 * 1.024**2, "It is off by the ratio of a power of 1,000"),
        (2.304, "Only a power of ten is wrong"),
        (1152, "It is off by a factor of two."),
        (2300.0, "It is off by less than half a percent."),
        (None, "Nothing here yet: replace None."),
        (3000, ""),
        ("2304", ""),
    ],
)
def test_a_value_report_names_the_slip_but_not_the_answer(given: Any, told: str) -> None:
    with pytest.raises(ValueError, match="no script can use an answer"):
        Exercise("size", 1, 1, 1, reference=lambda: 2304.0, cases=[script("it", "size")], value=True)
    exercise = value_exercise("size", points=1, minutes=1, difficulty=1, reference=lambda: 2304.0)
    sentence = check_exercise(exercise, lambda: given).diagnosis
    assert sentence.startswith(told)
    assert bool(sentence) == bool(told)


FP8, META = torch.ones(2).to(torch.float8_e5m2), torch.ones(2, device="meta")
STRANGE = (10**400, torch.tensor([1 + 2j]), torch.zeros(0, 3), FP8, {"a": [1, {}]}, [[]], math.nan, META)


@pytest.mark.parametrize(
    ("expected", "result"),
    [*itertools.pairwise(STRANGE), *((ROWS, x) for x in STRANGE), (3.0, [[]])],
    ids=str,
)
def test_no_detector_raises_on_strange_results(expected: Any, result: Any) -> None:
    check_exercise(doubling(reference=lambda x: expected, hidden_cases=None), lambda x: result)


def test_an_argument_that_is_never_used_is_named() -> None:
    def constant(x: Tensor) -> Tensor:
        return torch.zeros(2)

    def halved(x: Tensor) -> Tensor:
        return x / 2

    def unwritten(x: Tensor) -> Tensor:
        raise NotImplementedError

    told = [check_exercise(doubling(), answer).diagnosis for answer in (constant, halved, unwritten)]
    assert ["never uses `x`" in sentence for sentence in told] == [True, False, False]
