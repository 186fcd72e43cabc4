"""The exercise on the number of tokens from which arithmetic limits a product."""

from __future__ import annotations

import math

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.latency import compute_bound_tokens
from lmcourse.exercises.exercise import value_exercise

WIDTH, RIDGE = 8192, 156
"""Width of the matrix, and FLOPs per byte of an A100 80 GB with 2 TB/s."""


def _equal(ridge: float = RIDGE) -> float:
    """The number of tokens at which arithmetic and memory take equally long."""
    chip = Accelerator("chip", "a chip", {"bf16": ridge}, 1.0, 1, None, None, ())
    return compute_bound_tokens(WIDTH, chip)


enough_tokens = value_exercise(
    "enough_tokens",
    points=2,
    minutes=5,
    difficulty=2,
    reference=lambda: math.floor(_equal()) + 1,
    hints=[
        "Set the intensity of the product, nD/(2n + D) in bf16, equal to the ridge, and solve for n.",
        "n·D = λ·(2n + D), so n·(D − 2λ) = λ·D. Return the first whole number above that.",
    ],
)
enough_tokens.right_value(
    "163.0",
    "math.ceil(156 * 8192 / (8192 - 2 * 156))",
    "int(1 / (1 / 156 - 2 / 8192)) + 1",
    "next(n for n in range(1, 8192) if n * 8192 / (2 * n + 8192) >= 156)",
    "sum(n * 8192 < 156 * (2 * n + 8192) for n in range(8192))",
)
enough_tokens.wrong_value(
    _equal(),
    ("There, both take equally long. What is the first whole number of tokens for which arithmetic is the limit?"),
)
enough_tokens.wrong_value(
    162.2, "That is about where both take equally long. Tokens come in whole numbers: which is the first beyond it?"
)
enough_tokens.wrong_value(
    162.18, "That is where both take equally long. Which is the first whole number of tokens beyond it?"
)
enough_tokens.wrong_value(
    157, "That is the first number above the ridge. An intensity of n needs activations that move for free."
)
enough_tokens.wrong_value(164, "That is one too many: arithmetic is already the limit with one token fewer.")
enough_tokens.wrong_value(
    325, "That is twice as many. A weight has 2 bytes and takes 2 FLOPs a token: the two factors cancel."
)
enough_tokens.wrong_value(312, "That is twice the ridge. A weight has 2 bytes and takes 2 FLOPs: both 2s cancel.")
enough_tokens.wrong_value(78, "That is half the ridge. A weight has 2 bytes and takes 2 FLOPs: both 2s cancel.")
enough_tokens.wrong_value(162, "With 162 tokens there are 155.8 FLOPs per byte, a little less than the ridge.")
enough_tokens.wrong_value(
    math.ceil(_equal(2 * RIDGE)),
    "With so many tokens the intensity is twice the ridge. You used 1/p in place of 2/p, the sparse peak, or fp32's "
    "four bytes with bf16's peak.",
)
enough_tokens.wrong_value(
    RIDGE,
    "That is the ridge itself. If only the weights had to be moved, arithmetic and memory would take equally long "
    "there. Activations move, too.",
)
enough_tokens.wrong_value(
    math.ceil(RIDGE * WIDTH / (WIDTH - RIDGE)), "You count the input or the output. Both move: 2n in nD/(2n + D)."
)
enough_tokens.wrong_value(
    math.ceil(RIDGE * WIDTH / (WIDTH + 2 * RIDGE)),
    ("You have a sign wrong: n·D = λ·(2n + D) gives n·(D − 2λ) = λ·D, with a minus."),
)
enough_tokens.wrong_value(
    math.ceil(_equal(312 / 2 * 1e12 / 2**40)), "You read 2 TB/s as 2 TiB/s. The ridge of 156 is given: use it."
)
enough_tokens.wrong_value(
    WIDTH // 2, "That is D/2, the highest intensity that this product can have, in FLOPs per byte."
)


enough_tokens.wrong_value(
    math.ceil(_equal(142)), "You used 2.0 TiB/s, whose ridge is 142. The text says 2.0 TB/s, and a ridge of 156."
)
enough_tokens.wrong_value(161, "With 161 tokens there are 154.9 FLOPs per byte, less than the ridge.")
enough_tokens.wrong_value(
    math.ceil(RIDGE * WIDTH / (WIDTH - 4 * RIDGE)),
    "You count activations of twice the size. Inputs and outputs are in bf16, too: 2n in nD/(2n + D).",
)
enough_tokens.wrong_value(79, "That is the first number above half of the ridge. Do not divide by the 2 bytes again.")
