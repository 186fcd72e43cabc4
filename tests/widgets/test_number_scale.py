"""A guessed number is read as people type it, and its distance from the answer is said in true words."""

from __future__ import annotations

from typing import Any

import pytest

from lmcourse.widgets.number_scale import NumberScale

STEPS = NumberScale(answer=160, low=0, high=300, unit="steps")
SIGNED = NumberScale(answer=-0.2, low=-1, high=1)
SHARE = NumberScale(answer=90, low=0, high=100, unit="% of the time")
NONE = NumberScale(answer=0, low=0, high=100, unit="bytes")
DECADES = NumberScale(answer=1500, low=1, high=10**9, unit="FLOPs", log=True)
NATS = NumberScale(answer=2.5, low=0, high=3.5, unit="nats")
SCALES = (STEPS, SIGNED, SHARE, NONE, DECADES, NATS, NumberScale(answer=0.1, low=0, high=1 / 3, unit="s"))


@pytest.mark.parametrize(
    ("scale", "guess", "words"),
    [
        (STEPS, 160, "exactly right"),
        (STEPS, 176, "within 10 %"),
        (STEPS, 177, "about 10 % too large"),
        (STEPS, 96, "about 40 % too small"),
        (STEPS, 300, "too large, but within a factor of two"),
        (STEPS, 53, "about three times too small"),
        (STEPS, 0, "far too small"),
        (SIGNED, 0, "about a tenth of the range too large"),
        (SIGNED, 0.1, "about a tenth of the range too large, on the wrong side of 0"),
        (SIGNED, -0.9, "about a third of the range too small"),
        (SHARE, 95, "within 5 percentage points"),
        (SHARE, 84, "about 5 percentage points too small"),
        (SHARE, 73, "about 15 percentage points too small"),
        (NumberScale(answer=4, low=0, high=100, unit="%"), 100, "about 95 percentage points too large"),
        (NONE, 0, "exactly right"),
        (NONE, 5, "within a twentieth of the range"),
        (NONE, 100, "more than half of the range too large"),
        (DECADES, 800, "within a factor of two"),
        (DECADES, 3, "about 500 times too small"),
        (DECADES, 10**9, "about 700,000 times too large"),
    ],
)
def test_the_distance_of_a_guess_in_words(scale: NumberScale, guess: float, words: str) -> None:
    assert scale.distance(guess) == words


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_stop_has_a_distance_and_is_read_back(scale: NumberScale) -> None:
    assert [scale.stops[0], scale.stops[-1]] == [scale.low, scale.high]
    for place, stop in enumerate(scale.stops):
        assert scale.distance(stop)
        assert scale.read(scale.labels[place]) == pytest.approx(stop)
        assert scale.nearest(stop) == place


@pytest.mark.parametrize(
    ("scale", "typed", "number"),
    [
        (STEPS, " 120 ", 120),
        (STEPS, "~120 steps", 120),
        (STEPS, "1 step", 1),
        (STEPS, "1e2", 100),
        (STEPS, "12,5", 12.5),
        (STEPS, "0,125", 0.125),
        (STEPS, "−0", 0),
        (STEPS, "301", None),
        (STEPS, "−5", None),
        (STEPS, "1e999", None),
        (STEPS, "nan", None),
        (STEPS, "1.2.3", None),
        (STEPS, "ten", None),
        (STEPS, "5 layers", None),
        (STEPS, "", None),
        (NATS, "1,500", 1.5),
        (NATS, ".5", 0.5),
        (SIGNED, "−0,5", -0.5),
        (SHARE, "40 %", 40),
        (DECADES, "12,345", 12345),
        (DECADES, "12 345 678", 12345678),
    ],
)
def test_a_typed_number_is_read(scale: NumberScale, typed: str, number: float | None) -> None:
    assert scale.read(typed) == number


def test_the_slider_never_starts_near_the_answer() -> None:
    starts = set()
    for answer in range(301):
        scale = NumberScale(answer=answer, low=0, high=300)
        assert abs(scale.stops[scale.start] - answer) > 29
        starts.add(scale.start)
    assert len(starts) == 2, "more places would say more about the answer"


def test_stops_are_round_numbers() -> None:
    assert STEPS.stops[:3] == (0, 2, 4)
    assert NumberScale(answer=3, low=1, high=8).stops == (1, 2, 3, 4, 5, 6, 7, 8)
    assert NumberScale(answer=3, low=1, high=8, step=2.5).labels == ("1", "2.5", "5", "7.5", "8")
    assert NumberScale(answer=1e-7, low=1e-8, high=1.0, log=True).labels[:3] == ("1e-8", "1.2e-8", "1.4e-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": 301}, "the answer 301 is not between 0 and 300"),
        ({"log": True}, "begins above 0"),
        ({"low": 1, "log": True, "step": 1}, "has no step"),
        ({"step": 0}, "the step 0 is not"),
    ],
)
def test_a_scale_without_sense_is_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NumberScale(**{"answer": 160, "low": 0, "high": 300} | changes)
