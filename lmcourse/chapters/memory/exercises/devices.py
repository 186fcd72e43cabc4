"""The exercise on the memory of each device when several devices divide every matrix."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.recipes import find_recipe
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.zoo.styles import gpt_like

MIXED = find_recipe("mixed-fp32-gradients")

Sizes = dict[str, float]


def _tensor_parallel(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> Sizes:
    if A % T:
        raise ValueError(f"{T} devices cannot share {A} heads evenly")
    model = gpt_like(L, D, A, vocab_size=1, context=S)
    states = MIXED.memory(N).total / T
    return {"states": states, "activations": korthikanti(model, B, S, tensor=T)}


def _tensor_parallel_cases(random: Random) -> list[Case]:
    def sizes(T: int) -> tuple[int, ...]:
        heads = T * random.randint(2, 9)
        layers, batch, length = random.randint(2, 40), random.randint(1, 9), random.randint(5, 999)
        return T, random.randrange(10**6 + 1, 10**9, 2), layers, batch, length, heads * random.randint(3, 9), heads

    T, N, L, B, S, D, A = sizes(4)
    return [
        case("states that are no whole number", 4, 1001, 2, 3, 5, 24, 8),
        case("heads that cannot be shared", 8, 1000, 2, 3, 5, 32, 4),
        case("heads that cannot be shared", 4, 1000, 4, 4, 8, 24, 6),
        *(case("other sizes", *sizes(T)) for T in (2, 3, 8)),
        case("one device", *sizes(1)),
        case("heads that cannot be shared", T + A, N, L, B, S, D, A),
    ]


tensor_parallel_bytes = Exercise(
    "tensor_parallel_bytes",
    points=3,
    minutes=8,
    difficulty=3,
    reference=_tensor_parallel,
    cases=[
        case("one device", 1, 1000, 3, 2, 5, 4, 2),
        case("two devices", 2, 1000, 3, 2, 5, 4, 2),
        case("GPT-3 on 8, one text", 8, 175_000_000_000, 96, 1, 2048, 12_288, 96),
        case("GPT-3 on 96, one text", 96, 175_000_000_000, 96, 1, 2048, 12_288, 96),
        case("8 devices, 1001 parameters", 8, 1001, 2, 3, 5, 24, 8),
        case("5 devices for 96 heads", 5, 1000, 96, 1, 2048, 12_288, 96),
        case("8 devices for 12 heads, d = 48", 8, 1000, 2, 3, 5, 48, 12),
    ],
    hidden_cases=_tensor_parallel_cases,
    hints=[
        "A device has whole token vectors before and after each half, and 1/T of everything inside: heads in "
        "attention, hidden numbers in the feed-forward layer.",
        "In bytes per token and feature, p = 2 and E = 4. Whole: two inputs of norms 4, two inputs of the halves 4, "
        "two masks 2. Divided: q, k, v 6, input of the output matrix 2, two hidden tensors 16.",
        "states: 18·N/T. activations: L·B·S·((10 + 24/T)·D + 5·A·S/T). And if A % T: raise ValueError.",
    ],
)


def _wrong_parallel(
    T: int,
    *sizes: int,
    whole: int = 10,
    shared: int = 24,
    scores: float | None = None,
    per_parameter: float = 18,
    copies: int = 1,
) -> Sizes:
    """The count with one mistake switched on; `copies` is the number of devices that hold all states."""
    N, L, B, S, D, A = sizes
    if A % T:
        raise ValueError("heads")
    tables = 5 / T if scores is None else scores
    activations = L * B * S * ((whole + shared / T) * D + tables * A * S)
    return {"states": per_parameter * N / T * copies, "activations": activations}


@tensor_parallel_bytes.misconception(
    "You divide everything by T. Norms, their results and the dropout of each half need whole vectors on every device."
)
def everything_shared(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, whole=0, shared=34)


@tensor_parallel_bytes.misconception(
    "Your activations do not depend on T. The activations inside each half are divided by T."
)
def nothing_shared(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, whole=34, shared=0, scores=5)


@tensor_parallel_bytes.misconception(
    "You keep all scores on every device. Each device has its own heads, so it has A/T tables of scores."
)
def whole_scores(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, scores=5)


@tensor_parallel_bytes.misconception(
    "You divide the inputs of q, k, v and of up by T. Each device multiplies whole vectors by its columns."
)
def shared_inputs(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, whole=6, shared=28)


@tensor_parallel_bytes.misconception(
    "You keep all weights, gradients and optimizer states on each device, as in data parallelism. Here every matrix is "
    "divided."
)
def whole_states(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, copies=T)


@tensor_parallel_bytes.misconception("You count the activations of one layer. The model has L of them.")
def one_layer(T: int, *sizes: int) -> Sizes:
    states, activations = _wrong_parallel(T, *sizes).values()
    return {"states": states, "activations": activations / sizes[1]}


@tensor_parallel_bytes.misconception("A parameter takes 18 bytes in mixed precision. You count 16.")
def sixteen(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, per_parameter=16)


@tensor_parallel_bytes.misconception(
    "You divide the dropout masks by T. Dropout comes after each half, where every device has whole vectors."
)
def shared_masks(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes, whole=8, shared=26)


@tensor_parallel_bytes.misconception("You round the states. Bytes per device need not be a whole number.")
def whole_bytes(T: int, *sizes: int) -> Sizes:
    return _wrong_parallel(T, *sizes) | {"states": 18 * sizes[0] // T}


@tensor_parallel_bytes.misconception(
    "You check whether T divides the width D. It must divide the number of heads: 8 divides 48, but not 12 heads."
)
def width_divides(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> Sizes:
    if D % T:
        raise ValueError("width")
    return {"states": 18 * N / T, "activations": L * B * S * ((10 + 24 / T) * D + 5 * A * S / T)}


@tensor_parallel_bytes.misconception("You accept a T that does not divide A. Heads cannot be cut: raise a ValueError.")
def heads_cut(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> Sizes:
    return _wrong_parallel(T, N, L, B, S, D, A) if A % T == 0 else {"states": 18 * N / T, "activations": 0.0}


@tensor_parallel_bytes.variant
def tensor_by_tensor(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> dict[str, float]:
    if A % T != 0:
        raise ValueError("the devices cannot share the heads evenly")
    stream, heads = B * S * D, A // T
    activations = 0.0
    for _ in range(L):
        activations += 2 * (2 * stream + 2 * stream + stream)  # inputs of norms, inputs of both halves, dropout masks
        activations += 4 * 2 * heads * B * S * (D // A) + 2 * 2 * B * S * (4 * D / T)
        activations += heads * B * S * S * (2 + 2 + 1)
    return {"activations": activations, "states": (2 + 4 + 4 + 4 + 4) * N / T}


@tensor_parallel_bytes.variant
def general_formula(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> dict[str, Fraction]:
    heads, rest = divmod(A, T)
    if rest:
        raise ValueError(f"{A} heads on {T} devices")
    p, E = 2, 4
    inside = 2 * B * L * S * D * (p * (2 + Fraction(E + 2, T)) + 1)
    return {"states": Fraction(18 * N, T), "activations": inside + heads * B * L * S**2 * (2 * p + 1)}


@tensor_parallel_bytes.variant
def shares_of_114(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> dict[str, np.float64]:
    if A not in range(0, A + 1, T):
        raise ValueError("the devices cannot share the heads evenly")
    whole = np.float64(34 * D + 5 * A * S) * L * B * S
    only_there = np.float64(24 * D + 5 * A * S) * L * B * S
    return {"states": np.float64(18 * N) / T, "activations": whole - only_there * (1 - 1 / T)}
