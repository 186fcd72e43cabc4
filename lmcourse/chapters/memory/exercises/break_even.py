"""The exercise on the batch size from which mixed precision takes less memory."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.accounting.activation_rules import break_even_batch
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.zoo.styles import gpt_like


def _min_batch(D: int, A: int, S: int, E: int = 4) -> float:
    model = gpt_like(1, D, A, vocab_size=1, context=S, feed_forward={"width": E * D})
    return break_even_batch(model, S)


def _min_batch_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, int, int]:
        heads = random.randint(2, 40)
        return heads * random.randint(4, 99), heads, random.randint(10, 9999)

    return [
        case("one head", 12, 1, 5),
        case("a single token", 12, 3, 1),
        case("other widths of the feed-forward layer", 12, 3, 5, E=1),
        case("other widths of the feed-forward layer", 12, 3, 5, E=8),
        *(case("other sizes", *sizes()) for _ in range(3)),
        *(case("other widths of the feed-forward layer", *sizes(), E=E) for E in (2, random.randint(5, 9))),
    ]


min_batch_for_mixed = Exercise(
    "min_batch_for_mixed",
    points=2,
    minutes=6,
    difficulty=3,
    reference=_min_batch,
    cases=[
        case("d = 8, 2 heads, 4 tokens", 8, 2, 4),
        case("GPT-NeoX-20B, 2048 tokens", 6144, 64, 2048),
        case("GPT-3, 2048 tokens", 12_288, 96, 2048),
        case("GPT-3, 100,000 tokens", 12_288, 96, 100_000),
        case("d_ff = 2 d", 8, 2, 4, E=2),
    ],
    hidden_cases=_min_batch_cases,
    hints=[
        "Take one layer. Its matrices have (4 + 2·E)·D² parameters, and each costs 2 bytes more. How many bytes does "
        "each text save?",
        "What a layer keeps of one text, at p = 4 and at p = 2: attention, the feed-forward layer with d_ff = E·D, and "
        "the inputs of two norms. The difference is what each text saves.",
        "2·(4 + 2·E)·D² / (4·S·D·(E + 4) + 4·A·S²). With E = 4 that is 6·D² / (8·D·S + A·S²).",
    ],
    uses=["attention_activations", "mlp_activations"],
)


min_batch_for_mixed.equivalent_mutant(
    "return attention_activations(1, S, D, A, p) + mlp_activations(1, S, D, E * D, p) + 2 * p * S * D → "
    "return attention_activations(1, S, D, A, p) + mlp_activations(S, 1, D, E * D, p) + 2 * p * S * D",
    "A feed-forward layer sees tokens, B·S of them: which texts they belong to makes no difference.",
)


@min_batch_for_mixed.variant
def paid_and_saved(D: int, A: int, S: int, E: int = 4) -> float:
    def kept(p: int) -> int:
        attention = S * D * (5 * p + 1) + A * S**2 * (2 * p + 1)
        feed_forward = S * D * (p + 2 * E * p + 1)
        norms = 2 * S * D * p
        return attention + feed_forward + norms

    parameters = (4 + 2 * E) * D**2
    paid = (18 - 16) * parameters
    saved = kept(4) - kept(2)
    return paid / saved


min_batch_for_mixed.slips(
    paid_and_saved,
    {
        "2 * p + 1 → 5 * p - 5": "You save 10 bytes for each head and pair of tokens, 15 − 5. It is 9 − 5 = 4.",
        "4 + 2 * E → 2 * E": "A layer has attention's four matrices, too: (4 + 2·E)·D², not 2·E·D².",
        "4 + 2 * E → 4 + E": "A feed-forward layer has two matrices, up and down: 2·E·D² parameters, not E·D².",
        " + norms → ": "The inputs of the norms are missing: they are halved too, 4·S·D bytes a layer.",
        "(18 - 16) * parameters → parameters": "You pay 1 byte more for each parameter. Mixed precision costs 18 − 16 "
        "= 2.",
        "18 - 16 → 18": "You pay 18 bytes for each parameter. Only the difference matters: 18 − 16 = 2.",
        " - kept(2) → ": "You save all activations. Mixed precision still keeps its own; only the difference counts.",
        "paid / saved → saved / paid": "Your quotient is upside down. Divide the bytes paid by the bytes that each "
        "text saves.",
        " + A * S**2 * (2 * p + 1) → ": "The scores are missing: A·S² numbers are halved as well.",
        "paid / saved → paid / saved * S": "You return a number of tokens. Divide by S: a batch is counted in texts.",
        "4 + 2 * E → 12 ;; 2 * E * p → 8 * p": "E is not used: your formula is for d_ff = 4·d only.",
        "4 + 2 * E → 12": "You count 12·D² parameters. The feed-forward layer has 2·E·D² of them, so that holds for E "
        "= 4 only.",
        "2 * E * p → 8 * p": "Your parameters use E, but your activations are those of d_ff = 4·d.",
        "kept(4) - kept(2) → kept(4) / 2": "You halve the masks, too. They take 1 byte per number in both precisions.",
        "4 + 2 * E → 4 ;;  + feed_forward + norms → ": "You count attention alone. A layer has a feed-forward layer "
        "and two norms as well.",
    },
)


@min_batch_for_mixed.variant
def line_through_two_batches(D: int, A: int, S: int, E: int = 4) -> Fraction:
    """Divide the extra bytes of mixed precision for states by the bytes that it saves per text."""

    def more(batch: int) -> int:
        parameters = (4 + 2 * E) * D * D
        fp32 = 16 * parameters + batch * S * (D * (8 * E + 34) + A * S * 9)
        return 18 * parameters + batch * S * (D * (4 * E + 18) + A * S * 5) - fp32

    return Fraction(more(0), more(0) - more(1))


@min_batch_for_mixed.variant
def solved(D: int, A: int, S: int, E: int = 4) -> np.float64:
    """Solve two equations: bytes = states + batch · activations."""
    parameters = (4.0 + 2 * E) * D**2
    fp32, mixed = ((2 * p * (E + 4) + 2) * D * S + (2 * p + 1) * A * S**2 for p in (4, 2))
    _, batch = np.linalg.solve(np.array([[1.0, -fp32], [1.0, -mixed]]), np.array([16.0, 18.0]) * parameters)
    return np.float64(batch)
