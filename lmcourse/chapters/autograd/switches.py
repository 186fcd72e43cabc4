"""A small network of single numbers, and the task of two switches that a straight line cannot solve."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

CASES = {(-1.0, -1.0): -1.0, (-1.0, 1.0): 1.0, (1.0, -1.0): 1.0, (1.0, 1.0): -1.0}
"""Both switches, and the answer wanted: 1 if exactly one of them is on."""


class Switches:
    """A network with four hidden numbers; all its numbers are of one type, such as a learner's `Value`.

    Attributes:
        parameters: its 17 numbers that training changes.
        answers: its answers to the four cases, when the loss was computed last.
    """

    def __init__(self, number: Callable[[float], Any]) -> None:
        generator = random.Random(0)
        self._number = number
        self._hidden = [[number(generator.gauss(0, 1)) for _ in range(3)] for _ in range(4)]
        self._v, self._c = [number(generator.gauss(0, 1)) for _ in range(4)], number(0.0)
        self.parameters = [self._c, *self._v, *(each for row in self._hidden for each in row)]
        self.answers: list[float] = []

    def loss(self) -> Any:
        """Return the mean squared error of the four cases, as a number of the network's type."""
        loss, self.answers = self._number(0.0), []
        for (left, right), wanted in CASES.items():
            answer = self._c
            for weight, (w_left, w_right, b) in zip(self._v, self._hidden, strict=True):
                answer = answer + weight * (w_left * left + w_right * right + b).tanh()
            self.answers.append(answer.data)
            loss = loss + (answer - wanted) ** 2 * 0.25
        return loss
