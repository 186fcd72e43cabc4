"""The exercise on the activations of a whole model."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from random import Random

from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def total_bytes(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return sum(tensor.size for _ in range(L) for tensor in tensors_saved_by_block(B, S, D, A, E * D, p))


def _total_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, ...]:
        heads = random.randint(2, 9)
        layers, batch, length = random.randint(2, 40), random.randint(2, 9), random.randint(5, 99)
        return layers, batch, length, heads * random.randint(3, 9), heads

    return [
        case("other widths of the feed-forward layer", 2, 3, 5, 12, 3, E=1, p=4),
        case("other widths of the feed-forward layer", 2, 3, 5, 12, 3, E=8, p=8),
        case("other precisions", 2, 3, 5, 12, 4, p=1),
        case("other sizes", *sizes()),
        case("other precisions", *sizes(), p=4),
        case("other precisions", *sizes(), p=8),
        case("other widths of the feed-forward layer", *sizes(), E=random.choice([2, 3])),
        case("other widths of the feed-forward layer", *sizes(), E=random.choice([6, 8]), p=4),
    ]


total_activations = Exercise(
    "total_activations",
    points=2,
    minutes=5,
    difficulty=2,
    reference=total_bytes,
    cases=[
        case("one layer, one token, one number wide", 1, 1, 1, 1, 1),
        case("3 layers, 2 texts of 5 tokens, d = 4, 2 heads", 3, 2, 5, 4, 2),
        case("the same in fp32", 3, 2, 5, 4, 2, p=4),
        case("the same with d_ff = 2 d", 3, 2, 5, 4, 2, E=2),
        case("GPT-3, one text", 96, 1, 2048, 12_288, 96),
    ],
    hidden_cases=_total_cases,
    hints=[
        "A layer is attention, a feed-forward layer with d_ff = E·D, and two norms that keep their inputs. And there "
        "are L layers.",
        "L · (attention_activations(...) + mlp_activations(...) + 2·p·B·S·D).",
        "Or in one go: 2·B·L·S·D·(p·(E + 4) + 1) + A·B·L·S²·(2p + 1).",
    ],
    uses=["attention_activations", "mlp_activations"],
)
total_activations.equivalent_mutant(
    "layer = attention_activations(B, S, D, A, p) + mlp_activations(B, S, D, E * D, p) → "
    "layer = attention_activations(B, S, D, A, p) + mlp_activations(S, B, D, E * D, p)",
    "A feed-forward layer sees tokens, B·S of them: which texts they belong to makes no difference.",
)


def _wrong_total(
    L: int,
    B: int,
    S: int,
    D: int,
    A: int,
    E: int,
    p: int,
    *,
    streams: int = 8,
    masks: int = 2,
    scores: int | None = None,
) -> int:
    tables = 2 * p + 1 if scores is None else scores
    return B * L * S * D * (p * (streams + 2 * E) + masks) + A * B * L * S * S * tables


@total_activations.misconception(
    "Your scores take 15·A·S in fp32. It is 2p + 1, and with p = 4 that is 9: two tensors of 4 bytes and a mask of 1."
)
def fifteen(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return _wrong_total(L, B, S, D, A, E, p, scores=4 * p - 1 if p > 2 else 5)


@total_activations.misconception("That is one layer. The model has L of them.")
def per_layer(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return total_bytes(1, B, S, D, A, E, p)


@total_activations.misconception(
    "The inputs of the two norms are missing. That is the difference between 14 and 16 numbers a token and feature."
)
def norms_forgotten(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return _wrong_total(L, B, S, D, A, E, p, streams=6)


@total_activations.misconception(
    "Your layer has one norm. There is one before attention and one before the other half."
)
def one_norm(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return _wrong_total(L, B, S, D, A, E, p, streams=7)


@total_activations.misconception(
    "Your norms keep 2 bytes a number whatever p is: a token's vector before a norm takes p·D bytes, too."
)
def norms_in_16_bits(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return total_bytes(L, B, S, D, A, E, p) - 2 * (p - 2) * B * L * S * D


@total_activations.misconception(
    "You keep the two sums of the residual stream, too. A sum needs nothing to go backward."
)
def sums_kept(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return _wrong_total(L, B, S, D, A, E, p, streams=10)


@total_activations.misconception("That is 34·D + 5·A·S whatever p is. It holds for p = 2 and E = 4 only.")
def always_16_bits(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return total_bytes(L, B, S, D, A, 4, 2)


@total_activations.misconception("The width of the feed-forward layer is not used: E is not always 4.")
def always_four(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return total_bytes(L, B, S, D, A, 4, p)


@total_activations.misconception("The masks of dropout are missing, all three of them.")
def no_masks(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return _wrong_total(L, B, S, D, A, E, p, masks=0, scores=2 * p)


@total_activations.misconception(
    "Those are the activations of one text, or of one batch of one. Every text of the batch keeps its own."
)
def one_text(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    return total_bytes(L, 1, S, D, A, E, p)


@total_activations.variant
def both_powers(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    lines = 2 * B * L * S * D * (p * (E + 4) + 1)
    squares = A * B * L * S**2 * (2 * p + 1)
    return lines + squares


@total_activations.variant
def layer_after_layer(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> int:
    token = [p * D] * 2 + [p * D] + [p * D] * 4 + [D] + [p * D] + [p * E * D] * 2 + [D]
    pairs = [p, p, 1]

    def one_more(total: int, layer: int) -> int:
        return total + B * S * sum(token) + B * A * S * S * sum(pairs)

    return reduce(one_more, range(L), 0)


@total_activations.variant
def corrected_from_34_and_5(L: int, B: int, S: int, D: int, A: int, E: int = 4, p: int = 2) -> Fraction:
    """From the rule for 16 bits and E = 4, what other precisions and widths add."""
    per_feature = 34 + 16 * (p - 2) + 2 * p * (E - 4)
    per_feature_and_more = per_feature + Fraction(5 + 2 * (p - 2)) * A * S / D
    return B * L * S * D * per_feature_and_more
