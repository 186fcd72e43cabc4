"""The table of accelerators, against arithmetic from what the chips are made of."""

from __future__ import annotations

import pytest

from lmcourse.accounting.accelerators import ALIASES, Accelerator, all_accelerators, find_accelerator
from lmcourse.accounting.formats import Format
from lmcourse.errors import CourseError

UNITS = [
    ("v100-pcie-16gb", "fp16", 80, 1024, 1.370),
    ("v100-sxm-32gb", "fp16", 80, 1024, 1.530),
    ("v100s", "fp16", 80, 1024, 1.597),
    ("t4", "fp16", 40, 1024, 1.590),
    ("a10", "bf16", 72, 1024, 1.695),
    ("a10g", "bf16", 80, 512, 1.710),
    ("a40", "bf16", 84, 1024, 1.740),
    ("rtx-a6000", "bf16", 84, 1024, 1.800),
    ("rtx-3090", "bf16", 82, 512, 1.695),
    ("a100-sxm-80gb", "bf16", 108, 2048, 1.410),
    ("a100-sxm-80gb", "tf32", 108, 1024, 1.410),
    ("a100-sxm-80gb", "fp32", 108, 128, 1.410),
    ("l4", "bf16", 58, 1024, 2.040),
    ("l40s", "bf16", 142, 1024, 2.490),
    ("rtx-4090", "bf16", 128, 512, 2.520),
    ("h100-pcie", "bf16", 114, 4096, 1.620),
    ("h100-sxm", "bf16", 132, 4096, 1.830),
    ("h100-sxm", "tf32", 132, 2048, 1.830),
    ("h100-sxm", "fp8", 132, 8192, 1.830),
    ("h200", "bf16", 132, 4096, 1.830),
    ("rtx-5090", "bf16", 170, 512, 2.407),
    ("mi250x", "bf16", 220, 1024, 1.700),
    ("mi300x", "bf16", 304, 2048, 2.100),
    ("mi300x", "fp32", 304, 256, 2.100),
    ("tpu-v4", "bf16", 8, 2 * 128 * 128, 1.050),
    ("tpu-v5e", "bf16", 4, 2 * 128 * 128, 1.500),
    ("tpu-v5p", "bf16", 8, 2 * 128 * 128, 1.750),
]
"""Accelerator, format, units, FLOPs of a unit per cycle, GHz: from the white papers' descriptions of the chips."""

MEMORIES = [
    ("v100-sxm-16gb", 4096, 1.754),
    ("t4", 256, 10.0),
    ("a10", 384, 12.5),
    ("a40", 384, 14.5),
    ("rtx-3090", 384, 19.5),
    ("a100-sxm-40gb", 5120, 2.43),
    ("a100-sxm-80gb", 5120, 3.186),
    ("l4", 192, 12.5),
    ("l40s", 384, 18.0),
    ("rtx-4090", 384, 21.0),
    ("h100-sxm", 5120, 5.23),
    ("h200", 6144, 6.25),
    ("rtx-5090", 512, 28.0),
    ("mi250x", 8192, 3.2),
    ("mi300x", 8192, 5.2),
]
"""Accelerator, bits of the bus, Gbit/s of each."""


@pytest.mark.parametrize(("name", "precision", "units", "flops", "clock"), UNITS)
def test_a_peak_is_units_times_their_rate(name: str, precision: Format, units: int, flops: int, clock: float) -> None:
    """Within the digits of data sheets. A sparse or half-rate figure would be off by a factor of two."""
    assert find_accelerator(name).peak(precision) == pytest.approx(units * flops * clock * 1e9, rel=0.01)


@pytest.mark.parametrize(("name", "bits", "rate"), MEMORIES)
def test_a_bandwidth_is_bus_times_rate(name: str, bits: int, rate: float) -> None:
    assert find_accelerator(name).bandwidth == pytest.approx(bits / 8 * rate * 1e9, rel=0.01)


def test_ridges_of_the_a100() -> None:
    """195 and 156 FLOPs per byte are printed with bandwidths rounded to 1.6 and 2.0 TB/s."""
    assert find_accelerator("a100-40gb").ridge("bf16") == pytest.approx(312e12 / 1.555e12)
    assert find_accelerator("a100-80gb").ridge("bf16") == pytest.approx(312e12 / 2.039e12)


def test_what_no_chip_has_is_left_out() -> None:
    """bf16 came with Ampere, fp8 with Ada and Hopper, fp4 with Blackwell."""
    having = {
        precision: {a.name for a in all_accelerators() if precision in a.peaks} for precision in ("bf16", "fp8", "fp4")
    }
    assert not {name for name in having["bf16"] if name.startswith(("v100", "t4"))}
    assert not {name for name in having["fp8"] if name.startswith(("v100", "t4", "a1", "a4", "rtx-3", "rtx-a", "mi2"))}
    assert having["fp4"] == {"b200", "gb200", "rtx-5090"}


@pytest.mark.parametrize("accelerator", all_accelerators(), ids=lambda a: a.name)
def test_every_entry_is_whole(accelerator: Accelerator) -> None:
    assert find_accelerator(accelerator.name) is accelerator
    assert all(accelerator.sources)
    assert accelerator.memory % 2**30 == 0
    assert 8 * 2**30 <= accelerator.memory <= 512 * 2**30
    assert 1e11 < accelerator.bandwidth < 1e13
    peaks = [
        accelerator.peaks[precision]
        for precision in ("fp32", "tf32", "bf16", "fp8", "fp4")
        if precision in accelerator.peaks
    ]
    assert peaks == sorted(peaks)
    assert all(type(peak) is int for peak in accelerator.peaks.values())


def test_a_family_stands_for_a_member_that_says_its_name() -> None:
    assert find_accelerator("H100").name == "h100-sxm"
    assert find_accelerator("RTX 4090").name == "rtx-4090"
    assert find_accelerator("a100_sxm_80GB").name == "a100-sxm-80gb"
    known = {accelerator.name for accelerator in all_accelerators()}
    assert set(ALIASES.values()) <= known
    assert not set(ALIASES) & known


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(CourseError, match=r"no accelerator 'h100-sxn'.* h100-sxm") as error:
        find_accelerator("h100-sxn")
    assert "\n" not in str(error.value)
