"""Known mistakes that are written as edits of a right answer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.chapters.optimization.exercises import AdamW
from lmcourse.check_tests.answers import AnswerCell
from lmcourse.check_tests.prove import prove
from lmcourse.course.chapters import Chapter
from lmcourse.exercises import Exercise, Report, case, check_exercise, edge
from lmcourse.exercises.edits import EditError, edit_between, edited
from lmcourse.exercises.slips import place_of

ROOM = 2


def mean_square(x: list[float]) -> float:
    squares = [value * value for value in x]
    return sum(squares) / len(x)


SLIPS = {
    "value * value → value": "You never square.",
    "value * value → value * ROOM": "You double.",
    "sum(squares) → math.fsum(squares[1:])": "You drop the first one.",
    " / len(x) → ": "You never divide.",
    "/ len(x) → / (len(x) + 1)": "You divide by one too many.",
}
CASES = [case("three", [1.0, 2.0, 5.0]), case("two", [3.0, -4.0]), edge(case("one", [6.0]))]


def exercise(slips: dict[str, str] | None = None, **changes: Any) -> Exercise:
    settings = {"points": 2, "minutes": 1, "difficulty": 1, "hints": ["Square."], "cases": CASES} | changes
    made = Exercise("mean_square", reference=lambda x: sum(value**2 for value in x) / len(x), **settings)
    made.variant(mean_square)
    made.slips(mean_square, SLIPS if slips is None else slips)
    return made


def report(answer: Any, **changes: Any) -> Report:
    return check_exercise(exercise(**changes), answer)


def test_edits_refer_to_the_original_text() -> None:
    assert edited("a = b + c", "a → b ;; b + → c + ") == edited("a = b + c", "b + → c +  ;; a → b") == "b = c +  c"


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ("d → e", "'d' does not occur"),
        ("a → e", "'a' occurs 2 times"),
        ("b → b", "it changes nothing"),
        ("b -> c", 'write it as "old → new"'),
        (" → c", 'write it as "old → new"'),
        ("+ b → c ;; b + → d", "two of its edits change the same text"),
    ],
)
def test_an_edit_that_does_not_fit_says_why(edits: str, reason: str) -> None:
    with pytest.raises(EditError, match=re.escape(reason)):
        edited("a + b + a", edits)


@pytest.mark.parametrize(
    ("text", "changed", "edit"),
    [
        ("a = 1\nreturn a", "a = 2\nreturn a", "a = 1 → a = 2"),
        ("if a:\n    return 1\nreturn 1", "if a:\n    pass\nreturn 1", "if a:\n    return 1 → if a:\n    pass"),
        ("x()\nx()\ny()", "x()\ny()", "x()\ny() → y()"),
        ("for a in b:\n    a()", "for a in b:\n    a()\n    break", "a() → a()\n    break"),
    ],
)
def test_an_edit_between_two_texts_makes_one_into_the_other(text: str, changed: str, edit: str) -> None:
    assert edited(text, edit_between(text, changed)) == changed
    assert edited(text, edit) == changed


def test_a_slip_is_named_by_its_sentence_and_may_use_names_of_its_module() -> None:
    assert report(lambda x: sum(x) / len(x)).mistake == "You never square."
    assert report(lambda x: sum(2 * value for value in x) / len(x)).mistake == "You double."
    assert report(lambda x: sum(value * value for value in x[1:]) / len(x)).mistake == "You drop the first one."


def test_one_sentence_may_belong_to_several_slips() -> None:
    [one, other] = exercise({"value * value → value || / len(x) → ": "One of two."}).misconceptions
    assert (one.edits, other.edits) == ("value * value → value", "/ len(x) → ")
    assert one.sentence == other.sentence == "One of two."
    assert "test_slips.py:" in place_of("mean_square", mean_square, other.edits)


def test_slips_are_made_when_the_first_check_fails() -> None:
    broken = exercise({"len(y) → 1": "There is no y."})
    assert check_exercise(broken, mean_square).passed
    with pytest.raises(CourseError, match=r"test_slips.py:\d+: `mean_square`: len\(y\) → 1: 'len\(y\)' does not occur"):
        check_exercise(broken, lambda x: 0.0)


MISTAKES = {
    "values → x": "“values” does not occur.",
    "x → y": "“x” is in several places.",
    "sum(squares) → sum(squares": "This is no Python.",
    "squares = [ → squares = [] if [ ;; value * value → value": "Nor is this.",
}


def test_all_mistakes_of_an_author_are_printed_together() -> None:
    right, again = (
        {"sum(squares) → math.fsum(squares)": "It is right."},
        {"sum(squares) / → sum(x) /": "Like another one.", "len(x) → length(x)": "A name that nothing defines."},
    )
    for slips, said in (
        (MISTAKES, ["does not occur", "occurs 3 times", "SyntaxError", "SyntaxError"]),
        (SLIPS | right | again, ["right in every case", "add a public case", "NameError"]),
    ):
        cell = AnswerCell(exercise(slips), "def mean_square(x): ...", "def mean_square(x): ...", {})
        with pytest.raises(CourseError) as raised:
            prove({Chapter("99-toy", "Toy", "0"): [cell]}, quick=True)
        lines = str(raised.value).splitlines()
        assert len(lines) == len(said)
        for line, reason in zip(lines, said, strict=True):
            assert re.match(r".*test_slips\.py:\d+: `mean_square`: .+ → .+: ", line)
            assert reason in line
    assert lines[0].split(":")[1] != lines[1].split(":")[1] or "right" in lines[0]


def squares_missing_and_one_too_many(x: list[float]) -> float:
    return sum(x) / (len(x) + 1)


def test_a_slip_of_a_shared_table_is_placed_in_the_tables_file() -> None:
    places = [place_of("AdamW", slip.base, slip.edits) for slip in AdamW.misconceptions if slip.base]
    assert {*re.findall(r"(\w+)\.py:\d+: `AdamW`: ", "\n".join(places))} == {"scripts", "adaptive"}
    assert all(re.search(r"\.py:\d+: ", place) for place in places)


def test_two_slips_at_once_are_named_in_the_order_of_the_code() -> None:
    found = report(squares_missing_and_one_too_many)
    assert found.mistakes == ["You never square.", "You divide by one too many."]
    assert found.sentences == ["Your results fit two known mistakes at once.", *found.mistakes]
    assert "→ You never square.\n→ You divide by one too many.\n" in str(found)


def test_two_slips_at_once_need_two_different_wrong_results() -> None:
    """One number is no evidence: many pairs may give it. This fails if `enough_for_two` asks for less."""
    one, two = (case(name, [1.0, 2.0, 5.0]) for name in ("three", "three again"))
    assert report(squares_missing_and_one_too_many, cases=[one, two, CASES[2]]).mistake == ""
    assert report(squares_missing_and_one_too_many, cases=[one, CASES[1], CASES[2]]).mistakes != []


def test_two_slips_are_not_named_if_something_else_fits() -> None:
    other = {"squares = → x = x + [0.0]\n    squares =": "You add a zero."}
    assert report(squares_missing_and_one_too_many, slips=SLIPS | other).mistake == ""
    both = {"value * value → value ;; / len(x) → / (len(x) + 1)": "You do both."}
    assert report(squares_missing_and_one_too_many, slips=SLIPS | both).mistake == "You do both."


def test_two_slips_that_fit_one_case_each_by_chance_are_not_named() -> None:
    """Each case fails by another mistake, and no case shows both: this answer is odd, not wrong twice."""
    slips = {
        "sum(squares) → sum(squares[:2])": "You stop at two.",
        "/ len(x) → / max(len(x), 3)": "You divide by 3 at least.",
    }
    odd = {3: 5 / 3, 2: 25 / 3}
    assert report(lambda x: odd.get(len(x), 12.0), slips=slips).mistake == ""


def test_a_guard_is_no_second_slip() -> None:
    """One slip divides by 0 in a case; beside the other one it does not, and neither does an answer with a guard."""
    n_minus_2 = "You divide by n − 2."
    slips = {
        "/ len(x) → / (len(x) - 2)": n_minus_2,
        "squares = → x = x if len(x) != 2 else x + [0.0]\n    squares =": "You add a zero to two.",
    }
    assert report(lambda x: sum(value**2 for value in x) / (len(x) - 2 or 1), slips=slips).mistake == n_minus_2


def test_another_value_in_an_edge_case_contradicts_two_slips() -> None:
    def answer(x: list[float], other: Any) -> Any:
        return squares_missing_and_one_too_many(x) if len(x) > 1 else other()

    assert report(lambda x: answer(x, lambda: 99.0)).mistake == ""
    assert report(lambda x: answer(x, lambda: x[1])).mistakes == ["You never square.", "You divide by one too many."]


def test_a_sentence_that_praises_a_part_is_in_no_pair() -> None:
    slips = {"value * value → value": "The mean is right, but you never square."} | {
        "/ len(x) → / (len(x) + 1)": "You add 1."
    }
    assert exercise(slips).pairs == []


def test_a_slip_that_never_ends_is_refused() -> None:
    slips = {"squares = [ → while x:\n        pass\n    squares = [": "Your loop never ends."}
    endless = exercise(slips, seconds=0.1)
    cell = AnswerCell(endless, "def mean_square(x): ...", "def mean_square(x): ...", {})
    with pytest.raises(CourseError, match="it does not come to an end"):
        prove({Chapter("99-toy", "Toy", "0"): [cell]}, quick=True)
