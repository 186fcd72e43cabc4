"""Exercises on the bytes per parameter that stay from step to step, and on the number of parameters that fit."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

PRECISIONS = {"fp32": (4, 4, 0), "mixed": (2, 4, 4), "mixed-16-bit-gradients": (2, 2, 4), "inference": (2, 0, 0)}
"""Bytes per parameter of weights, gradients and master weights."""

Bytes = dict[str, int]

# state_bytes -----------------------------------------------------------------------------------------------------


def _states(parameters: int, precision: str, optimizer: str = "adamw") -> Bytes:
    weights, gradients, master = PRECISIONS[precision]
    moments = 8 if gradients and optimizer == "adamw" else 0
    return {
        "weights": weights * parameters,
        "gradients": gradients * parameters,
        "optimizer": (master + moments) * parameters,
    }


def _state_cases(random: Random) -> list[Case]:
    return [
        *(case("other sizes", 7, precision) for precision in PRECISIONS),
        *(case("SGD", 7, precision, "sgd") for precision in PRECISIONS),
        *(case("other sizes", random.randint(1, 10**12), precision) for precision in PRECISIONS),
    ]


state_bytes = Exercise(
    "state_bytes",
    points=2,
    minutes=5,
    difficulty=2,
    reference=_states,
    cases=[
        case("one parameter, AdamW in fp32", 1, "fp32"),
        case("one parameter, AdamW in mixed precision", 1, "mixed"),
        case("gradients in 16 bits", 1000, "mixed-16-bit-gradients"),
        case("SGD in fp32", 1000, "fp32", "sgd"),
        case("SGD, mixed", 1000, "mixed", "sgd"),
        case("SGD, gradients in 16 bits", 1000, "mixed-16-bit-gradients", "sgd"),
        case("Llama 3 8B, inference", 8_030_261_248, "inference"),
    ],
    hidden_cases=_state_cases,
    hints=[
        "Precision and optimizer are two separate questions. What depends on the precision, and what on the optimizer?",
        "The precision determines weights, gradients, and whether there are master weights. The optimizer determines "
        "how many moments each parameter has, 4 bytes each.",
        "`optimizer` in the result is master weights (4 bytes in the mixed precisions) and moments: 0 or 8 bytes. "
        "Inference has neither.",
    ],
)


@state_bytes.variant
def from_two_tables(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, int]:
    precisions = {"fp32": (4, 4, 0), "mixed": (2, 4, 4), "mixed-16-bit-gradients": (2, 2, 4), "inference": (2, 0, 0)}
    moments = {"sgd": 0, "adamw": 8}
    weights, gradients, master = precisions[precision]
    kept = master + moments[optimizer] if gradients else 0
    sizes = {"optimizer": kept, "gradients": gradients, "weights": weights}
    return {part: size * parameters for part, size in sizes.items()}


state_bytes.slips(
    from_two_tables,
    {
        '"gradients": gradients → "gradients": 0': "You forget the gradients: every parameter has one.",
        '"adamw": 8 → "adamw": 4': "AdamW keeps two moments, the mean of the gradient and the mean of its square, 4 "
        "bytes each. You count 4 bytes in all.",
        "master + moments[optimizer] → moments[optimizer]": "The master weights are missing. The mixed precisions "
        "keep an fp32 copy, because small updates vanish in 16 bits.",
        'master + moments → master * (optimizer == "adamw") + moments': "You count master weights only with "
        "AdamW. They depend on the precision, not on the optimizer.",
        "(2, 4, 4) → (2, 2, 4)": 'Your gradients take 2 bytes in "mixed". There they are summed in fp32, with 4 bytes.',
        "(2, 2, 4) → (2, 4, 4)": 'Your gradients take 4 bytes in "mixed-16-bit-gradients". There they have 16 bits: 2 '
        "bytes.",
        '"weights": weights → "weights": weights + master ;; master + moments → moments': "The master weights belong "
        "to the optimizer here. You count them among the weights.",
        "moments[optimizer] if → moments[optimizer] // (2 if master else 1) if": "Your moments are half as large in "
        "the mixed precisions. The optimizer works in fp32 there, too.",
        "moments[optimizer] if → moments[optimizer] // (2 if gradients == 2 else 1) if": "Your moments are half as "
        "large if gradients have 16 bits. They do not depend on the precision.",
        '"sgd": 0 → "sgd": 8': "You count two moments for SGD. Without momentum it keeps nothing between steps.",
        '"sgd": 0 → "sgd": 4': "You count one number per parameter for SGD. Without momentum it keeps nothing between "
        "steps.",
        "(2, 0, 0) → (2, 2, 0) ;; if gradients → if precision != 'inference'": "You count gradients for inference. A "
        "model that is not trained has none.",
        "(2, 0, 0) → (2, 0, 4) ;; if gradients else 0 → if gradients else master": "You count master weights for "
        "inference. They are for updates, and there are none.",
        "(2, 0, 0) → (2, 0, 4) ;;  if gradients else 0 → ": "You count master weights and moments for inference. Its "
        "optimizer keeps nothing.",
        "(2, 0, 0) → (2, 4, 4)": "Inference has no gradients and no optimizer. You count both.",
        "(4, 4, 0) → (4, 4, 4)": "You count master weights in fp32. There are none: the weights are in fp32 already.",
        " if gradients else 0 → ": "Inference has no optimizer: `optimizer` is 0, whichever optimizer is named.",
        "(2, 2, 4) → (2, 2, 2)": "Your master weights take 2 bytes in mixed-16-bit-gradients. They are in fp32 in both "
        "mixed precisions.",
        "size * parameters → size * parameters // 2": "All your parts are half as large as they should be. A number "
        "takes 4 bytes in fp32, 2 bytes in 16 bits.",
        "(2, 2, 4) → (2, 2, 0)": "Your mixed-16-bit-gradients has no master weights. It differs from mixed in the "
        "gradients only.",
        "(2, 4, 4) → (4, 4, 4)": 'Your weights take 4 bytes in "mixed". They have 16 bits; the fp32 copy belongs to '
        "the optimizer.",
        "(2, 4, 4) → (2, 4, 0)": 'Your "mixed" has no master weights. The fp32 copy of the weights belongs to the '
        "optimizer.",
        "(2, 4, 4) → (2, 4, 2)": 'Your master weights take 2 bytes in "mixed". They are in fp32: small updates vanish '
        "in 16 bits.",
        "(2, 0, 0) → (4, 0, 0)": "Your weights take 4 bytes in inference. There the model has 16 bits.",
        "size * parameters → size": "You give the bytes of one parameter. Multiply by their number.",
    },
)


@state_bytes.variant
def rows_of_a_table(parameters: int, precision: str, optimizer: str = "adamw") -> dict[str, np.int64]:
    kind = ["fp32", "mixed", "mixed-16-bit-gradients", "inference"].index(precision)
    moments = 8 if optimizer == "adamw" else 0
    table = np.array([[4, 4, moments], [2, 4, 4 + moments], [2, 2, 4 + moments], [2, 0, 0]], dtype=np.int64)
    return dict(zip(("weights", "gradients", "optimizer"), table[kind] * parameters, strict=True))


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
        case("gradients in 16 bits", 24, 4, "mixed-16-bit-gradients"),
    ],
    hidden_cases=_largest_cases,
    hints=[
        "How many bytes is all the memory together? Then how many bytes does one parameter take?",
        "GB are 10⁹ bytes. Per parameter: sum(state_bytes(1, precision).values()).",
        "gigabytes · devices · 10**9 // bytes per parameter.",
    ],
    uses=["state_bytes"],
)


@largest_model.variant
def all_states_of_a_parameter(gigabytes: int, devices: int, precision: str) -> int:
    states = {
        "fp32": (4, 4, 0, 8),
        "mixed": (2, 4, 4, 8),
        "mixed-16-bit-gradients": (2, 2, 4, 8),
        "inference": (2, 0, 0, 0),
    }
    weights, gradients, master, moments = states[precision]
    each = weights + gradients + master + moments
    room = gigabytes * 10**9 * devices
    return room // each


largest_model.slips(
    all_states_of_a_parameter,
    {
        "10**9 → 2**30": "You read a GiB as a GB. A GB is 10⁹ bytes, a GiB is 2³⁰: 7.4 % more.",
        " + gradients → ": "You forget the gradients: 4 bytes per parameter, or 2 in mixed-16-bit-gradients.",
        " + master → ": "You forget the master weights: mixed precision keeps a copy in fp32, 4 more bytes.",
        " + gradients + master + moments → ": "You count the weights alone. Training keeps gradients and Adam's "
        "moments as well.",
        " * devices → ": "You use the memory of one device. The states are divided among all devices.",
        "weights + gradients + master + moments → 16": "You count 16 bytes for every precision. Mixed takes 18, so "
        "*fewer* parameters fit, and inference takes 2.",
        "(2, 4, 4, 8) → (2, 2, 4, 8)": "You count 16 bytes in mixed precision. Here it takes 18: gradients are in "
        "fp32.",
        " * 10**9 → ": "You return billions. Return the number of parameters.",
        "room // each → room / each": "You do not round down: on 8 cards of 80 GB, in mixed precision, 35555555555 "
        "parameters fit, and no part of another one.",
        " * devices →  ;; room // each → room // each * devices": "You round down for each device. Together the "
        "devices may hold one more parameter: divide the total memory.",
        "room // each → round(room / each)": "You round to the nearest integer. Round down: a parameter fits only as "
        "a whole.",
        "master + moments → master": "You leave out Adam's two moments: 8 bytes per parameter, in every precision but "
        "inference.",
        "master + moments → master + moments // 2": "You count 4 bytes for Adam's moments. There are two, in fp32: 8 "
        "bytes.",
        "(2, 0, 0, 0) → (2, 0, 0, 8)": "You count moments in inference, where nothing is trained.",
        "(2, 0, 0, 0) → (2, 0, 4, 8)": "You count master weights and moments in inference, where nothing is trained.",
        "(2, 0, 0, 0) → (4, 0, 0, 0)": "Your weights take 4 bytes in inference. There the model has 16 bits.",
        "(2, 2, 4, 8) → (2, 4, 4, 8)": "Your gradients take 4 bytes in mixed-16-bit-gradients. There they have 16 "
        "bits.",
        "room // each → -(-room // each)": "You round up. The last parameter would not fit as a whole.",
        "10**9 * devices → 10**9 // devices": "You divide the memory by the devices. Together they have `devices` "
        "times as much.",
    },
)
