"""The exercise on the tensors that a feed-forward layer keeps for the backward pass."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _mlp(B: int, S: int, D: int, d_ff: int, p: int = 2, gated: bool = False) -> int:
    kept = tensors_saved_by_block(B, S, D, 1, d_ff, p, gated=gated)
    return sum(tensor.size for tensor in kept if tensor.part == "feed-forward")


def _mlp_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, int, int, int]:
        return random.randint(2, 9), random.randint(5, 99), random.randint(3, 99), random.randint(100, 999)

    return [
        case("gated", 3, 5, 7, 11, p=4, gated=True),
        case("gated", 3, 5, 7, 11, p=1, gated=True),
        case("other precisions", 3, 5, 7, 11, p=8),
        case("a narrow hidden layer", 3, 5, 12, 4),
        case("other sizes", 8, 8192, 12_288, 49_152),
        case("other sizes", *sizes()),
        case("other precisions", *sizes(), p=4),
        case("other precisions", *sizes(), p=8),
        case("gated", *sizes(), gated=True),
        case("gated", *sizes(), p=4, gated=True),
    ]


mlp_activations = Exercise(
    "mlp_activations",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_mlp,
    tolerance=Tolerance(1e-15),  # a division in floats may be wrong by this much
    cases=[
        case("one token, d = 1, d_ff = 4", 1, 1, 1, 4),
        case("2 texts of 3 tokens, d = 4, d_ff = 16", 2, 3, 4, 16),
        case("the same in fp32", 2, 3, 4, 16, p=4),
        case("a gated layer of the same width", 2, 3, 4, 16, gated=True),
        case("a gated layer, d_ff = 10", 2, 3, 4, 10, gated=True),
        case("a layer of GPT-3, one text", 1, 2048, 12_288, 49_152),
    ],
    hidden_cases=_mlp_cases,
    hints=[
        "up keeps its input, GELU its input, down its input. Dropout keeps a mask. How wide is each?",
        "With a gate, f(gate) ⊙ up needs three tensors of d_ff: the gate before f, f's result, and up's result; down "
        "keeps the product, a fourth.",
        "B·S·(p·D + (4 if gated else 2)·p·d_ff + D).",
    ],
)


@mlp_activations.variant
def input_hidden_mask(B: int, S: int, D: int, d_ff: int, p: int = 2, gated: bool = False) -> int:
    x, wide, mask = p * D, p * d_ff, D
    hidden = (4 if gated else 2) * wide
    return B * S * (x + hidden + mask)


mlp_activations.slips(
    input_hidden_mask,
    {
        "x + hidden → hidden": "The input of the layer is missing: the first product keeps its input.",
        "4 if gated else 2 → 3 if gated else 1": "One hidden tensor is missing: GELU keeps its input, and the last "
        "product keeps GELU's output.",
        "hidden + mask → hidden": "The mask of dropout is missing: one byte for each number of the output.",
        "p * d_ff, D → p * d_ff, d_ff": "Your mask is d_ff wide. Dropout comes after the last product, where vectors "
        "are D wide.",
        "p * d_ff, D → p * d_ff, p * D": "Your mask takes p bytes per number. It is true or false: one byte.",
        "4 if gated else 2 → 2": "You ignore the gate. A product of two tensors keeps both, and f keeps its input.",
        "4 if → 3 if": "With a gate you count three hidden tensors. f keeps its input, the product keeps f's result "
        "and up's, and down keeps the product: four.",
        "x + hidden → 2 * x + hidden": "You count the result of the layer. It is added to the residual stream, and an "
        "addition keeps nothing.",
        "x + hidden → (1 + gated) * x + hidden": "With a gate you count the layer's input twice. Gate and up read the "
        "same tensor, so it is kept once.",
        "p * d_ff → p * 4 * D": "You take the hidden layer as 4·D wide. Its width is given: d_ff.",
        "4 if gated else 2 → 1": "You count one hidden tensor, with or without a gate. Count every hidden tensor that "
        "an operation keeps.",
        "4 if gated else 2 → 5 if gated else 3": "You count one hidden tensor too many. Which of the operations needs "
        "it?",
        "4 if → 5 if": "With a gate you count five hidden tensors. The product's result is kept once, as the input of "
        "down: four in all.",
        "p * d_ff → p * (2 * d_ff // 3 if gated else d_ff)": "You make a gated layer narrower than d_ff. It is d_ff "
        "wide, as given.",
        "4 if gated else 2 → 5 if gated else 3 ;; x + hidden → 2 * x + hidden": "You count every tensor. Count only "
        "the tensors that the backward pass reads.",
        "(x + hidden + mask) → 19 * D": "That is 19·BSD, for 16 bits, d_ff = 4·D and no gate. Use p, d_ff and `gated`.",
        "p * D, p * d_ff → 2 * D, 2 * d_ff": "You ignore `p`. Numbers take p bytes; only the mask always takes 1.",
        "4 if gated else 2 → 4 if gated else 1": "Without a gate you count one hidden tensor. GELU keeps its input, "
        "and down keeps GELU's result.",
    },
)


@mlp_activations.variant
def per_number(B: int, S: int, D: int, d_ff: int, p: int = 2, gated: bool = False) -> np.int64:
    shapes = np.array([[B, S, D], [B, S, d_ff], [B, S, D]], dtype=np.int64)
    return np.int64(shapes.prod(axis=1) @ np.array([p, p * (2 + 2 * gated), 1]))


@mlp_activations.variant
def through_the_ratio(B: int, S: int, D: int, d_ff: int, p: int = 2, gated: bool = False) -> float:
    E = d_ff / D
    tokens_and_features = B * S * D
    if gated:
        return tokens_and_features * (4 * E * p + p + 1)
    return tokens_and_features * (2 * E * p + p + 1)
