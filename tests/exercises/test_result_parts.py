"""Results of several independent parts: which are right, and known mistakes in one beside unknown ones in another."""

from __future__ import annotations

import statistics

import pytest

from lmcourse.exercises import Exercise, Report, case, check_exercise, edge, script

Result = dict[str, float]

MEAN, VAR, TOP = "You divide by one too many.", "You take the root.", "You take the last number."
CASES = [case("three", [1.0, 2.0, 7.0]), case("two", [9.0, -4.0]), case("five", [1.0, 8.0, 2.0, 6.0, 3.0])]


def summary(x: list[float]) -> Result:
    mean = sum(x) / len(x)
    return {"mean": mean, "var": sum((value - mean) ** 2 for value in x) / len(x), "top": max(x)}


def exercise(**changes: list[object]) -> Exercise:
    made = Exercise("summary", points=3, minutes=1, difficulty=1, reference=summary, **{"cases": CASES} | changes)  # type: ignore[arg-type]
    made.variant(summary)
    made.slips(
        summary,
        {
            '{"mean": mean → {"mean": sum(x) / (len(x) + 1)': MEAN,
            "(value - mean) ** 2 for value in x) / len(x) → (value - mean) ** 2 for value in x) ** 0.5": VAR,
            '"top": max(x) → "top": x[-1]': TOP,
            "mean = sum(x) / len(x) → mean = sum(x)": "You never divide.",
        },
    )
    return made


def report(wrong: dict[str, object], **changes: list[object]) -> Report:
    """Return the report on an answer with some wrong parts, which are functions of the numbers."""

    def answer(x: list[float]) -> Result:
        return summary(x) | {part: formula(x) for part, formula in wrong.items()}  # type: ignore[operator]

    return check_exercise(exercise(**changes), answer)


def too_many(x: list[float]) -> float:
    return sum(x) / (len(x) + 1)


def root(x: list[float]) -> float:
    return (statistics.pvariance(x) * len(x)) ** 0.5


def odd(x: list[float]) -> float:
    return len(x) ** 3 - x[0]


def test_a_report_says_which_parts_are_right_and_wrong() -> None:
    told = report({"var": odd, "top": lambda x: min(x) - 1}).diagnosis
    assert told.endswith("Of the results `mean` is right in every case; `var` and `top` are wrong in every case.")


def test_parts_that_are_wrong_in_some_failing_cases_are_left_out() -> None:
    told = report({"mean": lambda x: odd(x) if len(x) > 2 else sum(x) / 2, "top": odd}, cases=CASES[:2]).diagnosis
    assert told.endswith("Of the results `var` is right in every case; `top` is wrong in every case.")


@pytest.mark.parametrize("unknown", ["var", "top"])
def test_a_mistake_in_one_part_is_named_beside_an_unknown_one(unknown: str) -> None:
    found = report({"mean": too_many, unknown: odd})
    assert (found.mistakes, found.also_wrong) == ([MEAN], f"Of the results `{unknown}` is wrong, too.")


def test_mistakes_in_three_parts_are_named_at_once() -> None:
    found = report({"mean": too_many, "var": root, "top": lambda x: x[-1]})
    assert found.sentences == ["Your results fit three known mistakes at once.", MEAN, VAR, TOP]


def test_cases_that_ask_for_one_part_each_count_as_its_parts() -> None:
    numbers = {"three": [1.0, 2.0, 7.0], "two": [9.0, -4.0]}
    asked = [(name, part) for name in numbers for part in ("mean", "var", "top")]
    cases: list[object] = [script(f"{name}: {part}", f'summary(x)["{part}"]', x=numbers[name]) for name, part in asked]
    found = report({"mean": too_many, "top": odd}, cases=cases)
    assert (found.mistakes, found.also_wrong) == ([MEAN], "Of the results `top` is wrong, too.")
    told = report({"var": odd, "top": lambda x: x[0] ** 3 + 20}, cases=cases).diagnosis
    assert told.endswith("Of the results `mean` is right in every case; `var` and `top` are wrong in every case.")


def test_one_wrong_value_is_not_enough_for_a_mistake_in_a_part() -> None:
    assert report({"mean": too_many, "top": odd}, cases=[CASES[0], edge(CASES[1])]).mistake == ""


def test_a_mistake_that_would_change_a_right_part_is_not_named() -> None:
    assert report({"mean": sum, "top": odd}).mistake == ""


def test_two_mistakes_that_fit_the_same_part_are_not_named() -> None:
    def doubtful(x: list[float]) -> Result:
        return summary(x) | {"mean": too_many(x), "top": odd(x)}

    two = exercise()
    two.slips(summary, {'{"mean": mean → {"mean": mean * len(x) / (len(x) + 1)': "You weight the mean."})
    assert check_exercise(two, doubtful).mistake == ""
