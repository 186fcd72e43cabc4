"""Compare every code of the small formats, random codes of the large ones, and all limits, with PyTorch's."""

import itertools
import math
import struct

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lmcourse.numerics import (
    BF16,
    E4M3,
    E5M2,
    FORMATS,
    FP16,
    FP32,
    FP64,
    TF32,
    FloatFormat,
    count_between,
    decode,
    encode,
    fields,
    find_format,
    infinity_code,
    neighbours,
    values_between,
)

SMALL = [E4M3, E5M2, FP16, BF16]
by_name = pytest.mark.parametrize("format", SMALL, ids=lambda format: format.name)
floats32 = st.floats(width=32, allow_nan=False)


def bits_of(tensor: torch.Tensor) -> list[int]:
    width = 8 * tensor.element_size()
    integers = tensor.view({8: torch.uint8, 16: torch.int16}[width]).tolist()
    return [integer % 2**width for integer in integers]


def torch_values(format: FloatFormat) -> list[float]:
    integer = torch.uint8 if format.bits == 8 else torch.int16
    codes = torch.arange(2**format.bits, dtype=torch.int32).to(integer)
    return codes.view(format.torch_dtype).double().tolist()


def same(a: float, b: float) -> bool:
    """Return True if two values are equal, where -0.0 differs from 0.0 and NaN equals NaN."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@by_name
def test_every_code_decodes_as_in_torch(format: FloatFormat) -> None:
    for code, expected in enumerate(torch_values(format)):
        assert same(decode(code, format), expected), f"{format.name} {code:#x}"


@by_name
def test_every_value_encodes_to_the_code_it_came_from(format: FloatFormat) -> None:
    for code in range(2**format.bits):
        value = decode(code, format)
        if not math.isnan(value):
            assert encode(value, format) == code


@by_name
def test_kinds_match_torchs(format: FloatFormat) -> None:
    smallest_normal = torch.finfo(format.torch_dtype).tiny
    for code, value in enumerate(torch_values(format)):
        kind = fields(code, format).kind
        assert (kind == "nan") == math.isnan(value)
        assert (kind == "infinity") == math.isinf(value)
        assert (kind == "zero") == (value == 0)
        assert (kind == "subnormal") == (0 < abs(value) < smallest_normal)


@given(st.integers(0, 2**32 - 1))
@example(0x7F800000)
@example(0x00000001)
def test_fp32_codes_match_struct(code: int) -> None:
    (expected,) = struct.unpack("<f", struct.pack("<I", code))
    assert same(decode(code, FP32), expected)
    if not math.isnan(expected):
        assert encode(expected, FP32) == code


@given(st.integers(0, 2**64 - 1))
def test_fp64_codes_match_struct(code: int) -> None:
    (expected,) = struct.unpack("<d", struct.pack("<Q", code))
    assert same(decode(code, FP64), expected)
    if not math.isnan(expected):
        assert encode(expected, FP64) == code


@by_name
def test_every_halfway_point_and_its_fp32_neighbours_round_as_in_torch(format: FloatFormat) -> None:
    values = values_between(-format.max_finite, format.max_finite, format)
    if format.bits == 16:
        values = values[::61] + values[-70:]
    top = format.max_finite + (values[-1] - values[-2])
    halfway = torch.tensor([(a + b) / 2 for a, b in itertools.pairwise(values)] + [(values[-1] + top) / 2]).float()
    upwards = torch.nextafter(halfway, torch.tensor(math.inf))
    downwards = torch.nextafter(halfway, torch.tensor(-math.inf))
    points = torch.cat([halfway, upwards, downwards])
    assert [encode(point, format) for point in points.tolist()] == bits_of(points.to(format.torch_dtype))


def test_e4m3_saturates_and_other_formats_overflow() -> None:
    assert decode(encode(1e9, E4M3), E4M3) == 448
    assert decode(encode(-math.inf, E4M3), E4M3) == -448
    assert decode(encode(61439.0, E5M2), E5M2) == 57344
    assert decode(encode(61440.0, E5M2), E5M2) == math.inf


def test_rounding_once_is_not_rounding_through_fp32() -> None:
    just_above_halfway = 1 + 2**-8 + 2**-40
    assert decode(encode(just_above_halfway, BF16), BF16) == 1 + 2**-7
    assert torch.tensor([just_above_halfway], dtype=torch.float64).bfloat16().item() == 1.0


@pytest.mark.parametrize("format", [*SMALL, FP32, FP64], ids=lambda format: format.name)
def test_nan_round_trips(format: FloatFormat) -> None:
    assert math.isnan(decode(encode(math.nan, format), format))


@pytest.mark.parametrize("code", [-1, 256])
def test_a_code_that_does_not_fit_is_rejected(code: int) -> None:
    with pytest.raises(ValueError, match="does not fit in the 8 bits of e4m3"):
        decode(code, E4M3)


def test_values_between_are_inside_the_interval() -> None:
    assert values_between(1.0, 2.0, E5M2) == [1.0, 1.25, 1.5, 1.75, 2.0]
    assert values_between(1.2, 1.3, E5M2) == [1.25]
    assert values_between(1.1, 1.2, E5M2) == []
    assert values_between(-1e9, -40000.0, E5M2) == [-57344.0, -49152.0, -40960.0]
    assert count_between(1.0, 2.0, FP32) == 2**23 + 1
    with pytest.raises(ValueError, match="empty"):
        values_between(2.0, 1.0, E5M2)


@by_name
@given(value=floats32)
def test_neighbours_are_the_adjacent_values(format: FloatFormat, value: float) -> None:
    code = encode(max(-format.max_finite, min(format.max_finite, value)), format)
    below, above = neighbours(code, format)
    centre = decode(code, format)
    if abs(centre) < format.max_finite:
        assert below < centre < above
        assert values_between(below, above, format) == [v for v in (below, centre, above) if math.isfinite(v)]


def test_beyond_the_largest_value_comes_infinity_or_nan() -> None:
    assert neighbours(encode(57344.0, E5M2), E5M2) == (49152.0, math.inf)
    below, above = neighbours(encode(448.0, E4M3), E4M3)
    assert below == 416.0
    assert math.isnan(above)
    with pytest.raises(ValueError, match="infinity"):
        neighbours(infinity_code(FP16), FP16)


IN_TORCH = [format for format in FORMATS.values() if format.torch_dtype is not None]


@pytest.mark.parametrize("format", IN_TORCH, ids=lambda format: format.name)
def test_limits_agree_with_torch(format: FloatFormat) -> None:
    limits = torch.finfo(format.torch_dtype)
    assert format.bits == limits.bits
    assert format.max_finite == limits.max
    assert format.min_normal == limits.tiny
    assert format.min_subnormal == limits.smallest_normal * limits.eps
    assert format.epsilon == limits.eps


def test_tf32_has_the_range_of_fp32_and_the_precision_of_fp16() -> None:
    assert TF32.bits == 19
    assert TF32.min_normal == FORMATS["fp32"].min_normal
    assert TF32.epsilon == FP16.epsilon


def test_an_ieee_e4m3_would_stop_at_240() -> None:
    assert FloatFormat("ieee-e4m3", 4, 3).max_finite == 240
    assert E4M3.max_finite == 448


def test_an_unknown_format_suggests_similar_names_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"'float16'; did you mean fp16") as caught:
        find_format("float16")
    assert "\n" not in str(caught.value)


def test_an_unrecognisable_format_lists_all_names() -> None:
    with pytest.raises(ValueError, match="fp64, fp32, tf32, fp16, bf16, e4m3, e5m2"):
        find_format("zzz")


@pytest.mark.parametrize("widths", [(1, 3), (4, 0)])
def test_widths_without_normal_numbers_are_rejected(widths: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 2 exponent bits"):
        FloatFormat("tiny", *widths)
