"""The exercise on the effect of faster norms on a whole model."""

from __future__ import annotations

from fractions import Fraction

from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import value_exercise

NORMS = Fraction("0.255")
"""The fraction of a BERT's step time in LayerNorms and softmaxes (Ivanov et al., 2021)."""

SAVED = Fraction("0.3")
"""The fraction of their time that the exercise's new kernels save."""

OLD, NEW = Fraction("3.5"), Fraction("3.68")
"""Steps per second of a model with LayerNorm, and of the same model with RMSNorm (Narang et al., 2021)."""


def _gain() -> dict[str, float]:
    """Compute all numbers from the seconds of a step."""
    with_kernel = (1 - NORMS) + NORMS * (1 - SAVED)
    before, after = 1 / OLD, 1 / NEW
    norms = NORMS * before
    return {"faster": float(1 / with_kernel - 1), "norms_saved": float((before - after) / norms)}


FASTER, NORMS_SAVED = 0.0828, 0.1918

norm_gain = value_exercise(
    "norm_gain",
    points=1,
    minutes=4,
    difficulty=2,
    reference=_gain,
    hints=[
        "Let a step take 1 second. How long do the kernels take before and after, and how long does everything else?",
        "`faster`: the new step takes 0.745 + 0.7 · 0.255 seconds. How many new steps fit into the time of an old one?",
        "`norms_saved`: a step took 1/3.5 s, then 1/3.68 s, and norms were 25.5 % of the first. Divide what was saved "
        "by what norms took.",
    ],
    tolerance=Tolerance(1e-2),  # two correct digits
)


SLIPS: dict[str, dict[float, str]] = {
    "faster": {
        FASTER: "",
        0.0765: "`faster` is the time saved. For the gain in steps per second, divide the old time by the new "
        "time and subtract 1.",
        0.3: "`faster` is what the new kernels save of *their* time. They are only 25.5 % of the step.",
        0.1093: "`faster` is the kernels' own gain, 1/0.7 − 1, times their share. Add times: the new step takes "
        "0.745 + 0.7 · 0.255 of the old one.",
        0.4286: "`faster` is 1/(1 − 0.3) − 1, as if the kernels were the whole step. They are 25.5 % of it.",
        0.3423: "`faster` is what kernels without any cost would give. The new ones still take 70 % of the time.",
        0.0625: "You divide the kernels' time by 1.3. If 30 % of it is saved, 70 % of it is left.",
        0.08: "Give `faster` to three decimals.",
        100 * FASTER: "`faster` is a percentage. Give a fraction: 0.1 for 10 %.",
    },
    "norms_saved": {
        NORMS_SAVED: "",
        0.0489: "`norms_saved` is a part of the *step*. Divide it by the part that norms take.",
        0.0514: "`norms_saved` is the gain in steps per second. Which part of the norms' time was saved?",
        0.2017: "`norms_saved` starts from the gain in steps. Start from the time that is saved, 1 − 3.5/3.68.",
        0.8082: "`norms_saved` is the part of the norms' time that is left. Which part was saved?",
        0.18: "`norms_saved` is a difference of steps per second. Compare times: 1/3.5 s and 1/3.68 s.",
        0.05: "`norms_saved` is a part of the *step*, and rounded. Divide it by the part that norms take.",
    },
}
"""For each name, common wrong numbers with a sentence each; the right number has no sentence."""

for faster, first in SLIPS["faster"].items():
    for norms_saved, second in SLIPS["norms_saved"].items():
        if first or second:
            norm_gain.wrong_value({"faster": faster, "norms_saved": norms_saved}, f"{first} {second}".strip())
norm_gain.wrong_value({"faster": NORMS_SAVED, "norms_saved": FASTER}, "You swapped the two numbers.")
norm_gain.wrong_value(
    {"faster": 100 * FASTER, "norms_saved": 100 * NORMS_SAVED}, "You give percentages. Give fractions: 0.1 for 10 %."
)
norm_gain.wrong_value(
    {"faster": 1 + FASTER, "norms_saved": 1 - NORMS_SAVED}, "You give quotients of new and old. Give the change."
)
norm_gain.wrong_value(
    {"faster": 1 + FASTER, "norms_saved": NORMS_SAVED},
    "`faster` is the quotient of new and old. Give the change: 0.1 for 10 % more.",
)
norm_gain.right_value(
    '{"faster": 0.0828, "norms_saved": 0.1918}',
    '{"norms_saved": (1 - 3.5 / 3.68) / 0.255, "faster": 1 / (1 - 0.3 * 0.255) - 1}',
    "dict(faster=1 / (0.745 + 0.7 * 0.255) - 1, norms_saved=torch.tensor(0.18 / 3.68 / 0.255))",
)
