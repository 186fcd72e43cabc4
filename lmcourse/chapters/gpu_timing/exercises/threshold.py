"""The exercise on how many tokens make a product wait for arithmetic."""

from __future__ import annotations

from lmcourse.accounting.accelerator import Accelerator
from lmcourse.accounting.intensity import compute_bound_tokens
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import value_exercise

WIDTH, RIDGE, TEXT = 8192, 156, 2048
"""Of the matrix; FLOPs per byte of an A100 80 GB with 2 TB/s; tokens of a text."""


def _tokens(ridge: float = RIDGE, width: int = WIDTH) -> float:
    chip = Accelerator("chip", "a chip", {"bf16": ridge}, 1.0, 1, None, None, ())
    return compute_bound_tokens(width, chip)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


enough_tokens = value_exercise(
    "enough_tokens",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_tokens,
    tolerance=Tolerance(0.005),
    hints=[
        "Set the intensity of the product, nD/(2n + D) in bf16, equal to the ridge, and solve for n.",
        "n·D = λ·(2n + D), so n·(D − 2λ) = λ·D.",
    ],
)
enough_tokens.wrong_value(
    _rounded(_tokens(2 * RIDGE)),
    "That is twice the ridge: the slip (1/p) for (2/p), the sparse peak, or fp32's four bytes at bf16's peak.",
)
enough_tokens.wrong_value(
    RIDGE, "That is the ridge itself: right if only the weights had to be moved. Activations move, too."
)
enough_tokens.wrong_value(
    _rounded(RIDGE * WIDTH / (WIDTH - RIDGE)), "You count the input or the output. Both move: 2n in nD/(2n + D)."
)
enough_tokens.wrong_value(
    _rounded(RIDGE * WIDTH / (WIDTH + 2 * RIDGE)), "A sign: n·D = λ·(2n + D) gives n·(D − 2λ) = λ·D, with a minus."
)
enough_tokens.wrong_value(
    _rounded(_tokens(RIDGE) / TEXT), "That is in texts of 2048 tokens. The question is about tokens."
)
enough_tokens.wrong_value(
    _rounded(_tokens(312 / 2 * 1e12 / 2**40)), "You took 2 TB/s for 2 TiB/s. The ridge of 156 is given: use it."
)
enough_tokens.wrong_value(
    WIDTH // 2, "That is D/2, the highest intensity that this product can have, in FLOPs per byte."
)
