"""Exercises on the bytes per parameter that stay from step to step, and on the number of parameters that fit."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

PRECISIONS = {"fp32": (4, 4, 0), "mixed": (2, 4, 4), "mixed-16": (2, 2, 4), "inference": (2, 0, 0)}
"""Bytes per parameter of weights, gradients and master weights."""

MOMENTS = {"sgd": 0, "momentum": 4, "adamw": 8, "adamw-8bit": 2}
"""Bytes per parameter that an optimizer adds, in every precision."""

Bytes = dict[str, int]

# state_bytes -----------------------------------------------------------------------------------------------------


def _states(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    if precision not in PRECISIONS or optimizer not in MOMENTS:
        raise ValueError(f"there is no {precision!r} with {optimizer!r}")
    weights, gradients, master = PRECISIONS[precision]
    moments = MOMENTS[optimizer] if gradients else 0
    return _per_parameter(parameters, weights, gradients, master + moments)


def _per_parameter(parameters: int, weights: int, gradients: int, optimizer: int) -> Bytes:
    return {"weights": weights * parameters, "gradients": gradients * parameters, "optimizer": optimizer * parameters}


def _state_cases(random: Random) -> list[Case]:
    return [
        *(case("other sizes", 7, precision) for precision in PRECISIONS),
        *(case("other trainers", 7, "fp32", optimizer) for optimizer in MOMENTS),
        *(case("other trainers", 7, "mixed", optimizer) for optimizer in MOMENTS),
        *(case("other trainers", 7, "mixed-16", optimizer) for optimizer in MOMENTS),
        case("inference", 7, "inference", "momentum"),
        *(case("bad input", 7, precision) for precision in ("", "fp", "mixed precision", "FP32", " fp32")),
        *(case("bad input", 7, "fp32", optimizer) for optimizer in ("", "adam", "SGD")),
        *(case("other sizes", random.randint(1, 10**12), precision) for precision in PRECISIONS),
    ]


state_bytes = Exercise(
    "state_bytes",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_states,
    cases=[
        case("one parameter, AdamW in fp32", 1, "fp32"),
        case("one parameter, AdamW in mixed precision", 1, "mixed"),
        case("gradients in 16 bits", 1000, "mixed-16"),
        case("momentum, mixed", 1000, "mixed", "momentum"),
        case("plain SGD, mixed", 1000, "mixed", "sgd"),
        case("plain SGD in fp32", 1000, "fp32", "sgd"),
        case("moments in 8 bits, mixed", 1000, "mixed", "adamw-8bit"),
        case("moments in 8 bits, fp32", 1000, "fp32", "adamw-8bit"),
        case("Llama 3 8B, inference", 8_030_261_248, "inference"),
        case("no such precision", 1000, "int4"),
        case("no such optimizer", 1000, "fp32", "adafactor"),
        case("no such optimizer, inference", 1000, "inference", "adafactor"),
    ],
    hidden_cases=_state_cases,
    hints=[
        "Precision and optimizer are two separate questions. What depends on the precision, and what on the optimizer?",
        "The precision determines weights, gradients, and whether there are master weights. The optimizer determines "
        "how many moments each parameter has, and their width.",
        "`optimizer` in the result is master weights (4 bytes in the mixed precisions) and moments: 0, 4, 8 or 2 "
        "bytes. Inference has neither.",
    ],
)


@state_bytes.misconception("You forget the gradients: every parameter has one.")
def gradients_forgotten(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, precision, optimizer) | {"gradients": 0}


@state_bytes.misconception(
    "AdamW keeps two moments, the mean of the gradient and the mean of its square. You count one."
)
def one_moment(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    fewer = {"adamw": 4, "adamw-8bit": 1}.get(optimizer, 0)
    return states | {"optimizer": max(0, states["optimizer"] - fewer * parameters)}


@state_bytes.misconception(
    "The master weights are missing. The mixed precisions keep an fp32 copy, because small updates vanish in 16 bits."
)
def no_master_weights(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    return states | {"optimizer": states["optimizer"] - PRECISIONS[precision][2] * parameters}


@state_bytes.misconception(
    "You count master weights only with AdamW. They depend on the precision, not on the optimizer."
)
def master_weights_of_adamw(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    if optimizer.startswith("adamw"):
        return states
    return states | {"optimizer": states["optimizer"] - PRECISIONS[precision][2] * parameters}


@state_bytes.misconception('Your gradients take 2 bytes in "mixed". There they are summed in fp32, with 4 bytes.')
def gradients_in_16_bits(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, "mixed-16" if precision == "mixed" else precision, optimizer)


@state_bytes.misconception('Your gradients take 4 bytes in "mixed-16". There they have 16 bits: 2 bytes.')
def gradients_in_32_bits(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, "mixed" if precision == "mixed-16" else precision, optimizer)


@state_bytes.misconception("The master weights belong to the optimizer here. You count them among the weights.")
def master_among_the_weights(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    master = PRECISIONS[precision][2] * parameters
    return states | {"weights": states["weights"] + master, "optimizer": states["optimizer"] - master}


@state_bytes.misconception("Your moments take 2 bytes in the mixed precisions. The optimizer works in fp32 there too.")
def moments_in_16_bits(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    half = MOMENTS[optimizer] // 2 if PRECISIONS[precision][2] and optimizer != "adamw-8bit" else 0
    return states | {"optimizer": states["optimizer"] - half * parameters}


@state_bytes.misconception(
    "Your 8-bit moments take 8 bytes together, as in fp32. 8 bits are one byte for each of the two."
)
def eight_bits_ignored(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, precision, "adamw" if optimizer == "adamw-8bit" else optimizer)


@state_bytes.misconception("You count two numbers per parameter. Momentum keeps one, and plain SGD none.")
def every_optimizer_is_adam(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    _states(parameters, precision, optimizer)
    return _states(parameters, precision, optimizer if optimizer == "adamw-8bit" else "adamw")


@state_bytes.misconception(
    "You count optimizer state for plain SGD. It keeps nothing between steps; only momentum does."
)
def sgd_with_momentum(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, precision, "momentum" if optimizer == "sgd" else optimizer)


@state_bytes.misconception("Inference has no gradients and no optimizer. You count both.")
def inference_as_training(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, "mixed" if precision == "inference" else precision, optimizer)


@state_bytes.misconception(
    "You count one byte for both 8-bit moments. Each of them takes one: 2 bytes for each parameter."
)
def one_byte_for_both(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    fewer = parameters if optimizer == "adamw-8bit" and states["gradients"] else 0
    return states | {"optimizer": states["optimizer"] - fewer}


@state_bytes.misconception("You count master weights in fp32. There are none: the weights are in fp32 already.")
def master_weights_in_fp32(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    return states | {"optimizer": states["optimizer"] + 4 * parameters} if precision == "fp32" else states


@state_bytes.misconception("Inference has no optimizer: `optimizer` is 0, whichever optimizer is named.")
def moments_of_inference(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    return states | {"optimizer": MOMENTS[optimizer] * parameters} if precision == "inference" else states


@state_bytes.misconception("Your master weights take 2 bytes in mixed-16. They are in fp32 in both mixed precisions.")
def master_weights_in_16_bits(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    fewer = 2 * parameters if precision == "mixed-16" else 0
    return states | {"optimizer": states["optimizer"] - fewer}


@state_bytes.misconception(
    "All your parts are half as large as they should be. A number takes 4 bytes in fp32, 2 bytes in 16 bits."
)
def half_of_everything(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return {part: size // 2 for part, size in _states(parameters, precision, optimizer).items()}


@state_bytes.misconception("You accept an unknown precision or optimizer. Raise a ValueError.")
def anything_goes(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    known = optimizer if optimizer in MOMENTS else "adamw"
    return _states(parameters, precision if precision in PRECISIONS else "fp32", known)


@state_bytes.misconception("In inference you never look at `optimizer`: an unknown word is a ValueError there, too.")
def inference_takes_any_word(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    return _states(parameters, precision, "adamw" if precision == "inference" else optimizer)


@state_bytes.misconception("Your mixed-16 has no master weights. It differs from mixed in the gradients only.")
def no_master_weights_in_mixed_16(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    fewer = 4 * parameters if precision == "mixed-16" else 0
    return states | {"optimizer": states["optimizer"] - fewer}


@state_bytes.misconception("You take 8 bits for 8 bytes: each of the two moments has one byte.")
def eight_bytes_for_each(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    states = _states(parameters, precision, optimizer)
    more = 14 * parameters if optimizer == "adamw-8bit" and precision != "inference" else 0
    return states | {"optimizer": states["optimizer"] + more}


@state_bytes.variant
def sums_of_numbers(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, int]:
    if precision not in ("fp32", "mixed", "mixed-16", "inference"):
        raise ValueError(precision)
    if optimizer not in ("sgd", "momentum", "adamw", "adamw-8bit"):
        raise ValueError(optimizer)
    weights = 4 if precision == "fp32" else 2
    gradients = optimizer_bytes = 0
    if precision != "inference":
        gradients = 2 if precision == "mixed-16" else 4
        if precision.startswith("mixed"):
            optimizer_bytes += 4
        if optimizer == "momentum":
            optimizer_bytes += 4
        elif optimizer == "adamw":
            optimizer_bytes += 4 + 4
        elif optimizer == "adamw-8bit":
            optimizer_bytes += 1 + 1
    sizes = {"optimizer": optimizer_bytes, "gradients": gradients, "weights": weights}
    return {part: size * parameters for part, size in sizes.items()}


@state_bytes.variant
def rows_of_a_table(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, np.int64]:
    # index raises a ValueError itself
    kind = ["fp32", "mixed", "mixed-16", "inference"].index(precision)
    moments = [0, 4, 8, 2][["sgd", "momentum", "adamw", "adamw-8bit"].index(optimizer)]
    table = np.array([[4, 4, moments], [2, 4, 4 + moments], [2, 2, 4 + moments], [2, 0, 0]], dtype=np.int64)
    return dict(zip(("weights", "gradients", "optimizer"), table[kind] * parameters, strict=True))


@state_bytes.variant
def matched(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, int]:
    sizes: Counter[str] = Counter(weights=2, gradients=2, optimizer=4)
    match optimizer:
        case "sgd":
            pass
        case "momentum":
            sizes.update(optimizer=4)
        case "adamw":
            sizes.update(optimizer=8)
        case "adamw-8bit":
            sizes.update(optimizer=2)
        case _:
            raise ValueError("unknown optimizer")
    match precision:
        case "inference":
            sizes = Counter(weights=2, gradients=0, optimizer=0)
        case "mixed":
            sizes.update(gradients=2)
        case "mixed-16":
            pass
        case "fp32":
            sizes.update(weights=2, gradients=2, optimizer=-4)
        case _:
            raise ValueError("unknown precision")
    return Counter({part: size * parameters for part, size in sizes.items()})


# largest_model ---------------------------------------------------------------------------------------------------


def _largest(gigabytes: int, devices: int, precision: str) -> int:
    return gigabytes * devices * 10**9 // sum(_states(1, precision).values())


def _largest_cases(random: Random) -> list[Case]:
    cards = [16, 24, 48, 80, 141, 192]
    return [
        case("one card", 24, 1, "mixed"),
        case("one card", 141, 1, "fp32"),
        case("many cards", 80, 16_384, "mixed"),
        *(
            case("other cards", random.choice(cards), random.randint(2, 99), precision)
            for precision in ("fp32", "mixed", "inference")
        ),
    ]


largest_model = Exercise(
    "largest_model",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_largest,
    tolerance=Tolerance(1e-13),  # so small that a fraction differs from the next whole number
    cases=[
        case("8 cards of 80 GB, fp32", 80, 8, "fp32"),
        case("the same in mixed precision", 80, 8, "mixed"),
        case("one card, inference", 80, 1, "inference"),
        case("one card, training", 80, 1, "mixed"),
        case("two cards of 24 GB, mixed", 24, 2, "mixed"),
        case("gradients in 16 bits", 24, 4, "mixed-16"),
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


@largest_model.misconception("You read a GiB as a GB. A GB is 10⁹ bytes, a GiB is 2³⁰: 7.4 % more.")
def gib_for_gb(gigabytes: int, devices: int, precision: str) -> int:
    return gigabytes * devices * 2**30 // sum(_states(1, precision).values())


@largest_model.misconception("You forget the gradients: 4 bytes per parameter, or 2 in mixed-16.")
def without_gradients(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, sum(gradients_forgotten(1, precision).values()))


@largest_model.misconception("You forget the master weights: mixed precision keeps a copy in fp32, 4 more bytes.")
def without_master_weights(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, sum(_states(1, precision).values()) - PRECISIONS[precision][2])


@largest_model.misconception("You count the weights alone. Training keeps gradients and Adam's moments as well.")
def weights_alone(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, _states(1, precision)["weights"])


@largest_model.misconception("You use the memory of one device. The states are divided among all devices.")
def one_device(gigabytes: int, devices: int, precision: str) -> int:
    return _largest(gigabytes, 1, precision)


@largest_model.misconception(
    "You count 16 bytes for every precision. Mixed takes 18, so *fewer* parameters fit, and inference takes 2."
)
def always_16(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, 16)


@largest_model.misconception("You count 16 bytes in mixed precision. Here it takes 18: gradients are in fp32.")
def mixed_with_16(gigabytes: int, devices: int, precision: str) -> int:
    return _fitting(gigabytes, devices, 16) if precision == "mixed" else _largest(gigabytes, devices, precision)


@largest_model.misconception("You return billions. Return the number of parameters.")
def in_billions(gigabytes: int, devices: int, precision: str) -> int:
    return gigabytes * devices // sum(_states(1, precision).values())


@largest_model.misconception(
    "You do not round down: on 8 cards of 80 GB, in mixed precision, 35555555555 parameters fit, and no part of "
    "another one."
)
def a_fraction(gigabytes: int, devices: int, precision: str) -> float:
    return gigabytes * devices * 10**9 / sum(_states(1, precision).values())


@largest_model.misconception(
    "You round down for each device. Together the devices may hold one more parameter: divide the total memory."
)
def each_device_first(gigabytes: int, devices: int, precision: str) -> int:
    return devices * _largest(gigabytes, 1, precision)


@largest_model.misconception("You round to the nearest integer. Round down: a parameter fits only as a whole.")
def rounded(gigabytes: int, devices: int, precision: str) -> int:
    return round(gigabytes * devices * 10**9 / sum(_states(1, precision).values()))


@largest_model.variant
def rounded_down(gigabytes: int, devices: int, precision: str) -> int:
    per_parameter = {"fp32": 16, "mixed": 18, "mixed-16": 16, "inference": 2}[precision]
    return int(gigabytes * 1e9 * devices / per_parameter)


@largest_model.variant
def exactly(gigabytes: int, devices: int, precision: str) -> int:
    room = sum(Fraction(gigabytes) * 1_000_000_000 for _ in range(devices))
    numbers = {"fp32": [4] * 4, "mixed": [2, 4, 4, 4, 4], "mixed-16": [2, 2, 4, 4, 4], "inference": [2]}
    return int(room // sum(numbers[precision]))


@largest_model.variant
def searched(gigabytes: int, devices: int, precision: str) -> int:
    """Search by halving: the states of `fits` parameters fit, but those of `too_many` parameters do not."""
    room, each = gigabytes * devices * 10**9, {"mixed": 18, "inference": 2}.get(precision, 16)
    fits, too_many = 0, room
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if middle * each <= room:
            fits = middle
        else:
            too_many = middle
    return fits
