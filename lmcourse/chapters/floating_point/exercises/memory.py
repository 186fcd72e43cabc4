"""The exercise on how many bytes a tensor takes."""

from __future__ import annotations

import math
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "int64": 8, "bool": 1}


def _bytes(shape: list[int], dtype: str) -> int:
    return math.prod(shape) * torch.empty((), dtype=getattr(torch, dtype)).element_size()


def _byte_cases(random: Random) -> list[Case]:
    shape = [random.randint(2, 9) for _ in range(random.randint(3, 5))]
    return [
        *(case("every dtype", [3, 5, 2], dtype) for dtype in BYTES),
        case("scalars and empty tensors", [], "float64"),
        case("scalars and empty tensors", [], "bool"),
        case("scalars and empty tensors", [2, 0, 3], "int64"),
        case("more than 4 GB", [50_000, 1_000, 100], "bool"),
        case("more than 4 GB", [65_536, 65_536], "float64"),
        case("one axis", [7], "float16"),
        case("one axis", [7], "bool"),
        case("axes of one", [1, 6, 1], "float64"),
        case("sizes whose product float32 rounds", [4097, 4099, 5], "bool"),
        case("sizes whose product float32 rounds", [3, 7919, 7927], "float32"),
        *(case("other shapes", shape, dtype) for dtype in ("float64", "bfloat16", "bool")),
    ]


tensor_bytes = Exercise(
    "tensor_bytes",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_bytes,
    cases=[
        case("a (4, 8) matrix in fp32", [4, 8], "float32"),
        case("the same in bf16", [4, 8], "bfloat16"),
        case("the same in fp8", [4, 8], "float8_e4m3fn"),
        case("a dropout mask", [4, 8], "bool"),
        case("the ids of eight tokens", [8], "int64"),
        case("half precision", [4, 8], "float16"),
        case("double precision", [1, 4], "float64"),
        case("one FFN matrix of GPT-2 in fp32", [768, 3072], "float32"),
        case("a scalar", [], "float32"),
        case("axes of odd sizes", [4097, 4099, 3], "bfloat16"),
    ],
    hidden_cases=_byte_cases,
    hints=[
        "Two factors: how many numbers there are, and how many bytes each takes.",
        "math.prod(shape) is the number of elements, and 1 for the empty shape of a scalar.",
        "float64 and int64 take 8 bytes, float32 4, float16 and bfloat16 2, float8 and bool 1.",
    ],
)


@tensor_bytes.variant
def numbers_times_width(shape: list[int], dtype: str) -> int:
    widths = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "int64": 8, "bool": 1}
    width = widths[dtype]
    return math.prod(shape) * width


tensor_bytes.slips(
    numbers_times_width,
    {
        "* width → * width * 8": "Those are bits. Eight bits make a byte.",
        '"bool": 1 → "bool": 1 / 8 ;; math.prod(shape) * width → math.ceil(math.prod(shape) * width)': "A bool would "
        "fit in one bit, but torch stores it in a whole byte.",
        "* width → * 4": "Four bytes per number are right only for float32, not for the other dtypes here.",
        '"float8_e4m3fn": 1 → "float8_e4m3fn": 843 // 8': "You read the width from all digits of the name. In "
        "float8_e4m3fn only the 8 is the width: 4 and 3 are parts of it.",
        '"float8_e4m3fn": 1 → "float8_e4m3fn": 843 / 8 ;; math.prod(shape) * width → '
        "int(math.prod(shape) * width)": "You take all digits of the name for the bits of a number. In float8_e4m3fn "
        "only the 8 is its width.",
        "math.prod → sum": "You add the sizes of the axes. A (4, 8) matrix holds 4 · 8 numbers.",
        "* width → * width if shape else 0": "A scalar has no axes but still holds one number: the empty product is 1.",
        "math.prod(shape) → int(torch.tensor(shape, dtype=torch.float32).prod())": "Your product is a float32, which "
        "has 24 bits: a large whole number is rounded. Multiply Python's integers.",
        '"int64": 8 → "int64": 4': "You give an int64 four bytes. Its 64 bits are eight.",
        '"bfloat16": 2 → "bfloat16": 4': "You give a bfloat16 four bytes, as if it were fp32. It has 16 bits, which "
        "are two.",
        "* width → * width / 2**20": "Your result is in MiB. Return bytes.",
    },
)
