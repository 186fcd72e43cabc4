"""Compare the derived limits of every format with torch.finfo and published tables."""

import pytest
import torch

from lmcourse.numerics import E4M3, FORMATS, FP16, TF32, FloatFormat, find_format

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
