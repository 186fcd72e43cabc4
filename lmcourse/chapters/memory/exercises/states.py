"""Exercises on what a parameter costs from step to step, and how many of them fit."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.accounting.memory import largest_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

RECIPES = {"fp32": "fp32", "mixed": "mixed-fp32-gradients", "inference": "inference"}
"""What the exercises call the recipes of `lmcourse.accounting.recipes`."""

Bytes = dict[str, int]

# state_bytes -----------------------------------------------------------------------------------------------------


def _states(parameters: int, precision: str) -> Bytes:
    if precision not in RECIPES:
        raise ValueError(f"there is no precision {precision!r}")
    sizes = find_recipe(RECIPES[precision]).memory(parameters).parts
    optimiser = sizes.get("master weights", 0) + sizes.get("optimiser moments", 0)
    return {"weights": sizes["weights"], "gradients": sizes.get("gradients", 0), "optimiser": optimiser}


def _state_cases(random: Random) -> list[Case]:
    return [
        *(case("other sizes", 7, precision) for precision in RECIPES),
        *(
            case("bad input", 7, precision)
            for precision in ("", "fp", "mixed precision", "no inference", "FP32", " fp32")
        ),
        *(case("other sizes", random.randint(1, 10**12), precision) for precision in RECIPES),
    ]


state_bytes = Exercise(
    "state_bytes",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_states,
    cases=[
        case("one parameter in fp32", 1, "fp32"),
        case("one parameter in mixed precision", 1, "mixed"),
        case("one parameter that only writes", 1, "inference"),
        case("Llama 3 8B, mixed", 8_030_261_248, "mixed"),
        case("no such precision", 1000, "int4"),
    ],
    hidden_cases=_state_cases,
    hints=[
        "fp32: everything takes 4 bytes, and Adam keeps two numbers for each parameter.",
        "Mixed: 2 bytes for the weights that are multiplied, 4 for a gradient. Master weights and both moments are in "
        "fp32, and all three belong to the optimiser.",
        "fp32 is 4, 4, 8; mixed is 2, 4, 12; inference is 2, 0, 0, each times the parameters.",
    ],
)


def _per_parameter(parameters: int, weights: int, gradients: int, optimiser: int) -> Bytes:
    return {"weights": weights * parameters, "gradients": gradients * parameters, "optimiser": optimiser * parameters}


@state_bytes.misconception("The gradients are forgotten: every parameter has one, in fp32.")
def gradients_forgotten(parameters: int, precision: str) -> Bytes:
    return _states(parameters, precision) | {"gradients": 0}


@state_bytes.misconception("Adam keeps two moments, the mean of the gradient and that of its square. You count one.")
def one_moment(parameters: int, precision: str) -> Bytes:
    states = _states(parameters, precision)
    return states | {"optimiser": max(0, states["optimiser"] - 4 * parameters)}


@state_bytes.misconception(
    "The master weights are missing: mixed precision keeps an fp32 copy, because small updates vanish in 16 bits."
)
def no_master_weights(parameters: int, precision: str) -> Bytes:
    states = _states(parameters, precision)
    return states | {"optimiser": 8 * parameters} if precision == "mixed" else states


@state_bytes.misconception(
    "Your gradients take 2 bytes in mixed precision. Some trainers do that; here they are summed in fp32, 4 bytes."
)
def gradients_in_16_bits(parameters: int, precision: str) -> Bytes:
    states = _states(parameters, precision)
    return states | {"gradients": 2 * parameters} if precision == "mixed" else states


@state_bytes.misconception("The master weights belong to the optimiser here. You count them among the weights.")
def master_among_the_weights(parameters: int, precision: str) -> Bytes:
    mixed = _per_parameter(parameters, 6, 4, 8)
    return mixed if precision == "mixed" else _states(parameters, precision)


@state_bytes.misconception("Whoever only writes texts has neither gradients nor an optimiser.")
def inference_as_training(parameters: int, precision: str) -> Bytes:
    return _states(parameters, "mixed" if precision == "inference" else precision)


@state_bytes.misconception("All your parts are half of what they take. A number takes 4 bytes in fp32, 2 in 16 bits.")
def half_of_everything(parameters: int, precision: str) -> Bytes:
    return {part: size // 2 for part, size in _states(parameters, precision).items()}


@state_bytes.misconception("A precision that you do not know should raise a ValueError, not pass for another.")
def anything_goes(parameters: int, precision: str) -> Bytes:
    return _states(parameters, precision if precision in RECIPES else "fp32")


@state_bytes.variant
def sums_of_numbers(parameters: int, precision: str) -> dict[str, int]:
    bits = {"fp32": 32, "mixed": 16, "inference": 16}.get(precision)
    if bits is None:
        raise ValueError(precision)
    weights = gradients = optimiser = 0
    weights += bits // 8 * parameters
    if precision != "inference":
        gradients += 4 * parameters
        optimiser += 4 * parameters + 4 * parameters
    if precision == "mixed":
        optimiser += 4 * parameters
    return {"optimiser": optimiser, "gradients": gradients, "weights": weights}


@state_bytes.variant
def rows_of_a_table(parameters: int, precision: str) -> dict[str, np.int64]:
    table = np.array([[4, 4, 8], [2, 4, 12], [2, 0, 0]], dtype=np.int64) * parameters
    row = table[["fp32", "mixed", "inference"].index(precision)]  # index raises a ValueError of its own
    return dict(zip(("weights", "gradients", "optimiser"), row, strict=True))


@state_bytes.variant
def matched(parameters: int, precision: str) -> dict[str, int]:
    sizes: Counter[str] = Counter(weights=2, gradients=0, optimiser=0)
    match precision:
        case "inference":
            pass
        case "mixed":
            sizes.update(gradients=4, optimiser=12)
        case "fp32":
            sizes.update(weights=2, gradients=4, optimiser=8)
        case _:
            raise ValueError("no such precision")
    return Counter({part: size * parameters for part, size in sizes.items()})


# largest_model ---------------------------------------------------------------------------------------------------


def _largest(gigabytes: int, devices: int, precision: str) -> int:
    return largest_parameters(gigabytes * devices * 10**9, find_recipe(RECIPES[precision]))


def _largest_cases(random: Random) -> list[Case]:
    cards = [16, 24, 48, 80, 141, 192]
    return [
        case("one card", 24, 1, "mixed"),
        case("one card", 141, 1, "fp32"),
        case("many cards", 80, 16_384, "mixed"),
        *(case("other cards", random.choice(cards), random.randint(2, 99), precision) for precision in RECIPES),
    ]


largest_model = Exercise(
    "largest_model",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_largest,
    cases=[
        case("8 cards of 80 GB, fp32", 80, 8, "fp32"),
        case("the same in mixed precision", 80, 8, "mixed"),
        case("one card, to write", 80, 1, "inference"),
        case("one card, to train", 80, 1, "mixed"),
    ],
    hidden_cases=_largest_cases,
    hints=[
        "How many bytes is all the memory together? Then how many bytes does one parameter take?",
        "GB are 10⁹ bytes. Per parameter: sum(state_bytes(1, precision).values()).",
        "gigabytes · devices · 10**9 // bytes per parameter.",
    ],
    uses=["state_bytes"],
)


def _fitting(gigabytes: int, devices: int, per_parameter: float, giga: int = 10**9) -> int:
    return int(gigabytes * devices * giga / per_parameter)


@largest_model.misconception("You take GB for GiB. A GB is 10⁹ bytes, a GiB 2³⁰: 7.4 % more.")
def gib_for_gb(gigabytes: int, devices: int, precision: str) -> int:
    return gigabytes * devices * 2**30 // sum(_states(1, precision).values())


@largest_model.misconception("The gradients are forgotten: 4 bytes of each parameter.")
def without_gradients(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, sum(gradients_forgotten(1, precision).values()))


@largest_model.misconception("That counts the weights alone. Training keeps gradients and Adam's moments, too.")
def weights_alone(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, _states(1, precision)["weights"])


@largest_model.misconception("That is one device. All of them share the states.")
def one_device(gigabytes: int, devices: int, precision: str) -> int:
    return _largest(gigabytes, 1, precision)


@largest_model.misconception(
    "You count 16 bytes for every precision. Mixed takes 18, so *fewer* parameters fit, and who only writes needs 2."
)
def always_16(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, 16)


@largest_model.misconception("Those are billions. Return the number of parameters.")
def in_billions(gigabytes: int, devices: int, precision: str) -> int:
    return gigabytes * devices // sum(_states(1, precision).values())


@largest_model.variant
def rounded_down(gigabytes: int, devices: int, precision: str) -> int:
    per_parameter = {"fp32": 16, "mixed": 18, "inference": 2}[precision]
    return int(gigabytes * 1e9 * devices / per_parameter)


@largest_model.variant
def exactly(gigabytes: int, devices: int, precision: str) -> int:
    room = sum(Fraction(gigabytes) * 1_000_000_000 for _ in range(devices))
    numbers = {"fp32": [4, 4, 4, 4], "mixed": [2, 4, 4, 4, 4], "inference": [2]}
    return int(room // sum(numbers[precision]))


@largest_model.variant
def searched(gigabytes: int, devices: int, precision: str) -> int:
    """By halving: the states of `fits` parameters fit, those of `too_many` do not."""
    room, each = gigabytes * devices * 10**9, {"fp32": 16, "mixed": 18}.get(precision, 2)
    fits, too_many = 0, room
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if middle * each <= room:
            fits = middle
        else:
            too_many = middle
    return fits
