"""The exercise on the tensors that attention keeps for the backward pass."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _attention(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return sum(tensor.size for tensor in tensors_saved_by_block(B, S, D, A, 4 * D, p) if tensor.part == "attention")


def _attention_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, int, int, int]:
        heads = random.randint(2, 9)
        return random.randint(2, 9), random.randint(5, 99), heads * random.randint(3, 9), heads

    return [
        case("one head", 3, 5, 12, 1),
        case("other precisions", 3, 5, 12, 3, p=1),
        case("other precisions", 3, 5, 12, 4, p=8),
        case("other sizes", *sizes()),
        case("other sizes", *sizes()),
        case("other precisions", *sizes(), p=4),
        case("other precisions", *sizes(), p=8),
        case("long texts", random.randint(2, 9), random.randint(10**4, 10**5), 128, 8),
    ]


attention_activations = Exercise(
    "attention_activations",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_attention,
    cases=[
        case("one token, one number wide", 1, 1, 1, 1),
        case("2 texts of 3 tokens, d = 4, 2 heads", 2, 3, 4, 2),
        case("the same in fp32", 2, 3, 4, 2, p=4),
        case("a layer of GPT-3, one text", 1, 2048, 12_288, 96),
        case("the same text in two halves", 2, 1024, 12_288, 96),
    ],
    hidden_cases=_attention_cases,
    hints=[
        "Count two kinds of tensors: those with B·S·D numbers, and those with a number for each head and each pair of "
        "tokens, A·B·S².",
        "B·S·D: the input, q, k, v and the input of the output matrix, p bytes each, and a mask of 1 byte. A·B·S²: "
        "softmax's result and the weights after dropout, p bytes each, and a mask of 1 byte.",
        "B·S·((5p + 1)·D + (2p + 1)·A·S).",
    ],
)


def _wrong_attention(
    B: int, S: int, D: int, A: int, p: int, *, streams: int = 5, masks: int = 1, squares: int = 2, scores: int = 1
) -> int:
    """The byte count with wrong numbers of tensors."""
    return B * S * D * (streams * p + masks) + A * B * S * S * (squares * p + scores)


@attention_activations.misconception("The masks of dropout are missing: one byte for each number that it may drop.")
def no_masks(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, masks=0, scores=0)


@attention_activations.misconception("Your masks take p bytes per number. True or false takes one byte.")
def wide_masks(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, masks=p, scores=p)


@attention_activations.misconception(
    "You count one score matrix. Every head has its own: S² numbers for each of the A heads."
)
def one_head(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, 1, p)


@attention_activations.misconception(
    "You multiply q, k and v by the number of heads. All heads together are as wide as the model: D."
)
def heads_times_width(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _attention(B, S, D, A, p) + 3 * (A - 1) * p * B * S * D


@attention_activations.misconception(
    "Your scores grow with (B·S)². Tokens of different texts do not look at each other: B·S²."
)
def batch_squared(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _attention(B, S, D, A, p) + (2 * p + 1) * A * (B * B - B) * S * S


@attention_activations.misconception(
    "You count one input each for q, k and v. They share one input, and a tensor that three products keep is stored "
    "once."
)
def three_inputs(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, streams=7)


@attention_activations.misconception(
    "One tensor of A·B·S² is missing: softmax keeps its result, and the product with v keeps the weights after dropout."
)
def one_table(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, squares=1)


@attention_activations.misconception(
    "One tensor of p·BSD is missing. There are five: the input, q, k, v and the input of the output matrix."
)
def four_streams(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, streams=4)


@attention_activations.misconception(
    "One tensor of p·BSD is too many. The norm's input belongs to the norm, and the result of the layer is not kept."
)
def six_streams(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, streams=6)


@attention_activations.misconception(
    "Two tensors of p·BSD are missing: the products of scores and of weights with v keep q, k and v as well."
)
def three_streams(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, streams=3)


@attention_activations.misconception("Your scores grow with S. They have a number for each *pair* of tokens: S².")
def scores_of_one_token(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return B * S * ((5 * p + 1) * D + (2 * p + 1) * A)


@attention_activations.misconception(
    "One tensor of A·B·S² is too many. The scores before softmax are not kept: its derivative needs the result only."
)
def three_tables(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, squares=3)


@attention_activations.misconception(
    "The mask of the result is missing: there is dropout after the output matrix as well."
)
def no_mask_of_the_result(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, masks=0)


@attention_activations.misconception("The mask of the weights is missing: one byte for each head and pair of tokens.")
def no_mask_of_the_weights(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, scores=0)


@attention_activations.misconception("Your mask of the weights takes p bytes per number. True or false takes one byte.")
def wide_mask_of_the_weights(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, scores=p)


@attention_activations.misconception("Your mask of the result takes p bytes per number. True or false takes one byte.")
def wide_mask_of_the_result(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, p, masks=p)


@attention_activations.misconception("You count numbers, not bytes: a number takes p bytes, a mask entry one.")
def numbers_for_bytes(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _wrong_attention(B, S, D, A, 1)


@attention_activations.misconception("You ignore `p`. Numbers take p bytes; only the two masks always take 1.")
def always_two_bytes(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return _attention(B, S, D, A, 2)


@attention_activations.misconception(
    "You count only the pairs that a causal mask lets through. The mask changes scores, but the tensors still have a "
    "number for every pair."
)
def half_of_the_pairs(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    return B * S * D * (5 * p + 1) + A * B * S * (S + 1) // 2 * (2 * p + 1)


@attention_activations.variant
def tensor_by_tensor(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    d = D // A
    kept = {"x": (B * S * D, p), "mixed": (B * S * D, p), "mask of the result": (B * S * D, 1)}
    for name in "qkv":
        kept[name] = (B * A * S * d, p)
    for name, size in (("softmax", p), ("dropped", p), ("mask", 1)):
        kept[name] = (B * A * S * S, size)
    return sum(numbers * size for numbers, size in kept.values())


@attention_activations.variant
def text_after_text(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    total = 0
    for _ in range(B):
        for _ in range(A):
            total += S * S * p + S * S + S * S * p
        total += S * D * (1 + p + 3 * p + p)
    return total


@attention_activations.variant
def dot_product_of_floats(B: int, S: int, D: int, A: int, p: int = 2) -> float:
    numbers = np.array([B * S * D, A * B * S**2], dtype=np.float64)
    return float(numbers @ np.array([5 * p + 1.0, 2 * p + 1.0]))
