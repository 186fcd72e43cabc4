"""Exercises on how many bytes a tensor takes."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise, value_exercise

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
        case("a dropout mask", [4, 8], "bool"),
        case("one FFN matrix of GPT-2 in fp32", [768, 3072], "float32"),
        case("a scalar", [], "float32"),
    ],
    hidden_cases=_byte_cases,
    hints=[
        "Two factors: how many numbers there are, and how many bytes each takes.",
        "math.prod(shape) is the number of elements, and 1 for the empty shape of a scalar.",
        "float64 and int64 take 8 bytes, float32 4, float16 and bfloat16 2, float8 and bool 1.",
    ],
)


@tensor_bytes.misconception("Those are bits. Eight bits make a byte.")
def counted_in_bits(shape: list[int], dtype: str) -> int:
    return 8 * _bytes(shape, dtype)


@tensor_bytes.misconception("A bool would fit in one bit, but torch stores it in a whole byte.")
def bool_as_a_bit(shape: list[int], dtype: str) -> int:
    return math.ceil(math.prod(shape) / 8) if dtype == "bool" else _bytes(shape, dtype)


@tensor_bytes.misconception("Four bytes a number are right for float32, and for none of the other dtypes here.")
def four_bytes_always(shape: list[int], dtype: str) -> int:
    return 4 * math.prod(shape)


@tensor_bytes.misconception("You add the sizes of the axes. A (4, 8) matrix holds 4 · 8 numbers.")
def axes_added(shape: list[int], dtype: str) -> int:
    return sum(shape) * BYTES[dtype]


@tensor_bytes.misconception("A scalar has no axes but still holds one number: the empty product is 1.")
def scalar_is_empty(shape: list[int], dtype: str) -> int:
    return _bytes(shape, dtype) if shape else 0


@tensor_bytes.variant
def asked_of_torch(shape: list[int], dtype: str) -> int:
    return torch.empty(shape, dtype=getattr(torch, dtype), device="meta").nbytes


@tensor_bytes.variant
def by_the_digits_of_the_name(shape: list[int], dtype: str) -> float:
    bits = 8 if dtype == "bool" or "8" in dtype else 64 if dtype.endswith("64") else 32
    if dtype.endswith("16"):
        bits = 16
    for size in shape:
        bits = size * bits
    return bits / 8


@tensor_bytes.variant
def axis_by_axis(shape: list[int], dtype: str) -> Any:
    if shape:
        return shape[-1] * axis_by_axis(shape[:-1], dtype)
    return torch.zeros((), dtype=getattr(torch, dtype)).element_size()


@tensor_bytes.variant
def with_numpy(shape: list[int], dtype: str) -> np.int64:
    for eight in ("float64", "int64"):
        if dtype == eight:
            return np.prod(shape, dtype=np.int64) * 8
    each = {"float32": 4, "float16": 2, "bfloat16": 2}.get(dtype, 1)
    return np.prod(shape, dtype=np.int64) * each


gpt3_matrix_mib = value_exercise(
    "gpt3_matrix_mib",
    points=1,
    minutes=2,
    difficulty=1,
    reference=lambda: 12288 * 4 * 12288 * 4 // 2**20,
    hints=["12,288 × 49,152 numbers of 4 bytes.", "One MiB is 2^20 = 1,048,576 bytes."],
)
gpt3_matrix_mib.wrong_value(
    2306, "That is the figure the notes print. Multiply it out: 12,288 · 49,152 · 4 bytes is less."
)
gpt3_matrix_mib.wrong_value(2415.919104, "Those are MB, millions of bytes. A MiB is 2^20 bytes, 4.9 % more.")
gpt3_matrix_mib.wrong_value(1152, "Those are 2 bytes a number. In fp32 each takes 4.")
gpt3_matrix_mib.wrong_value(576, "That is a (12288, 12288) matrix. The feed-forward layer is four times wider.")
gpt3_matrix_mib.wrong_value(2.25, "Those are GiB. How many MiB are in one?")
gpt3_matrix_mib.wrong_value(2415919104, "Those are bytes. Divide by the bytes in one MiB.")
gpt3_matrix_mib.wrong_value(2359.296, "You divided by 1024 once and by 1000 once. A MiB is 1024 · 1024 bytes.")
gpt3_matrix_mib.wrong_value(18432, "Those are mebibits: four bytes a number, not 32.")
gpt3_matrix_mib.right_value(
    "2304", "12288 * 49152 * 4 / 1024**2", "2.25 * 1024", "12288 * 49152 >> 18", "torch.tensor(9) * 256"
)
