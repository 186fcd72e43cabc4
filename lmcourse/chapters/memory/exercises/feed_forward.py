"""The exercise on the tensors that a feed-forward layer keeps for the backward pass."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _mlp(B: int, S: int, D: int, d_ff: int, p: int = 2) -> int:
    kept = tensors_saved_by_block(B, S, D, 1, d_ff, p)
    return sum(tensor.size for tensor in kept if tensor.part == "feed-forward")


def _mlp_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, int, int, int]:
        return random.randint(2, 9), random.randint(5, 99), random.randint(3, 99), random.randint(100, 999)

    return [
        case("other precisions", 3, 5, 7, 11, p=8),
        case("a narrow hidden layer", 3, 5, 12, 4),
        case("other sizes", 8, 8192, 12_288, 49_152),
        case("other sizes", *sizes()),
        case("other precisions", *sizes(), p=4),
        case("other precisions", *sizes(), p=8),
    ]


mlp_activations = Exercise(
    "mlp_activations",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_mlp,
    tolerance=Tolerance(1e-15),  # a division in floats may be wrong by this much
    cases=[
        case("one token, d = 1, d_ff = 4", 1, 1, 1, 4),
        case("2 texts of 3 tokens, d = 4, d_ff = 16", 2, 3, 4, 16),
        case("the same in fp32", 2, 3, 4, 16, p=4),
        case("a hidden layer of 10", 2, 3, 4, 10),
        case("a layer of GPT-3, one text", 1, 2048, 12_288, 49_152),
    ],
    hidden_cases=_mlp_cases,
    hints=[
        "up keeps its input, GELU its input, down its input. Dropout keeps a mask. How wide is each?",
        "Input of the layer: D numbers of p bytes. GELU's input and down's input: d_ff numbers of p bytes each. The "
        "mask: D numbers of 1 byte.",
        "B·S·(p·D + 2·p·d_ff + D).",
    ],
)


@mlp_activations.variant
def input_hidden_mask(B: int, S: int, D: int, d_ff: int, p: int = 2) -> int:
    x, wide, mask = p * D, p * d_ff, D
    hidden = 2 * wide
    return B * S * (x + hidden + mask)


mlp_activations.slips(
    input_hidden_mask,
    {
        "x + hidden → hidden": "The input of the layer is missing: the first product keeps its input.",
        "2 * wide → wide": "One hidden tensor is missing: GELU keeps its input, and the last product keeps GELU's "
        "result.",
        "2 * wide → 3 * wide": "You count one hidden tensor too many. Which of the operations needs it?",
        "hidden + mask → hidden": "The mask of dropout is missing: one byte for each number of the output.",
        "p * d_ff, D → p * d_ff, d_ff": "Your mask is d_ff wide. Dropout comes after the last product, where vectors "
        "are D wide.",
        "p * d_ff, D → p * d_ff, p * D": "Your mask takes p bytes per number. It is true or false: one byte.",
        "x + hidden → 2 * x + hidden": "You count the result of the layer. It is added to the residual stream, and an "
        "addition keeps nothing.",
        "p * d_ff → p * 4 * D": "You take the hidden layer as 4·D wide. Its width is given: d_ff.",
        "2 * wide → 3 * wide ;; x + hidden → 2 * x + hidden": "You count every tensor. Count only the tensors that "
        "the backward pass reads.",
        "(x + hidden + mask) → 19 * D": "That is 19·BSD, for 16 bits and d_ff = 4·D. Use p and d_ff.",
        "p * D, p * d_ff → 2 * D, 2 * d_ff": "You ignore `p`. Numbers take p bytes; only the mask always takes 1.",
        "p * D, p * d_ff → D, d_ff": "You count numbers, not bytes: a number takes p bytes, a mask entry one.",
        "B * S * → S *": "You count one text. There are B.",
    },
)


@mlp_activations.variant
def per_number(B: int, S: int, D: int, d_ff: int, p: int = 2) -> np.int64:
    shapes = np.array([[B, S, D], [B, S, d_ff], [B, S, D]], dtype=np.int64)
    return np.int64(shapes.prod(axis=1) @ np.array([p, 2 * p, 1]))


@mlp_activations.variant
def through_the_ratio(B: int, S: int, D: int, d_ff: int, p: int = 2) -> float:
    return B * S * D * (2 * (d_ff / D) * p + p + 1)
