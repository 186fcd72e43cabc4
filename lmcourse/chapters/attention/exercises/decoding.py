"""The exercise on operations per moved number when text is written with a cache."""

from __future__ import annotations

from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import value_exercise

BATCH, TOKENS, D_MODEL = 32, 2048, 4096


def _intensity() -> float:
    """Return the operations per moved number: each step reads the weights once, and the whole cache of each text."""
    operations = moved = 0
    for _ in range(TOKENS):
        operations += BATCH * D_MODEL**2
        moved += D_MODEL**2 + BATCH * TOKENS * D_MODEL
    return operations / moved


decoding_intensity = value_exercise(
    "decoding_intensity",
    points=1,
    minutes=5,
    difficulty=2,
    reference=_intensity,
    tolerance=Tolerance(5e-5),  # four decimals
    hints=[
        "Each of b texts holds n tokens of d numbers in the end. Each of the n steps reads what is in the cache.",
        "b n² d for the cache and n d² for the weights, together. Divide the b n d² operations by it.",
    ],
)
decoding_intensity.wrong_value(
    32.0, "That is the batch size, which is what the weights alone would allow. The cache moves as well."
)
decoding_intensity.wrong_value(
    31.996094226778958,
    "You read b² d numbers of the cache. Count the numbers that the cache of b texts holds, and how often it is read.",
)
decoding_intensity.wrong_value(
    31.751937984496124, "You read the cache once. It holds b · n · d numbers, and every one of the n tokens reads it."
)
decoding_intensity.wrong_value(
    2.0, "The weights hardly count in your number, or not at all. They move for each of the n tokens."
)
decoding_intensity.wrong_value(
    3.5555555555555554,
    "You count half of the cache, because it fills up slowly. But it holds keys and values, which makes up for the "
    "half; leave constants out.",
)
for growing, when in ((3.5540130151843816, "after"), (3.5570994355188885, "before")):
    decoding_intensity.wrong_value(
        growing,
        f"You add up the cache as it is {when} each step. Count a full one in every step: it holds keys and values, "
        "which makes up for the half that is empty on average.",
    )
decoding_intensity.wrong_value(
    0.9696969696969697,
    "You count keys and values, two full caches. On the way they are half full; leave constants out.",
)
decoding_intensity.wrong_value(
    21.333333333333332, "You share one cache among all texts. Each of the b texts has its own n · d numbers."
)
decoding_intensity.wrong_value(
    0.9411764705882353,
    "You count two bytes for each number. The question is about operations per number, not per byte.",
)
decoding_intensity.wrong_value(0.53125, "You give numbers per operation. The intensity is operations per number.")
decoding_intensity.right_value("1.8824", "1 / (2048 / 4096 + 1 / 32)", "(0.5 + 2**-5) ** -1", "32 / 17")
