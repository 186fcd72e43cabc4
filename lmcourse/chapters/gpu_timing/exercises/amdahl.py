"""The exercise on what could be gained if normalisation were free."""

from __future__ import annotations

from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import value_exercise

NORMALISATION = 25.5
"""Per cent of the time of a BERT layer (Ivanov et al., 2021, table 1), as in the figure above the exercise."""


def _speedup() -> float:
    """Return all of the time over what is left of it."""
    return 100 / (100 - NORMALISATION)


free_norms = value_exercise(
    "free_norms",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_speedup,
    tolerance=Tolerance(0.002),  # two decimals
    hints=[
        "If normalisation took no time, which share of the time would be left?",
        "The speed-up is the old time divided by the new one: 1/(1 − share of the time).",
    ],
)
free_norms.right_value("1.34", "100 / 74.5", "1 + 0.255 / 0.745", "sum(0.255**n for n in range(40))")
free_norms.wrong_value(
    0.342, "That is how much is gained: 1.342 times as fast is 34 % faster. Asked is how many times."
)
free_norms.wrong_value(1.25, "You add the share. Time falls to 74.5 %: divide the old time by the new.")
free_norms.wrong_value(1.3, "One decimal is too coarse: give two.")
free_norms.wrong_value(34, "That is a percentage. Asked is how many times as fast.")
free_norms.wrong_value(1.002, "You took the share of the FLOPs, 0.17 %. What counts is the share of the time.")
free_norms.wrong_value(1.255, "You add the whole share to 1. Time falls to 74.5 %: divide the old time by the new.")
free_norms.wrong_value(0.745, "That is the new time as a share of the old. The speed-up is its inverse.")
free_norms.wrong_value(3.922, "That is 1/0.255: as if only normalisation were left. It is what disappears.")
free_norms.wrong_value(1.639, "That is with element-wise operations free as well. Only normalisation shall be.")
