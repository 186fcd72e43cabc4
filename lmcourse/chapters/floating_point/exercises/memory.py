"""Exercises on how many bytes a tensor takes."""

from __future__ import annotations

import math
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise, value_exercise

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "int64": 8, "bool": 1}


def _bytes(shape: list[int], dtype: str) -> int:
    return math.prod(shape) * torch.empty((), dtype=getattr(torch, dtype)).element_size()


def _byte_cases(random: Random) -> list[Case]:
    shapes = [[random.randint(1, 9) for _ in range(random.randint(1, 4))] for _ in BYTES]
    cases = [case("every dtype", shape, dtype) for shape, dtype in zip(shapes, BYTES, strict=True)]
    return [
        *cases,
        case("scalars and empty tensors", [], "float64"),
        case("scalars and empty tensors", [3, 0], "int64"),
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
        case("one FFN matrix of GPT-3 in fp32", [12288, 49152], "float32"),
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


@tensor_bytes.misconception("You count four bytes for every dtype. 16-bit floats take two.")
def four_bytes_always(shape: list[int], dtype: str) -> int:
    return 4 * math.prod(shape)


@tensor_bytes.misconception("You add the sizes of the axes. A (4, 8) matrix holds 4 · 8 numbers.")
def axes_added(shape: list[int], dtype: str) -> int:
    return sum(shape) * BYTES[dtype]


@tensor_bytes.misconception("A scalar has no axes but still holds one number: the empty product is 1.")
def scalar_is_empty(shape: list[int], dtype: str) -> int:
    return _bytes(shape, dtype) if shape else 0


gpt3_matrix_mib = value_exercise(
    "gpt3_matrix_mib",
    points=1,
    minutes=2,
    difficulty=1,
    reference=lambda: 12288 * 4 * 12288 * 4 / 2**20,
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
