"""The exercise on the largest case of the notes: what GPT-3 takes to train."""

from __future__ import annotations

from random import Random

from lmcourse.accounting.activation_rules import korthikanti
from lmcourse.accounting.parallel import Layout, state_memory
from lmcourse.accounting.worked_examples.worked_example import gpt_3, gpt_3_parameters
from lmcourse.chapters.memory.exercises.devices import MIXED, Sizes
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.units import GIB

BLOCKS = 12 * 96 * 12_288**2
"""Parameters of the blocks, without embeddings."""


def _gpt3(B: int, S: int, T: int = 1) -> Sizes:
    states = state_memory(gpt_3_parameters(), MIXED, Layout(tensor=T))
    optimiser = states["master weights"] + states["optimiser moments"]
    sizes = {"weights": states["weights"], "gradients": states["gradients"], "optimiser": optimiser}
    return {part: size / GIB for part, size in sizes.items()} | {
        "activations": korthikanti(gpt_3(), B, S, tensor=T) / GIB
    }


def _gpt3_cases(random: Random) -> list[Case]:
    return [
        case("other batches", random.randint(2, 99), 2048),
        case("other lengths", 1, random.randint(100, 2000)),
        case("other devices", random.randint(1, 9), random.randint(100, 2000), T=random.choice([2, 4, 16])),
        case("other devices", 1, 2048, T=random.choice([3, 6, 12])),
    ]


gpt3_case = Exercise(
    "gpt3_case",
    points=3,
    minutes=8,
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
        "N = 12·L·D² + (V + 2048)·D. Then 2, 4 and 12 bytes for each, over T, over 2**30.",
        "The activations are tensor_parallel_bytes(T, N, L, B, S, D, A)['activations'] / 2**30.",
    ],
    forbid=["torch"],
)


def _scaled(sizes: Sizes, factor: float, *parts: str) -> Sizes:
    """These parts, or all, multiplied."""
    return {part: size * (factor if part in parts or not parts else 1) for part, size in sizes.items()}


STATES = ("weights", "gradients", "optimiser")


@gpt3_case.misconception(
    "Those are the numbers of the notes: 162, 325 and 975. They are half of what is right, 1, 2 and 6 bytes a "
    "parameter."
)
def half_the_bytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 0.5, *STATES)


@gpt3_case.misconception("Those are TiB. The notes print that unit, but their numbers are GiB: 2³⁰ bytes.")
def tebibytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 2**-10)


@gpt3_case.misconception("Those are GB, 10⁹ bytes. A GiB is 2³⁰.")
def gigabytes(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), GIB / 10**9)


@gpt3_case.misconception(
    "The embeddings of tokens and positions are missing. They are 0.37 % of the parameters, and asked for."
)
def blocks_only(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), BLOCKS / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("You leave the embeddings whole on each device, as the notes do. They are divided as well.")
def whole_embeddings(B: int, S: int, T: int = 1) -> Sizes:
    embeddings = gpt_3_parameters() - BLOCKS
    return _scaled(_gpt3(B, S, T), (BLOCKS + embeddings * T) / gpt_3_parameters(), *STATES)


@gpt3_case.misconception("Your states do not depend on T: each device holds 1/T of them.")
def states_not_divided(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), T, *STATES)


@gpt3_case.misconception("You divide all activations by T. What norms and dropout see is whole on every device.")
def activations_divided(B: int, S: int, T: int = 1) -> Sizes:
    return _gpt3(B, S, T) | {"activations": _gpt3(B, S)["activations"] / T}


@gpt3_case.misconception("Your learned positions depend on S. GPT-3 has 2048 of them, however short the text is.")
def as_many_positions_as_tokens(B: int, S: int, T: int = 1) -> Sizes:
    fewer = 1 - (2048 - S) * 12_288 / gpt_3_parameters()
    return _scaled(_gpt3(B, S, T), fewer, *STATES)


@gpt3_case.misconception("That is one layer's worth of activations. GPT-3 has 96.")
def one_of_96_layers(B: int, S: int, T: int = 1) -> Sizes:
    return _scaled(_gpt3(B, S, T), 1 / 96, "activations")
