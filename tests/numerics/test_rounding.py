"""Compare rounding with torch's casts, ulp with torch.nextafter, and stall points with repeated addition."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcourse.numerics import (
    BF16,
    E4M3,
    E5M2,
    FP16,
    FP32,
    FP64,
    TF32,
    FloatFormat,
    decode,
    round_to,
    running_sum,
    stall_point,
    ulp,
)

IN_TORCH = pytest.mark.parametrize("format", [FP32, FP16, BF16, E4M3, E5M2], ids=lambda format: format.name)


@IN_TORCH
@given(value=st.floats(width=32, allow_nan=False))
def test_rounding_agrees_with_torchs_cast(format: FloatFormat, value: float) -> None:
    cast = torch.tensor([value], dtype=torch.float32).to(format.torch_dtype).double().item()
    assert round_to(value, format) == cast
    assert math.copysign(1, round_to(value, format)) == math.copysign(1, cast)


@given(value=st.floats())
def test_fp64_values_reach_fp32_and_fp64_as_in_torch(value: float) -> None:
    cast = torch.tensor([value], dtype=torch.float64).float().double().item()
    assert round_to(value, FP32) == cast or (math.isnan(value) and math.isnan(cast))
    assert round_to(value, FP64) == value or math.isnan(value)


def test_ties_go_to_the_even_neighbour() -> None:
    assert round_to(2049.0, FP16) == 2048.0
    assert round_to(2051.0, FP16) == 2052.0
    assert round_to(1 + 2**-11, TF32) == 1.0
    assert round_to(1 + 3 * 2**-11, TF32) == 1 + 2**-9


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_ulp_is_the_gap_that_nextafter_finds(value: float) -> None:
    magnitude = torch.tensor(abs(value), dtype=torch.float32)
    if magnitude.item() < FP32.max_finite:
        gap = torch.nextafter(magnitude, torch.tensor(math.inf)).double() - magnitude.double()
        assert ulp(value, FP32) == gap.item()


def test_ulp_is_right_at_powers_of_two_subnormals_and_the_maximum() -> None:
    assert ulp(1.0, BF16) == BF16.epsilon
    assert ulp(-math.nextafter(1.0, 0.0), BF16) == BF16.epsilon / 2
    assert ulp(0.0, FP16) == ulp(FP16.min_normal, FP16) == FP16.min_subnormal
    assert ulp(448.0, E4M3) == 32


@pytest.mark.parametrize("value", [math.inf, math.nan, 449.0])
def test_ulp_of_an_unrepresentable_value_is_rejected(value: float) -> None:
    with pytest.raises(ValueError, match="not a finite value of e4m3"):
        ulp(value, E4M3)


@pytest.mark.parametrize(
    ("format", "total"), [(BF16, "4.0000"), (FP16, "9.9531"), (FP32, "10.0001")], ids=["bf16", "fp16", "fp32"]
)
def test_sums_of_a_thousand_hundredths_match_torch(format: FloatFormat, total: str) -> None:
    sums = running_sum(0.01, 1000, format)
    in_torch = torch.zeros((), dtype=format.torch_dtype)
    for ours in sums:
        in_torch = in_torch + torch.tensor(0.01, dtype=format.torch_dtype)
        assert ours == in_torch.item()
    assert f"{sums[-1]:.4f}" == total


def stall_by_adding(increment: float, format: FloatFormat) -> float:
    total, following = 0.0, round_to(increment, format)
    step = following
    while following != total:
        total, following = following, round_to(following + step, format)
    return total


@pytest.mark.parametrize("format", [E4M3, E5M2], ids=lambda format: format.name)
def test_stall_points_of_all_fp8_increments_match_adding(format: FloatFormat) -> None:
    for code in range(2 ** (format.bits - 1)):
        increment = decode(code, format)
        if math.isfinite(increment):
            assert stall_point(increment, format) == stall_by_adding(increment, format)
            assert stall_point(-increment, format) == stall_by_adding(-increment, format)


@pytest.mark.parametrize("increment", [0.01, 1.0, 0.75, 3.0, -0.3, 1e-7, 6e4, 1e-41])
@pytest.mark.parametrize("format", [FP16, BF16], ids=lambda format: format.name)
def test_stall_points_of_16_bit_formats_match_adding(increment: float, format: FloatFormat) -> None:
    assert stall_point(increment, format) == stall_by_adding(increment, format)


def test_the_stall_point_of_counting_in_fp32_is_two_to_the_24() -> None:
    assert stall_point(1.0, FP32) == 2.0**24
    assert stall_point(1.0, FP64) == 2.0**53
    assert stall_point(FP64.max_finite, FP64) == math.inf


@pytest.mark.parametrize("increment", [math.nan, math.inf, 1e30])
def test_the_stall_point_of_a_non_finite_increment_is_rejected(increment: float) -> None:
    with pytest.raises(ValueError, match="not a finite value of fp16"):
        stall_point(increment, FP16)
