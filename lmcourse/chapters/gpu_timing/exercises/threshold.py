"""The exercise on the number of tokens from which arithmetic limits a product."""

from __future__ import annotations

import math

from lmcourse.accounting.accelerators import Accelerator, find_accelerator
from lmcourse.accounting.latency import compute_bound_tokens
from lmcourse.exercises.exercise import value_exercise

A100 = find_accelerator("a100-sxm-80gb")
WIDTH, RIDGE = 8192, A100.ridge("bf16")
"""Width of the matrix, and FLOPs per byte of an A100 80 GB, about 153."""


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
    "159.0",
    "math.ceil(153 * 8192 / (8192 - 2 * 153))",
    "int(1 / (2.039 / 312 - 2 / 8192)) + 1",
    "next(n for n in range(1, 8192) if n * 8192 / (2 * n + 8192) >= 312 / 2.039)",
    "sum(n * 8192 < 153 * (2 * n + 8192) for n in range(8192))",
)
for _equally_long in (_equal(), _equal(153), 158.96, 158.94, 158.9):
    enough_tokens.wrong_value(
        _equally_long,
        "There, both take equally long. What is the first whole number of tokens for which arithmetic is the limit?",
    )
enough_tokens.wrong_value(
    154, "That is the first number above the ridge. An intensity of n needs activations that move for free."
)
enough_tokens.wrong_value(160, "That is one too many: arithmetic is already the limit with one token fewer.")
enough_tokens.wrong_value(
    318, "That is twice as many. A weight has 2 bytes and takes 2 FLOPs a token: the two factors cancel."
)
enough_tokens.wrong_value(306, "That is twice the ridge. A weight has 2 bytes and takes 2 FLOPs: both 2s cancel.")
enough_tokens.wrong_value(76.5, "That is half the ridge. A weight has 2 bytes and takes 2 FLOPs: both 2s cancel.")
enough_tokens.wrong_value(77, "That is the first number above half of the ridge. Do not divide by the 2 bytes again.")
enough_tokens.wrong_value(158, "With 158 tokens there are 152.1 FLOPs per byte, a little less than the ridge.")
enough_tokens.wrong_value(157, "With 157 tokens there are 151.2 FLOPs per byte, less than the ridge.")
enough_tokens.wrong_value(
    math.ceil(_equal(2 * RIDGE)),
    "With so many tokens the intensity is twice the ridge. You used 1/p in place of 2/p, the sparse peak, or fp32's "
    "four bytes with bf16's peak.",
)
for _ridge in (RIDGE, 153):
    enough_tokens.wrong_value(
        _ridge,
        "That is the ridge itself. If only the weights had to be moved, arithmetic and memory would take equally long "
        "there. Activations move, too.",
    )
enough_tokens.wrong_value(
    math.ceil(RIDGE * WIDTH / (WIDTH - RIDGE)), "You count the input or the output. Both move: 2n in nD/(2n + D)."
)
enough_tokens.wrong_value(
    math.ceil(RIDGE * WIDTH / (WIDTH + 2 * RIDGE)),
    "You have a sign wrong: n·D = λ·(2n + D) gives n·(D − 2λ) = λ·D, with a minus.",
)
for _ridge in (A100.peak("bf16") / (A100.bandwidth / 1e12 * 2**40), 139):
    enough_tokens.wrong_value(
        math.ceil(_equal(_ridge)),
        "You read 2.039 TB/s as 2.039 TiB/s, whose ridge is 139. The ridge of 153 is given: use it.",
    )
enough_tokens.wrong_value(
    math.ceil(_equal(A100.peak("bf16") / 2e12)),
    "That is for 2.0 TB/s, whose ridge is 156. This A100 moves 2.039 TB/s, and its ridge is 153.",
)
enough_tokens.wrong_value(
    WIDTH // 2, "That is D/2, the highest intensity that this product can have, in FLOPs per byte."
)
enough_tokens.wrong_value(
    math.ceil(RIDGE * WIDTH / (WIDTH - 4 * RIDGE)),
    "You count activations of twice the size. Inputs and outputs are in bf16, too: 2n in nD/(2n + D).",
)
