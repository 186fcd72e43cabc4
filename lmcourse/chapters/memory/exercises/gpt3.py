"""The exercise on the memory that training GPT-3 takes."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.chapters.memory.exercises.devices import MIXED, Sizes
from lmcourse.chapters.memory.gpt3 import gpt_3, gpt_3_parameters
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.units import GIB

BLOCKS = 12 * 96 * 12_288**2
"""Parameters of the blocks, without embeddings."""


def _gpt3(B: int, S: int, T: int = 1) -> Sizes:
    states = state_memory(gpt_3_parameters(), MIXED, Layout(tensor=T))
    optimizer = states["master weights"] + states["optimizer moments"]
    sizes = {"weights": states["weights"], "gradients": states["gradients"], "optimizer": optimizer}
    return {part: size / GIB for part, size in sizes.items()} | {
        "activations": korthikanti(gpt_3(), B, S, tensor=T) / GIB
    }


def _gpt3_cases(random: Random) -> list[Case]:
    return [
        case("other devices", 3, 700, T=3),
        case("other devices", 2, 1000, T=96),
        case("other lengths", 1, 1),
        case("other batches", random.randint(2, 99), 2048),
        case("other lengths", 1, random.randint(100, 2000)),
        case("other devices", random.randint(1, 9), random.randint(100, 2000), T=random.choice([2, 4, 16])),
        case("other devices", 1, 2048, T=random.choice([3, 6, 12])),
    ]


gpt3_case = Exercise(
    "gpt3_case",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_gpt3,
    cases=[
        case("one text of 2048 tokens", 1, 2048),
        case("a batch of 8", 8, 2048),
        case("870 tokens", 1, 870),
        case("one text, on 8 devices", 1, 2048, T=8),
    ],
    hidden_cases=_gpt3_cases,
    hints=[
        "Count N first, with the embeddings. You know the bytes per parameter, and your function from exercise 9 gives "
        "what one of T devices keeps.",
        "A GiB is 2**30 bytes. Check one number in your head: 2 bytes for each of 175 billion are 350 GB.",
        "The states are those of state_bytes(N, 'mixed'), over T. The activations are in the result of "
        "tensor_parallel_bytes(T, N, L, B, S, D, A).",
    ],
    uses=["state_bytes", "tensor_parallel_bytes"],
)
gpt3_case.equivalent_mutant(
    "sizes['activations'] = tensor_parallel_bytes(T, N, L, B, S, D, A)['activations'] → "
    "sizes['activations'] = tensor_parallel_bytes(T, N, B, L, S, D, A)['activations']",
    "Layers and texts multiply the activations alike.",
)


def _scaled(sizes: Sizes, factor: float, *parts: str) -> Sizes:
    """The sizes, with these parts (or all) multiplied."""
    return {part: size * (factor if part in parts or not parts else 1) for part, size in sizes.items()}


STATES = ("weights", "gradients", "optimizer")


@gpt3_case.misconception(
    "Your states are half as large as they should be. A parameter takes 2, 4 and 12 bytes, not 1, 2 and 6."
)
def half_the_bytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 0.5, *STATES)


@gpt3_case.misconception("You return TiB, 2⁴⁰ bytes. A GiB is 2³⁰.")
def tebibytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 2**-10)


@gpt3_case.misconception("You return GB, 10⁹ bytes. A GiB is 2³⁰.")
def gigabytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), GIB / 10**9)


@gpt3_case.misconception("You leave out the embeddings of tokens and positions. They are 0.37 % of the parameters.")
def blocks_only(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), BLOCKS / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("You keep the whole embeddings on each device. They are divided as well.")
def whole_embeddings(B: int, S: int, T: int = 1) -> Sizes:
    embeddings = gpt_3_parameters() - BLOCKS
    return _scaled(_gpt3(B, S, T), (BLOCKS + embeddings * T) / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("Your states do not depend on T: each device holds 1/T of them.")
def states_not_divided(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), T, *STATES)


@gpt3_case.misconception("You divide all activations by T. Norms and dropout work on whole vectors on every device.")
def activations_divided(B: int, S: int, T: int = 1) -> Sizes:
    return _gpt3(B, S, T) | {"activations": _gpt3(B, S)["activations"] / T}


@gpt3_case.misconception("Your learned positions depend on S. GPT-3 has 2048 of them, even for a shorter text.")
def as_many_positions_as_tokens(B: int, S: int, T: int = 1) -> Sizes:
    fewer = 1 - (2048 - S) * 12_288 / gpt_3_parameters()
    return _scaled(_gpt3(B, S, T), fewer, *STATES)


@gpt3_case.misconception("That is one layer's worth of activations. GPT-3 has 96.")
def one_of_96_layers(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 1 / 96, "activations")


@gpt3_case.misconception(
    "You round N to 175 billion. Count it: 12·L·D², and embeddings of V tokens and 2048 positions."
)
def rounded_parameters(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 175e9 / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("Your gradients take 2 bytes a parameter. Here they are summed in fp32: 4 bytes.")
def gradients_in_16_bits(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 0.5, "gradients")


@gpt3_case.misconception("The learned positions are missing: 2048 vectors of D numbers.")
def no_positions(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 1 - 2048 * 12_288 / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("Your optimizer takes 8 bytes a parameter. The master weights belong to it: 4 more.")
def no_master_weights(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 8 / 12, "optimizer")


@gpt3_case.misconception("You return bytes. Divide by 2³⁰ for GiB.")
def bytes_for_gib(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), GIB)


@gpt3_case.misconception("You count the head as a second matrix. N has V·D once: GPT-3's head is its embedding.")
def untied_head(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 1 + 50_257 * 12_288 / gpt_3_parameters(), *STATES)


@gpt3_case.misconception(
    "You count the vocabulary twice, for embedding and head, and no positions. N has V vectors for tokens and 2048 for "
    "positions."
)
def head_for_positions(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), (BLOCKS + 2 * 50_257 * 12_288) / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("Your activations are those of one text. There are B texts.")
def one_text(B: int, S: int, T: int = 1) -> Sizes:
    return _gpt3(B, S, T) | {"activations": _gpt3(1, S, T)["activations"]}


@gpt3_case.misconception(
    "You divide the activations by T twice. What tensor_parallel_bytes returns is for one device already."
)
def activations_divided_twice(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 1 / T, "activations")


WITH_BIASES = 1 + (13 * 96 + 2) * 12_288 / gpt_3_parameters()
"""N with the biases of all matrices and the scales and shifts of the norms."""


def _other_bytes(name: str, sentence: str, unit: float = 1, **factors: float) -> None:
    """Register another number of bytes per parameter, once with the right N and once with an N that counts biases and
    norms."""

    def without(B: int, S: int, T: int = 1) -> Sizes:
        return {part: size * factors.get(part, 1) * unit for part, size in _gpt3(B, S, T).items()}

    def with_biases(B: int, S: int, T: int = 1) -> Sizes:
        return _scaled(without(B, S, T), WITH_BIASES, *STATES)

    without.__name__, with_biases.__name__ = name, f"{name}_with_biases"
    gpt3_case.misconception(f"{sentence}.")(without)
    gpt3_case.misconception(f"{sentence}. You also count biases and norms in N.")(with_biases)


_other_bytes(
    "master_copy_in_the_weights",
    "You count the master copy among the weights, and the task has it in `optimizer`",
    weights=3,
    optimizer=2 / 3,
)
_other_bytes(
    "gigabytes_with_the_master_copy",
    "You count GB of 10⁹ bytes instead of GiB, and the master copy among the weights instead of in `optimizer`",
    GIB / 10**9,
    weights=3,
    optimizer=2 / 3,
)
_other_bytes(
    "twelve_bytes_a_parameter",
    "You give gradients 2 bytes and the optimizer 8: gradients are summed in fp32, and the optimizer has a master copy",
    gradients=1 / 2,
    optimizer=2 / 3,
)


@gpt3_case.misconception("You count N as 174.6 billion, rounded. Compute 12·L·D² and both embeddings exactly.")
def rounded_to_a_digit(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 174.6e9 / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("You take N as 175 billion and count GB of 10⁹ bytes. Count N, and divide by 2³⁰.")
def rounded_gigabytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_scaled(_gpt3(B, S, T), 175e9 / gpt_3_parameters(), *STATES), GIB / 10**9)


@gpt3_case.misconception(
    "Your states are those of fp32: 4, 4 and 8 bytes a parameter. In mixed precision they are 2, 4 and 12."
)
def fp32_states(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_scaled(_gpt3(B, S, T), 2, "weights"), 8 / 12, "optimizer")


@gpt3_case.misconception("You count GB of 10⁹ bytes, and gradients of 2 bytes. Use GiB, and gradients in fp32.")
def gigabytes_and_16_bit_gradients(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_scaled(_gpt3(B, S, T), 0.5, "gradients"), GIB / 10**9)


def _activations(name: str, sentence: str, whole: int, shared: int, whole_scores: int, scores: int) -> None:
    """Register other bytes of activations: whole or divided by T, per token and feature, and per head and pair."""

    def other(B: int, S: int, T: int = 1) -> Sizes:
        per_token = 12_288 * (whole + shared / T) + 96 * S * (whole_scores + scores / T)
        return _gpt3(B, S, T) | {"activations": 96 * B * S * per_token / GIB}

    other.__name__ = name
    gpt3_case.misconception(sentence)(other)


_activations(
    "activations_whole",
    "Your activations do not depend on T. What is inside attention and feed-forward layer is divided by T.",
    *(34, 0, 5, 0),
)
_activations(
    "scores_whole",
    "You keep the scores of all heads on every device. Each device has 1/T of the heads, so it has 1/T of the scores.",
    *(10, 24, 5, 0),
)
_activations(
    "no_scores",
    "You leave the scores out of the activations: 5 bytes for each head and pair of tokens.",
    *(10, 24, 0, 0),
)
_activations(
    "activations_in_fp32",
    "You count activations of 4 bytes a number. In mixed precision they have 2, and masks 1.",
    *(18, 48, 0, 9),
)


@gpt3_case.misconception("You count biases and norms in N. Here N is 12·L·D² and both embeddings.")
def biases_and_norms(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), WITH_BIASES, *STATES)


@gpt3_case.variant
def all_in_one(B: int, S: int, T: int = 1) -> dict[str, float]:
    N = 12 * 96 * 12288**2 + 52305 * 12288
    gib = 1024**3
    activations = 96 * B * S * (10 * 12288 + (24 * 12288 + 5 * 96 * S) / T)
    return {
        "weights": 2 * N / T / gib,
        "gradients": 4 * N / T / gib,
        "optimizer": 12 * N / T / gib,
        "activations": activations / gib,
    }


@gpt3_case.variant
def exactly(B: int, S: int, T: int = 1) -> dict[str, Fraction]:
    N = sum(4 * 12288 * 12288 + 2 * 12288 * 4 * 12288 for _ in range(96)) + (50257 + 2048) * 12288
    share = Fraction(1, T * 2**30)
    sizes = {part: each * N * share for part, each in (("weights", 2), ("gradients", 4), ("optimizer", 4 + 4 + 4))}
    numbers = 10 * T * 12288 + 24 * 12288 + 5 * 96 * S
    return {**sizes, "activations": 96 * B * S * numbers * share}


@gpt3_case.variant
def by_scaling(B: int, S: int, T: int = 1) -> dict[str, np.float64]:
    """Compute the weights, then the other states by their ratios to them, and the activations per token."""
    weights = np.float64(2 * (12 * 96 * 12_288**2 + (50_257 + 2048) * 12_288)) / T / 2**30
    token = np.float64(96) / 2**30 * (122_880 + 294_912 / T + 480 / T * S)
    return {"weights": weights, "gradients": 2 * weights, "optimizer": 6 * weights, "activations": B * S * token}
