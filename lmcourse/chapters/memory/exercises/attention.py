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
    minutes=7,
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


@attention_activations.variant
def vectors_and_scores(B: int, S: int, D: int, A: int, p: int = 2) -> int:
    vectors = B * S * D
    scores = B * A * S * S
    x = q = k = v = mixed = p * vectors
    softmax = dropped = p * scores
    masks = vectors + scores
    return x + q + k + v + mixed + softmax + dropped + masks


attention_activations.slips(
    vectors_and_scores,
    {
        " + masks → ": "The masks of dropout are missing: one byte for each number that it may drop.",
        "dropped + masks → dropped + p * masks": "Your masks take p bytes per number. True or false takes one byte.",
        "+ masks → + masks // 8": "You count one bit for a number of a mask. PyTorch keeps true or false in a byte.",
        "q + k + v → (q + k) // A + v": "Your queries and keys are as wide as one head. All heads together are D wide.",
        "B * A * S → B * S": "You count one score matrix. Every head has its own: S² numbers for each of the A heads.",
        "q + k + v → A * (q + k + v)": "You multiply q, k and v by the number of heads. All heads together are as "
        "wide as the model: D.",
        "B * A * S * S → A * (B * S) ** 2": "Your scores grow with (B·S)². Tokens of different texts do not look at "
        "each other: B·S².",
        "return x → return 3 * x": "You count one input each for q, k and v. They share one input, and a tensor that "
        "three products keep is stored once.",
        "softmax + dropped → softmax": "One tensor of A·B·S² is missing: softmax keeps its result, and the product "
        "with v keeps the weights after dropout.",
        "v + mixed → v": "One tensor of p·BSD is missing. There are five: the input, q, k, v and the input of the "
        "output matrix.",
        "+ mixed → + 2 * mixed": "One tensor of p·BSD is too many. The norm's input belongs to the norm, and the "
        "result of the layer is not kept.",
        "q + k + v → q": "Two tensors of p·BSD are missing: the products of scores and of weights with v keep q, k "
        "and v as well.",
        "A * S * S → A * S": "Your scores grow with S. They have a number for each *pair* of tokens: S².",
        "softmax + dropped → 2 * softmax + dropped": "One tensor of A·B·S² is too many. The scores before softmax are "
        "not kept: its derivative needs the result only.",
        "vectors + scores → scores": "The mask of the result is missing: there is dropout after the output matrix as "
        "well.",
        "vectors + scores → vectors": "The mask of the weights is missing: one byte for each head and pair of tokens.",
        "vectors + scores → vectors + p * scores": "Your mask of the weights takes p bytes per number. True or false "
        "takes one byte.",
        "vectors + scores → p * vectors + scores": "Your mask of the result takes p bytes per number. True or false "
        "takes one byte.",
        "p * vectors → vectors ;; p * scores → scores": "You count numbers, not bytes: a number takes p bytes, a mask "
        "entry one.",
        "p * vectors → 2 * vectors ;; p * scores → 2 * scores": "You ignore `p`. Numbers take p bytes; only the two "
        "masks always take 1.",
        "S * S → S * (S + 1) // 2": "You count only the pairs that a causal mask lets through. The mask changes "
        "scores, but the tensors still have a number for every pair.",
        "S * S → S * S // 2": "You count half of the scores. A causal mask hides the other half, but hidden scores "
        "are computed and kept, too.",
        "B * A → A": "Your scores are those of one text. Each of the B texts has its own.",
        "B * S * D → S * D": "Your token vectors are those of one text. There are B texts.",
        "B * S * D → B * S * D // A": "Your token vectors are as wide as one head. All heads together are D wide.",
        "vectors + scores → 2 * vectors + scores": "You count a second mask of B·S·D. Dropout works on the weights "
        "and on the result: A·B·S² and B·S·D.",
        "return x + q + k + v + mixed → return x + mixed": "Three tensors of p·BSD are missing: q, k and v.",
    },
)


@attention_activations.variant
def dot_product_of_floats(B: int, S: int, D: int, A: int, p: int = 2) -> float:
    numbers = np.array([B * S * D, A * B * S**2], dtype=np.float64)
    return float(numbers @ np.array([5 * p + 1.0, 2 * p + 1.0]))


attention_activations.slips(
    dot_product_of_floats,
    {
        "S**2 → S**2 / 2": "You count half of the scores. A causal mask hides the other half, but hidden scores are "
        "computed and kept, too.",
    },
)
