"""An answer that calls an earlier one is judged with the course's, where the learner's own is missing or wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from lmcourse.exercises import Exercise, Report, case, value_exercise
from lmcourse.grading.examination_result import ExaminationResult
from tests.exercises.toy import doubling
from tests.grading.examining import ForkLauncher, examined

STUB = "def double(x):\n    raise NotImplementedError"
WRONG = "def double(x):\n    return 2 * x + 1"
RIGHT = "def double(x):\n    return 2 * x"
USES = "def quadruple(x):\n    return double(double(x))"
TRIPLES = "def quadruple(x):\n    return double(x) + x"
SENTENCE = "Judged with the course's own `double` in place of yours."


def quadrupling(uses: Sequence[str] = ("double",), seconds: float = 10.0) -> Exercise:
    cases = [case("two", torch.tensor([1.0, 2.0])), case("one", torch.ones(1)), case("none", torch.zeros(0))]
    exercise = Exercise("quadruple", 2, 1, 1, reference=lambda x: 4 * x, cases=cases, uses=uses, seconds=seconds)
    exercise.misconception("You triple.")(lambda x: 3 * x)
    return exercise


def examination(*cells: str, exercises: Sequence[Exercise] = ()) -> ExaminationResult:
    own = {"double": 1, "quadruple": 2, "nine": 3, "again": 4}
    own = {name: number for name, number in own.items() if number <= len(cells)}
    exercises = exercises or [doubling(), quadrupling()]
    return examined(cells, exercises, launcher=ForkLauncher(), answer_cells=own)


def reports(*cells: str, exercises: Sequence[Exercise] = ()) -> list[Report]:
    return list(examination(*cells, exercises=exercises).reports.values())


@pytest.mark.parametrize("first", [STUB, WRONG, "", "1 / 0", "def double(x:", "double = None", "def twice(x): pass"])
def test_a_right_answer_earns_its_points_whatever_the_earlier_one_is(first: str) -> None:
    double, quadruple = reports(first, USES)
    assert (double.points, double.stand_ins) == (0, ())
    assert (quadruple.points, quadruple.stand_ins) == (2, ("double",))
    assert SENTENCE in str(quadruple)
    assert "Judged with" in quadruple._repr_html_()
    assert Report.from_json(quadruple.to_json()) == quadruple


def test_with_a_right_earlier_answer_nothing_is_different() -> None:
    assert [(each.points, each.stand_ins) for each in reports(RIGHT, USES)] == [(2, ()), (2, ())]
    assert [(each.points, each.stand_ins) for each in reports(RIGHT, TRIPLES)][1][1] == ()


def test_a_mistake_of_the_later_one_is_still_caught() -> None:
    _, quadruple = reports(STUB, TRIPLES)
    assert quadruple.points < 2
    assert (quadruple.diagnosis, quadruple.stand_ins) == ("You triple.", ("double",))


def test_who_answers_without_the_earlier_one_gets_no_stand_in() -> None:
    _, alone = reports(STUB, "def quadruple(x):\n    return 3 * x")
    assert (alone.diagnosis, alone.stand_ins) == ("You triple.", ())
    _, stub = reports(STUB, "def quadruple(x):\n    raise NotImplementedError")
    assert (stub.answered, stub.stand_ins) == (False, ())


def test_two_mistakes_that_undo_each_other_keep_their_points() -> None:
    """An answer that is right only beside the learner's own earlier one is not judged worse with another."""
    _, quadruple = reports("def double(x):\n    return 4 * x", "def quadruple(x):\n    return double(x)")
    assert (quadruple.points, quadruple.stand_ins) == (2, ())


THROUGH = {
    "a helper": f"def helper(x):\n    return double(x)\n{USES.replace('double(double', 'helper(helper')}",
    "a default": "def quadruple(x):\n    return (lambda y: double(y))(double(x))",
    "by name": "def quadruple(x):\n    return double(x=double(x=x))",
}


@pytest.mark.parametrize("uses", THROUGH.values(), ids=THROUGH)
def test_it_is_found_through_whatever_the_answer_calls(uses: str) -> None:
    assert reports(STUB, uses)[1].points == 2


def test_a_value_that_a_cell_works_out_with_it() -> None:
    value = value_exercise("quadruple", points=1, minutes=1, difficulty=1, reference=lambda: 12.0, uses=["double"])
    cell = "import torch\nquadruple = double(double(torch.tensor(3.0))).item()"
    double, found = reports(STUB, cell, exercises=[doubling(), value])
    assert (double.points, found.points, found.stand_ins) == (0, 1, ("double",))


def test_exceptions_of_the_course_are_raised() -> None:
    def reference(x: torch.Tensor) -> torch.Tensor:
        if x.isnan().any():
            raise ValueError("not a number")
        return 2 * x

    nan = [case("two", torch.ones(2)), case("nan", torch.full((2,), torch.nan))]
    later = Exercise("quadruple", 2, 1, 1, reference=lambda x: reference(2 * x), cases=nan, uses=["double"])
    exercises = [doubling(reference=reference), later]
    assert reports(STUB, USES, exercises=exercises)[1].points == 2
    counts = "def quadruple(x):\n    try:\n        return double(double(x))\n    except ValueError as error:\n"
    assert reports(STUB, f"{counts}        assert str(error) == 'not a number'\n        raise", exercises=exercises)[
        1
    ].passed


CHAIN = (
    Exercise("nine", 1, 1, 1, reference=lambda x: 4 * x + 1, cases=[case("one", torch.ones(1))], uses=["quadruple"]),
    Exercise("again", 1, 1, 1, reference=lambda x: 4 * x + 2, cases=[case("one", torch.ones(1))], uses=["nine"]),
)


def test_a_chain_needs_only_what_is_wrong_in_it() -> None:
    exercises = [doubling(), quadrupling(), *CHAIN]
    nine, again = "def nine(x):\n    return quadruple(x) + 1", "def again(x):\n    return nine(x) + 1"
    found = reports(STUB, USES, nine, again, exercises=exercises)
    assert [each.points for each in found] == [0, 2, 1, 1]
    assert [each.stand_ins for each in found[1:]] == [("double",)] * 3
    found = reports(STUB, TRIPLES, nine, again, exercises=exercises)
    assert [each.points for each in found[2:]] == [1, 1]
    assert [each.stand_ins for each in found[2:]] == [("double", "quadruple")] * 2


THIEVES = {
    "asks for itself later": "def double(x):\n    return quadruple(x) / 2",
    "keeps what stands under its name": "import __main__\nkept = []\ndef double(x):\n    return kept[0](x)\n",
    "looks for it in the process": "import gc\ndef double(x):\n    return next(o for o in gc.get_objects()"
    " if type(o).__name__ == 'RemoteAnswer')(x)",
}


@pytest.mark.parametrize("double", THIEVES.values(), ids=THIEVES)
def test_an_exercise_does_not_get_its_own_reference(double: str) -> None:
    steals = f"try:\n    kept.append(double)\nexcept NameError:\n    pass\n{USES}"
    found = reports(double, steals)
    assert (found[0].points, found[1].points) == (0, 2)


def test_a_later_exercise_stands_in_for_none() -> None:
    """Who calls a later exercise gets the learner's own; so nothing of it is there before it is judged itself."""
    found = reports("def double(x):\n    return quadruple(x) / 2", "def quadruple(x):\n    raise NotImplementedError")
    assert [(each.points, each.stand_ins) for each in found] == [(0, ()), (0, ())]


@pytest.mark.parametrize("misuse", ["torch.zeros(5_000_000)", "[10**30]"])
def test_what_is_too_large_is_refused(misuse: str) -> None:
    cell = f"import torch\ndef quadruple(x):\n    try:\n        double({misuse})\n    except ValueError as error:\n"
    cell += "        assert 'too large' in str(error)\n        return 4 * x"
    found = reports(STUB, cell)[1]
    assert found.points == 2, found


def test_endless_calls_cost_only_their_own_points() -> None:
    endless = "def quadruple(x):\n    while True:\n        double(x)"
    found = examination(STUB, endless, "nine = 9", exercises=[doubling(), quadrupling(seconds=0.3), _nine()])
    assert [report.points for report in found.reports.values()] == [0, 0, 1]
    assert found.evidence == ()


def _nine() -> Exercise:
    return value_exercise("nine", points=1, minutes=1, difficulty=1, reference=lambda: 9)


@pytest.mark.parametrize(
    "message", ["{'call': 'double'}", "{'call': 'quadruple', 'case': 1}", "{'call': 1, 'case': {}}"]
)
def test_a_forged_call_ends_the_process(message: str) -> None:
    forged = f"def quadruple(x):\n    double._channel.send({message})\n    return x"
    double, quadruple = reports(STUB, forged)
    assert (double.points, quadruple.points) == (0, 0)


def test_what_the_earlier_answer_breaks_is_not_held_against_the_later_one() -> None:
    first = "import torch\ndef double(x):\n    return torch.add(x, x)"
    exercises = [doubling(forbid=["torch.add"]), quadrupling()]
    exercises[1].forbid = ["torch.add"]
    assert [each.points for each in reports(first, USES, exercises=exercises)] == [0, 2]
    own = f"import torch\n{USES} + torch.add(x, 0) - x"
    assert [each.points for each in reports(first, own, exercises=exercises)] == [0, 0]


def test_without_being_meant_to_be_used_it_is_named_only() -> None:
    _, quadruple = reports(STUB, USES, exercises=[doubling(), quadrupling(uses=())])
    assert (quadruple.points, quadruple.answered, quadruple.stand_ins) == (0, True, ())
    assert quadruple.diagnosis == "`quadruple` uses `double`, which is not answered."


HELPERS = {
    "deleted": (
        "def quadruple(x):\n    return times(4, x)",
        "`quadruple` uses `times`, which no cell defines any more.",
    ),
    "renamed": (
        "def quadruple(x):\n    return times_four(x)\ndef times_for(x):\n    return 4 * x",
        "`quadruple` uses `times_four`, which no cell defines any more: is it `times_for` now?",
    ),
    "of a helper": (
        "def quadruple(x):\n    return helper(x)\ndef helper(x):\n    return times(4, x)",
        "`helper`, which `quadruple` needs, uses `times`, which no cell defines any more.",
    ),
    "in a cell that fails": (
        "def quadruple(x):\n    return times * x\nif True:\n    1 / 0\ntimes = 4",
        "`quadruple` uses `times`, but code cell 2, which is to define it, ended with an error.",
    ),
}


@pytest.mark.parametrize(("cell", "sentence"), HELPERS.values(), ids=HELPERS)
def test_a_helper_that_is_gone_is_named(cell: str, sentence: str) -> None:
    _, quadruple = reports(RIGHT, cell)
    assert (quadruple.points, quadruple.diagnosis) == (0, sentence)
