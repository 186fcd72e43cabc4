"""The exercise on the memory of each device when several devices divide every matrix."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain
from random import Random

import numpy as np

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.recipes import find_recipe
from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.models.zoo.styles import gpt_like

MIXED = find_recipe("mixed")

Sizes = dict[str, float]


def _tensor_parallel(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> Sizes:
    if A % T:
        raise ValueError(f"{T} devices cannot share {A} heads evenly")
    model = gpt_like(L, D, A, vocab_size=1, context=S)
    states = MIXED.memory(N).total / T
    return {"states": states, "activations": korthikanti(model, B, S, tensor=T)}


def _part(part: str, name: str, *sizes: int) -> Case:
    """A case for one part, so that one mistake does not cost the points of both."""
    return script(f"{part}: {name}", f'tensor_parallel_bytes({", ".join(map(str, sizes))})["{part}"]')


def _both(name: str, *sizes: int) -> list[Case]:
    return [_part(part, name, *sizes) for part in ("states", "activations")]


def _tensor_parallel_cases(random: Random) -> list[Case]:
    def sizes(T: int) -> tuple[int, ...]:
        heads = T * random.randint(2, 9)
        layers, batch, length = random.randint(2, 40), random.randint(1, 9), random.randint(5, 999)
        return T, random.randrange(10**6 + 1, 10**9, 2), layers, batch, length, heads * random.randint(3, 9), heads

    T, N, L, B, S, D, A = sizes(4)
    return [
        *_both("other sizes", 4, 1001, 2, 3, 5, 24, 8),
        case("heads that cannot be shared", 8, 1000, 2, 3, 5, 32, 4),
        case("heads that cannot be shared", 4, 1000, 4, 4, 8, 24, 6),
        *chain.from_iterable(_both("other sizes", *sizes(T)) for T in (1, 2, 3, 8)),
        case("heads that cannot be shared", T + A, N, L, B, S, D, A),
    ]


tensor_parallel_bytes = Exercise(
    "tensor_parallel_bytes",
    points=3,
    minutes=8,
    difficulty=3,
    reference=_tensor_parallel,
    cases=[
        *_both("one device", 1, 1000, 3, 2, 5, 4, 2),
        _part("activations", "two devices", 2, 1000, 3, 2, 5, 4, 2),
        *_both("GPT-3 on 8, one text", 8, 175_000_000_000, 96, 1, 2048, 12_288, 96),
        _part("activations", "GPT-3 on 96, one text", 96, 175_000_000_000, 96, 1, 2048, 12_288, 96),
        *_both("8 devices, 1001 parameters", 8, 1001, 2, 3, 5, 24, 8),
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


@tensor_parallel_bytes.variant
def whole_and_shared(T: int, N: int, L: int, B: int, S: int, D: int, A: int) -> dict[str, float]:
    if A % T:
        raise ValueError(f"{T} devices cannot share {A} heads evenly")
    states = 18 * N / T
    norms, inputs, masks = 4 * D, 4 * D, 2 * D
    inside = 24 * D / T
    scores = 5 * A * S / T
    return {"activations": L * B * S * (norms + inputs + masks + inside + scores), "states": states}


tensor_parallel_bytes.slips(
    whole_and_shared,
    {
        "norms + inputs + masks → (norms + inputs + masks) / T": "You divide everything by T. Norms, their results "
        "and the dropout of each half need whole vectors on every device.",
        "24 * D / T → 24 * D ;; 5 * A * S / T → 5 * A * S": "Your activations do not depend on T. The activations "
        "inside each half are divided by T.",
        "5 * A * S / T → 5 * A * S": "You keep all scores on every device. Each device has its own heads, so it has "
        "A/T tables of scores.",
        "+ inputs → + inputs / T": "You divide the inputs of q, k, v and of up by T. Each device multiplies whole "
        "vectors by its columns.",
        "18 * N / T → 18 * N": "You keep all weights, gradients and optimizer states on each device, as in data "
        "parallelism. Here every matrix is divided.",
        "L * B → B": "You count the activations of one layer. The model has L of them.",
        "18 → 16": "A parameter takes 18 bytes in mixed precision. You count 16.",
        "+ masks → + masks / T": "You divide the dropout masks by T. Dropout comes after each half, where every "
        "device has whole vectors.",
        "18 * N / T → 18 * N // T": "You round the states. Bytes per device need not be a whole number.",
        "A % T → D % T": "You check whether T divides the width D. It must divide the number of heads: 8 divides 48, "
        "but not 12 heads.",
        '    if A % T:\n        raise ValueError(f"{T} devices cannot share {A} heads evenly")\n → ': "You accept a T "
        "that does not divide A. Heads cannot be cut: raise a ValueError.",
        'raise ValueError(f"{T} devices cannot share {A} heads evenly") → return {"states": 18 * N / T, '
        '"activations": 0.0}': "You accept a T that does not divide A. Heads cannot be cut: raise a ValueError.",
        "4 * D, 2 * D → 4 * D, 4 * D": "Your two masks take 2 bytes per number. True or false takes one.",
        "+ masks → ": "The two masks of dropout are missing. Every device has them as a whole.",
        "norms + inputs → inputs": "Four of the whole bytes per token and feature are missing: two inputs of norms "
        "take 4, and so do two inputs of the halves.",
        "24 * D / T → 24 * D": "You divide the scores alone. The other tensors inside each half are divided, too.",
        "24 * D / T → 22 * D / T": "One divided tensor of 2 bytes is missing: q, k, v and the input of the output "
        "matrix are four.",
        "24 * D / T → 16 * D / T": "Eight of the divided bytes per token and feature are missing: a hidden tensor "
        "takes 8, and so do q, k, v and the input of the output matrix together.",
        "A * S / T → A * S / T / T": "You divide the scores by T twice. Each device has A/T heads, with all pairs of "
        "tokens.",
        "5 * A * S / T → 5 * S / T": "You count the scores of one head. Each of the A heads has its own.",
        "5 * A * S / T → 4 * A * S / T": "The mask of the weights is missing: three tensors have a number for each "
        "head and pair, 2, 2 and 1 bytes.",
        "L * B → L": "You count the activations of one text. There are B.",
        "A % T → T % A": "You ask whether the heads divide the devices. T must divide A: A % T.",
        "A % T → N % T": "You ask whether T divides the parameters. It must divide the heads: a head cannot be cut.",
        "A % T → D // A % T": "You ask whether T divides the width of a head. It must divide the number of heads.",
        "18 * N / T → 16 * N + 2 * N / T": "You divide the weights alone. Each device keeps gradients and optimizer "
        "state of its own parts only.",
    },
)


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
