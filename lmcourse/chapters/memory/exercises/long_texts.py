"""The exercise on the text length at which scores take more memory than all other tensors."""

from __future__ import annotations

from random import Random

from lmcourse.chapters.memory.block_tensors import tensors_saved_by_block
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def block_bytes(S: int, D: int, A: int, E: int, p: int) -> tuple[int, int]:
    """Bytes that a layer keeps for one text: in tensors with a number per pair of tokens, and in all others."""
    kept = tensors_saved_by_block(1, S, D, A, E * D, p)
    scores = sum(tensor.size for tensor in kept if "weights" in tensor.name or "softmax" in tensor.name)
    return scores, sum(tensor.size for tensor in kept) - scores


def _take_over(D: int, A: int, E: int = 4, p: int = 2) -> int:
    per_pair, per_token = block_bytes(1, D, A, E, p)
    return per_token // per_pair + 1


def _take_over_cases(random: Random) -> list[Case]:
    def sizes() -> tuple[int, int]:
        heads = random.randint(2, 40)
        return heads * random.randint(4, 99), heads

    return [
        case("exactly half", 15, 3, E=4, p=2),
        case("exactly half", 27, 3, E=2, p=4),
        case("one head", 128, 1),
        case("other widths of the feed-forward layer", 12, 3, E=1),
        case("other widths of the feed-forward layer", *sizes(), E=8, p=4),
        *(case("other sizes", *sizes()) for _ in range(3)),
        *(case("other precisions", *sizes(), E=random.randint(2, 6), p=p) for p in (1, 4, 8)),
    ]


scores_take_over = Exercise(
    "scores_take_over",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_take_over,
    cases=[
        case("d = 8, 2 heads", 8, 2),
        case("the same in fp32", 8, 2, p=4),
        case("the same with d_ff = 2 d", 8, 2, E=2),
        case("34 tokens are exactly half", 10, 2),
        case("GPT-2", 768, 12),
        case("GPT-3", 12_288, 96),
    ],
    hidden_cases=_take_over_cases,
    hints=[
        "A layer keeps attention, the feed-forward layer and two norms. Does it matter how many layers there are, or "
        "how many texts?",
        "Divide what a layer keeps by S. One part no longer depends on S; the other is proportional to S.",
        "Scores: A·S²·(2p + 1). All the rest: 2·S·D·(p·(E + 4) + 1). The smallest S at which the first is larger.",
    ],
    uses=["attention_activations", "mlp_activations"],
)


@scores_take_over.variant
def per_token_and_per_pair(D: int, A: int, E: int = 4, p: int = 2) -> int:
    attention = (5 * p + 1) * D
    feed_forward = (p + 2 * E * p + 1) * D
    norms = 2 * p * D
    rest = attention + feed_forward + norms
    pair = (2 * p + 1) * A
    return rest // pair + 1


scores_take_over.slips(
    per_token_and_per_pair,
    {
        "rest // pair + 1 → rest // pair": "At your length the scores do not take more than half yet. Return the next "
        "length.",
        "rest // pair + 1 → -(-rest // pair)": "The scores must take *more* than half. You stop at exactly half, one "
        "token too early.",
        "rest // pair + 1 → rest / pair": "You return a fraction. A length is a whole number of tokens: the smallest "
        "that is enough.",
        " + norms → ": "The inputs of the two norms are missing among the rest: 2·p·B·S·D.",
        "norms = 2 * p → norms = p": "You count one norm. A layer has two, and each keeps its input.",
        " + feed_forward + norms → ": "You compare with the rest of attention only. The feed-forward layer keeps more.",
        "rest // pair → 2 * rest // pair": "You compare the scores with twice the rest. More than half of the total "
        "means more than the rest.",
        "5 * p + 1 → 5 * p ;; 2 * E * p + 1 → 2 * E * p ;; (2 * p + 1) * A → 2 * p * A": "You leave out the masks: "
        "that of the weights and the two others, one byte per number.",
        "5 * p + 1 → 6 * p ;; p + 2 * E * p + 1 → 2 * p + 2 * E * p ;; 2 * p + 1 → 3 * p": "Your masks take p bytes a "
        "number. A mask takes one byte, whatever p is.",
        "rest // pair → 34 * D // (5 * A)": "You always use 34·D / (5·A). It is right only for p = 2 and E = 4.",
        "2 * E * p → 8 * p": "You ignore E. The hidden layer is E·D wide, not always 4·D.",
        "attention = → p = 2\n    attention =": "You ignore p. Numbers take p bytes; only the masks always take 1.",
        "(2 * p + 1) * A → 2 * p + 1": "You count one score matrix. Each of the A heads has its own S² scores.",
        "(2 * p + 1) * A → 2 * p * A": "Your scores have two tensors. There is a third with a number for each head "
        "and pair: the mask, 1 byte each.",
        " + feed_forward → ": "The feed-forward layer is missing among the rest.",
        "rest // pair → rest // (2 * pair)": "At your length the scores are a third of the total, half as much as the "
        "rest. They should be more than the rest.",
    },
)
