"""The exercise on size and compute by the definitions of Kaplan et al. (2020)."""

from __future__ import annotations

from itertools import chain
from random import Random

import numpy as np

from lmcourse.accounting.flop_rules import kaplan_forward, kaplan_parameters
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER
from lmcourse.models.zoo.styles import gpt_like


def _total(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    """Compute both numbers with the package's own count for a configuration of these sizes."""
    config = gpt_like(layers, d_model, 1, vocab_size=2, context=context, feed_forward={"width": d_ff}, d_head=d_attn)
    flops = kaplan_forward(config, context)
    return [kaplan_parameters(config), flops.total - flops["embed"] - flops["de-embed"]]


def _both(name: str, *sizes: int) -> list[Case]:
    """A case for each of the two numbers, so that one mistake does not cost the points of both."""
    call = f"kaplan_total({', '.join(map(str, sizes))})"
    return [script(f"{each}: {name}", f"{call}[{place}]") for place, each in enumerate(("N", "FLOPs"))]


def _cases(random: Random) -> list[Case]:
    def sizes(d_attn: int | None = None) -> list[int]:
        d_model = 16 * random.randint(8, 99)
        head = [random.randint(2, 60), d_model, d_attn or d_model]
        return [*head, random.randint(500, 9000), random.randint(100, 5000)]

    return [
        *_both("other models", 3, 10, 4, 30, 7),
        *_both("other models", 1, 16, 16, 24, 1),
        *chain.from_iterable(_both("other models", *sizes()) for _ in range(3)),
        *chain.from_iterable(_both("other models", *sizes(64 * random.randint(1, 40))) for _ in range(3)),
    ]


kaplan_total = Exercise(
    "kaplan_total",
    points=1,
    minutes=4,
    difficulty=1,
    reference=_total,
    cases=[
        *_both("a model for the back of an envelope", 2, 10, 10, 40, 100),
        *_both("attention twice as wide as the model", 2, 10, 20, 40, 100),
        *_both("a single layer, a single key", 1, 3, 5, 7, 1),
        *_both("GPT-2 XL", 48, 1600, 1600, 6400, 1024),
    ],
    hidden_cases=_cases,
    hints=[
        "Add up the weights of one layer: three matrices to d_attn, one back, two of the feed-forward layer.",
        "Each weight takes 2 FLOPs. Scores and values take 4 · d_attn for every key that the query sees.",
    ],
    forbid=NO_COUNTER,
)


@kaplan_total.variant
def matrix_by_matrix(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[int]:
    qkv, out = 3 * d_model * d_attn, d_attn * d_model
    feed_forward = 2 * d_model * d_ff
    parameters = layers * (qkv + out + feed_forward)
    pairs = layers * 4 * d_attn * context // 2
    return [parameters, 2 * parameters + pairs]


kaplan_total.slips(
    matrix_by_matrix,
    {
        "context // 2 → context": "You count all pairs of tokens. Under a causal mask a query sees half of the "
        "context.",
        "context // 2 → (context + 1) // 2": "The exact mean is (context + 1) / 2 keys. The paper takes context / 2: "
        "leave out the 1.",
        "4 * d_attn → 2 * d_attn": "You count one product per pair. A score takes 2 · d_attn FLOPs, and its product "
        "with a value takes as many.",
        " + pairs → ": "You leave out scores and values. They have no weights, but they take FLOPs.",
        "context // 2 → context**2 // 2": "You count the pairs of a whole text. A token is one query: it meets "
        "context / 2 keys.",
        "layers * 4 → 4": "You count scores and values of one layer. Every layer has them.",
        "layers * (qkv → (qkv ;; layers * 4 → 4": "You count one layer.",
        "3 * d_model → d_model": "Attention has four matrices: queries, keys, values and output. You count fewer.",
        "qkv + out → qkv": "One matrix of attention is missing, perhaps the last. Three go from d_model to d_attn, "
        "and one goes back.",
        "2 * d_model * d_ff → d_model * d_ff": "You count one matrix of the feed-forward layer. It has two, to d_ff "
        "and back.",
        "3 * d_model * d_attn, d_attn * d_model → 3 * d_model**2, d_model**2": "Your matrices of attention are "
        "d_model × d_model. Their other side is d_attn.",
        "2 * parameters → parameters": "You count one FLOP per parameter. Each weight takes a multiplication and an "
        "addition: 2 FLOPs per parameter and token.",
        "2 * parameters + pairs → 3 * (2 * parameters + pairs)": "That is training, three times as much. The paper's "
        "number is the forward pass.",
        "2 * parameters + pairs → context * (2 * parameters + pairs)": "You return the FLOPs of a whole text. Divide "
        "by `context` for one token.",
        "2 * parameters + pairs → 6 * parameters": "Your second number is 6 · N, the rule for training. Return the "
        "forward pass, including its pairs.",
        "context // 2 → (context // 2)": "You round context / 2 down. Half of an odd context is not a whole number: "
        "multiply first.",
        "3 * d_model * d_attn, d_attn * d_model → 3 * d_attn**2, d_attn**2": "Your matrices of attention are d_attn × "
        "d_attn. One of their sides is d_model.",
        "d_attn * d_model → d_model * d_model": "Your matrix back is d_model × d_model. It begins at d_attn.",
        "qkv + out + feed_forward → 12 * d_model**2": "You count 12 · d_model² per layer. That is right only if "
        "d_attn = d_model and d_ff = 4 · d_model.",
        "4 * d_attn → 4 * d_model": "A score is a dot product of d_attn numbers, all heads together. Yours has "
        "d_model.",
        "4 * d_attn → d_attn": "You count one FLOP for each number of a key. A score and its product with a value "
        "take 4 · d_attn per key.",
        "d_attn * context // 2 → d_attn": "You leave out the context. A query sees context / 2 keys on average.",
        "layers * (qkv → (qkv": "Your matrices are those of one layer. Every layer has them.",
        "2 * d_model * d_ff → 3 * d_model * d_ff": "You count three matrices of the feed-forward layer. It has two, "
        "to d_ff and back.",
        "2 * d_model * d_ff → 2 * d_attn * d_ff": "Your feed-forward layer starts from d_attn. It goes from d_model "
        "to d_ff and back.",
        "2 * d_model * d_ff → 8 * d_model**2": "Your feed-forward layer is 4 · d_model wide. Its width is given: d_ff.",
        "context // 2 → context * 2": "You count twice the context. A query sees half of it on average.",
    },
)


@kaplan_total.variant
def the_papers_formula(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> tuple[int, int]:
    N = 2 * d_model * layers * (2 * d_attn + d_ff)
    return N, 2 * N + 2 * layers * context * d_attn


@kaplan_total.variant
def with_an_array(layers: int, d_model: int, d_attn: int, d_ff: int, context: int) -> list[np.int64]:
    weights = layers * d_model * np.array([3 * d_attn, d_attn, 2 * d_ff], dtype=np.int64)
    return [weights.sum(), 2 * weights.sum() + np.int64(4 * layers * d_attn * context // 2)]
