"""The exercise on the number of learned numbers in a recurrent language model."""

from __future__ import annotations

from random import Random

from torch import nn

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _counted(v: int, e: int, d: int) -> int:
    """Count on torch's modules. nn.RNN has two biases and does not learn the first state, which has as many numbers."""
    parts = nn.Embedding(v, e, device="meta"), nn.RNN(e, d, device="meta"), nn.Linear(d, v, device="meta")
    return sum(weight.numel() for part in parts for weight in part.parameters())


def _hidden(random: Random) -> list[Case]:
    fixed = [(1, 1, 1), (7, 3, 3), (3, 7, 2), (2, 5, 9), (32_001, 513, 1023), (1, 4, 2), (50, 1, 1)]
    cases = [case("other sizes", *sizes) for sizes in fixed]
    cases += [case("billions", 400_000, 3_000, 5_000), case("billions", 1_000_000, 4_096, 2_048)]
    return cases + [case("other sizes", *random.sample(range(2, 3000), 3)) for _ in range(3)]


rnn_parameters = Exercise(
    "rnn_parameters",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_counted,
    cases=[
        case("five words", 5, 2, 3),
        case("ten thousand words", 10_000, 128, 512),
        case("a word as wide as the state", 11, 4, 4),
    ],
    hidden_cases=_hidden,
    hints=[
        "Go through the arguments of rnn_probabilities, except the tokens, and write down the shape of each.",
        "E has e · v numbers, W_h has d · d, W_e has d · e, U has v · d. And the vectors?",
        "b1 and h0 have d numbers each, b2 has v.",
    ],
)


@rnn_parameters.variant
def part_by_part(v: int, e: int, d: int) -> int:
    table = e * v
    step = d * d + d * e + d
    head = v * d + v
    first_state = d
    return table + step + head + first_state


rnn_parameters.slips(
    part_by_part,
    {
        "table + step → step ;;  + first_state → ": "E is missing, and so are d numbers, most often h0. Both are "
        "learned, and E is large.",
        " + first_state → ": "d numbers are missing: most often the first state, which is learned as well.",
        "table + step → step ;; d * e → d * v": "You have no table E, and W_e reads one-hot words. E turns a word into "
        "e numbers, and W_e those into d.",
        "table + step → step": "The embedding is missing: a vector of e numbers for each word.",
        "v * d + v → v * d": "The head's bias b₂ is missing: one number for each word.",
        "d * e + d → d * e ;; v * d + v → v * d ;;  + first_state → ": "You count weights only. There are two biases, "
        "of d and of v numbers, and the first state.",
        "d * e + d → d * e ;; v * d + v → v * d": "d + v numbers are missing: most often the biases b₁ and b₂. h0 has "
        "d numbers, too, and all three are learned.",
        "v * d + v → v * d + d": "You count d numbers for b₂. It has one for each word.",
        "d * e + d → d * e + 2 * d": "You count d numbers too many. The step has one bias of d numbers, b₁, where "
        "nn.RNN has two.",
        "d * e → d * d": "You count W_e as square. It turns the e numbers of a word into d.",
        "v * d + v → v": "U is missing. The head has its own weights here; it does not share E.",
        "v * d + v → v * e + v": "You count e numbers a word for U. It reads the state, of d numbers.",
    },
)
