"""The exercise on what a published speed-up is in per cent."""

from __future__ import annotations

from fractions import Fraction

from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import value_exercise

OLD, NEW = Fraction("3.5"), Fraction("3.68")
"""Steps per second of the same model with LayerNorm and with RMSNorm (Narang et al., 2021)."""


def _gain() -> dict[str, float]:
    """From the seconds of a step."""
    before, after = 1 / OLD, 1 / NEW
    return {"faster": float(before / after - 1), "time_saved": float((before - after) / before)}


narang_gain = value_exercise(
    "narang_gain",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_gain,
    hints=[
        "How many more steps in the same time, as a share of the steps before?",
        "How much shorter is the time of one step, as a share of the time before? A step takes 1/3.5 s and 1/3.68 s.",
    ],
    tolerance=Tolerance(1e-2),  # two digits: the two shares differ by 5 %
)
narang_gain.wrong_value({"faster": 0.18, "time_saved": 0.18}, "0.18 is a difference of rates. Divide by a rate.")
narang_gain.wrong_value(
    {"faster": 0.0514, "time_saved": 0.0514},
    "The two differ. A step takes 1/3.5 s, then 1/3.68 s: take the share of the first.",
)
narang_gain.wrong_value(
    {"faster": 0.0489, "time_saved": 0.0489},
    "The two differ. `faster` compares rates: the gain as a share of the old rate.",
)
narang_gain.wrong_value({"faster": 0.0489, "time_saved": 0.0514}, "The two are exchanged.")
narang_gain.wrong_value({"faster": 5.14, "time_saved": 4.89}, "Those are per cent. Give shares: 0.05 for 5 %.")
narang_gain.wrong_value(
    {"faster": 1.0514, "time_saved": 0.9511}, "Those are the quotients of new and old. Asked is the change."
)
narang_gain.wrong_value(
    {"faster": 0.255, "time_saved": 0.255}, "That is the share of the time that normalisations take, not what was won."
)
narang_gain.right_value(
    '{"faster": 0.0514, "time_saved": 0.0489}',
    '{"time_saved": 1 - 3.5 / 3.68, "faster": 3.68 / 3.5 - 1}',
    "dict(faster=(3.68 - 3.5) / 3.5, time_saved=torch.tensor(0.18 / 3.68))",
)
