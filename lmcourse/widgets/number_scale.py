"""Scale on which a reader guesses a number: the slider's stops, the guess read from text, its distance in words."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

_TYPED = re.compile(r"([+-]?[0-9.,]+(?:e[+-]?[0-9]+)?)(.*)")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")
_IGNORED = re.compile(r"[\s_'~≈]")
_TIMES = [digit * 10**power for power in range(15) for digit in range(1, 10)][1:]
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
CLOSE = ("exactly", "within")
"""The first words of a distance that counts as right."""

_PARTS = (
    (0.15, "about a tenth"),
    (0.225, "about a fifth"),
    (0.29, "about a quarter"),
    (0.42, "about a third"),
    (0.6, "about half"),
    (1.0, "more than half"),
)
"""Largest distance as a fraction of the range, and its words."""


@dataclass(frozen=True, kw_only=True)
class NumberScale:
    """A number from `low` to `high` in a unit, and the answer. ValueError if the answer is not on the scale.

    Args:
        step: distance of the slider's stops; by default about a hundredth of the range.
        log: space the stops by equal ratios, for a quantity that covers powers of ten. Needs `low` above 0.
    """

    answer: float
    low: float
    high: float
    unit: str = ""
    step: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.answer <= self.high or self.low == self.high:
            raise ValueError(f"the answer {self.answer} is not between {self.low} and {self.high}")
        if self.log and (self.low <= 0 or self.step):
            raise ValueError("a logarithmic scale begins above 0 and has no step")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ValueError(f"the step {self.step} is not between 0 and {self.high - self.low}")

    @property
    def ends(self) -> str:
        """The ends of the scale in words: "from 0 to 300 steps"."""
        return f"from {number_text(self.low)} to {self.text(self.high)}"

    @property
    def help(self) -> str:
        """The sentence for a guess that cannot be read."""
        return f"Move the slider, or type a number {self.ends}, in digits."

    @cached_property
    def stops(self) -> tuple[float, ...]:
        """The numbers at which the slider stops, in ascending order, both ends included."""
        if self.log:
            ratio = self.high / self.low
            inner = [float(f"{self.low * ratio ** (place / 100):.2g}") for place in range(1, 100)]
            if self._is_whole:
                inner = [float(round(number)) for number in inner]
        else:
            step = self.step or self._round_step()
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            inner = [_without_noise(place * step) for place in range(first, last + 1)]
        return tuple(sorted({self.low, *(number for number in inner if self.low < number < self.high), self.high}))

    @property
    def labels(self) -> tuple[str, ...]:
        """The stops as text."""
        return tuple(map(number_text, self.stops))

    @property
    def start(self) -> int:
        """The index of the stop at which the slider starts: a quarter or three quarters along, far from the answer.

        Which of the two places is first is random, so the start says little about the answer.
        """
        last = len(self.stops) - 1
        places = [(last + 1) // 4, last - (last + 1) // 4]
        Random(f"{self.low} {self.high} {self.unit}").shuffle(places)
        far = [place for place in places if abs(place - self.nearest(self.answer)) > last / 10]
        return far[0]

    @cached_property
    def distances(self) -> tuple[tuple[float, str], ...]:
        """Pairs (number, words). The first pair whose number and the answer enclose a guess has the guess's words."""
        slack = 1e-9 * abs(self.answer)
        found = [(self.answer + sign * slack, "exactly right") for sign in (-1, 1)]
        for sign, end in ((-1, self.low), (1, self.high)):
            for edge, words in self._edges(sign):
                if edge * self.answer < 0:
                    found += [(0.0, words)]
                    words += ", on the wrong side of 0"
                if abs(edge - self.answer) >= abs(end - self.answer):
                    found += [(end, words)]
                    break
                found += [(_without_noise(edge), words)]
        return tuple(found)

    def distance(self, guess: float) -> str:
        """Return the distance between a guess and the answer in words, such as "about 40 % too small"."""
        return next(
            words for edge, words in self.distances if min(edge, self.answer) <= guess <= max(edge, self.answer)
        )

    def verdict(self, guess: float) -> str:
        """Return the guess beside the answer: "You guessed 96 steps, about 40 % too small. The answer: 160 steps."."""
        return f"You guessed {self.text(guess)}, {self.distance(guess)}. The answer: {self.text(self.answer)}."

    def is_close(self, guess: float) -> bool:
        """Return True if the guess counts as right."""
        return self.distance(guess).startswith(CLOSE)

    def text(self, number: float) -> str:
        """Return a number with the unit."""
        return f"{number_text(number)} {self.unit}".strip()

    def nearest(self, number: float) -> int:
        """Return the index of the stop nearest to a number."""
        stops = self.stops
        return min(range(len(stops)), key=lambda place: abs(stops[place] - number))

    def read(self, text: str) -> float | None:
        """Return the number that a reader typed, or None if it is no number of the scale.

        A comma is a decimal sign, except in "12,500", if that is on the scale. Spaces, "~" and the unit, or its
        beginning, may be there. `readNumber` in `site.js` does the same.
        """
        typed = _TYPED.fullmatch(_IGNORED.sub("", text.lower().replace("−", "-")))
        if not typed or not _IGNORED.sub("", self.unit.lower()).startswith(typed[2]):
            return None
        grouped = [typed[1].replace(",", "")] if _GROUPED.fullmatch(typed[1]) else []
        for reading in (*grouped, typed[1].replace(",", ".")):
            if _NUMBER.fullmatch(reading) and self.low <= float(reading) <= self.high:
                return float(reading) + 0.0  # -0.0 becomes 0.0
        return None

    @property
    def _is_whole(self) -> bool:
        return all(isinstance(number, int) for number in (self.low, self.answer, self.high))

    def _round_step(self) -> float:
        """Return 1, 2 or 5 times a power of ten, at least 1/150 of the range; whole if the scale is."""
        least = (self.high - self.low) / 150
        power = 10.0 ** math.floor(math.log10(least))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))
        return max(step, 1) if self._is_whole else step

    @property
    def _by_ratio(self) -> bool:
        """True if guesses are compared by ratio: not for fractions, signed numbers and numbers near 0."""
        fraction = self.unit.startswith("%") or (not self.unit and self.high <= 1)
        return self.log or (0 <= self.low <= self.answer / 2 and self.answer >= self.high / 100 and not fraction)

    def _edges(self, sign: int) -> Iterator[tuple[float, str]]:
        """Yield pairs (outermost guess, words) from the answer down (sign -1) or up (sign 1)."""
        direction, answer = ("too large" if sign > 0 else "too small"), self.answer
        span = self.high - self.low
        if self._by_ratio:
            yield answer * (1 + sign * 0.1), "within 10 %"
            if self.log:
                yield answer * 2.0**sign, "within a factor of two"
            else:
                for percent in range(10, 51, 5):
                    yield answer * (1 + sign * (percent + 2.5) / 100), f"about {percent} % {direction}"
                if sign > 0:
                    yield answer * 2, "too large, but within a factor of two"
            for ratio, times in _times(self.log):
                yield answer * ratio**sign, f"about {times} times {direction}"
            yield (self.high if sign > 0 else self.low), f"far {direction}"
        elif self.unit.startswith("%") and span >= 50:
            yield answer + sign * 5, "within 5 percentage points"
            for points in itertools.count(5, 5):
                yield answer + sign * (points + 2.5), f"about {points} percentage points {direction}"
        else:
            yield answer + sign * span / 20, "within a twentieth of the range"
            for part, words in _PARTS:
                yield answer + sign * part * span, f"{words} of the range {direction}"


def _times(log: bool) -> list[tuple[float, str]]:
    """Return pairs (largest ratio, words): "two" and so on, to "ten", or far more on a logarithmic scale."""
    words = [*_WORDS, *(f"{times:,}" for times in _TIMES[len(_WORDS) :])]
    pairs = [((a + b) / 2, word) for (a, b), word in zip(itertools.pairwise(_TIMES), words, strict=False)]
    return pairs if log else pairs[: len(_WORDS)]


def _without_noise(number: float) -> float:
    """Return a number with 12 digits, so that 1.1 · 160 is 176."""
    return float(f"{number:.12g}")


def number_text(number: float) -> str:
    """Return a number as text: with commas in thousands, and up to ten digits of a fraction."""
    text = f"{number:,.0f}" if number == round(number) else f"{number:,.10g}"
    return text.replace("e-0", "e-")
