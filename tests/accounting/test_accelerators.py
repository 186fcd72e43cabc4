"""Compare the table of accelerators with the chips' units and clocks, and test names that drivers print."""

from __future__ import annotations

import pytest
import torch

from lmcourse.accounting.accelerators import (
    ALIASES,
    DRIVER_NAMES,
    all_accelerators,
    caveats,
    find_accelerator,
    recognise,
)
from lmcourse.accounting.formats import Format
from lmcourse.base import device
from lmcourse.base.errors import CourseError
from lmcourse.base.units import GIB

UNITS: list[tuple[str, Format, int, int, float]] = [
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


def test_a_peak_is_the_number_of_units_times_their_rate() -> None:
    """They agree to the digits of data sheets; sparse or half-rate units would give twice or half as much."""
    table = {(name, precision): find_accelerator(name).peak(precision) for name, precision, *_ in UNITS}
    chips = {(name, precision): units * flops * clock * 1e9 for name, precision, units, flops, clock in UNITS}
    assert table == pytest.approx(chips, rel=0.01)


def test_a_bandwidth_is_bus_times_rate() -> None:
    table = {name: find_accelerator(name).bandwidth for name, *_ in MEMORIES}
    assert table == pytest.approx({name: bits / 8 * rate * 1e9 for name, bits, rate in MEMORIES}, rel=0.01)


def test_formats_that_a_chip_lacks_are_left_out() -> None:
    """bf16 came with Ampere, fp8 with Ada and Hopper, fp4 with Blackwell."""
    having = {
        precision: {a.name for a in all_accelerators() if precision in a.peaks} for precision in ("bf16", "fp8", "fp4")
    }
    assert not {name for name in having["bf16"] if name.startswith(("v100", "t4"))}
    assert not {name for name in having["fp8"] if name.startswith(("v100", "t4", "a1", "a4", "rtx-3", "rtx-a", "mi2"))}
    assert having["fp4"] == {"b200", "gb200", "rtx-5090"}


def test_every_accelerator_has_all_fields() -> None:
    order = ("fp32", "tf32", "bf16", "fp8", "fp4")
    for accelerator in all_accelerators():
        assert find_accelerator(accelerator.name) is accelerator
        assert all(accelerator.sources), accelerator.name
        assert accelerator.memory % 2**30 == 0, accelerator.name
        assert 8 * 2**30 <= accelerator.memory <= 512 * 2**30, accelerator.name
        assert 1e11 < accelerator.bandwidth < 1e13, accelerator.name
        peaks = [peak for precision in order for name, peak in accelerator.peaks.items() if name == precision]
        assert peaks == sorted(peaks), accelerator.name
        assert all(type(peak) is int for peak in accelerator.peaks.values()), accelerator.name


def test_a_driver_name_selects_the_family_member() -> None:
    assert find_accelerator("H100").name == "h100-sxm"
    assert find_accelerator("RTX 4090").name == "rtx-4090"
    assert find_accelerator("a100_sxm_80GB").name == "a100-sxm-80gb"
    known = {accelerator.name for accelerator in all_accelerators()}
    assert set(ALIASES.values()) <= known
    assert not set(ALIASES) & known


def test_an_unknown_accelerator_name_suggests_similar_names() -> None:
    with pytest.raises(CourseError, match=r"no accelerator 'h100-sxn'.* h100-sxm") as error:
        find_accelerator("h100-sxn")
    assert "\n" not in str(error.value)


SEEN = [
    ("Tesla V100-SXM2-16GB", 15.8, "v100-sxm-16gb"),
    ("Tesla V100-SXM2-32GB", 31.7, "v100-sxm-32gb"),
    ("Tesla V100-PCIE-16GB", 15.8, "v100-pcie-16gb"),
    ("Tesla V100-PCIE-32GB", 31.7, "v100-pcie-32gb"),
    ("Tesla V100S-PCIE-32GB", 31.7, "v100s"),
    ("Tesla T4", 14.6, "t4"),
    ("NVIDIA A10", 22.0, "a10"),
    ("NVIDIA A10G", 22.1, "a10g"),
    ("NVIDIA A40", 44.4, "a40"),
    ("NVIDIA RTX A6000", 47.5, "rtx-a6000"),
    ("RTX A6000", 47.5, "rtx-a6000"),
    ("NVIDIA GeForce RTX 3090", 23.7, "rtx-3090"),
    ("GeForce RTX 3090", 23.7, "rtx-3090"),
    ("NVIDIA GeForce RTX 4090", 23.6, "rtx-4090"),
    ("NVIDIA GeForce RTX 5090", 31.4, "rtx-5090"),
    ("NVIDIA L4", 22.2, "l4"),
    ("NVIDIA L40S", 44.4, "l40s"),
    ("A100-SXM4-40GB", 39.4, "a100-sxm-40gb"),
    ("NVIDIA A100-SXM4-40GB", 39.4, "a100-sxm-40gb"),
    ("NVIDIA A100-SXM4-80GB", 79.3, "a100-sxm-80gb"),
    ("NVIDIA A100-PCIE-40GB", 39.4, "a100-pcie-40gb"),
    ("NVIDIA A100 80GB PCIe", 79.3, "a100-pcie-80gb"),
    ("NVIDIA H100 PCIe", 79.1, "h100-pcie"),
    ("NVIDIA H100 80GB HBM3", 79.1, "h100-sxm"),
    ("NVIDIA H100 NVL", 93.1, "h100-nvl"),
    ("NVIDIA H200", 139.8, "h200"),
    ("NVIDIA H200 NVL", 139.8, "h200-nvl"),
    ("NVIDIA H20", 95.1, "h20"),
    ("NVIDIA B200", 178.4, "b200"),
    ("NVIDIA GB200", 184.0, "gb200"),
    ("AMD Instinct MI300X", 191.7, "mi300x"),
    ("AMD Instinct MI250X", 64.0, "mi250x-die"),
]
"""Driver names, GiB that torch reports, and the expected accelerators."""

UNKNOWN = [
    "NVIDIA H100",
    "NVIDIA H100 64GB HBM2",
    "NVIDIA H800",
    "NVIDIA A800-SXM4-80GB",
    "NVIDIA A100X",
    "NVIDIA L40",
    "NVIDIA GH200 480GB",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA RTX 6000 Ada Generation",
    "Tesla V100-SXM3-32GB",
    "AMD Instinct MI250X / MI250",
    "GRID A100-10C",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
    "",
]


def test_a_short_name_selects_one_variant() -> None:
    for name, gib, known in SEEN:
        assert recognise(name, memory=int(gib * GIB)) is find_accelerator(known), name
        assert recognise(name) is find_accelerator(known), name


def test_similar_names_are_not_recognised() -> None:
    assert [name for name in UNKNOWN if recognise(name) is not None or len(caveats(name, None)) != 1] == []


@pytest.mark.parametrize(("name", "gib"), [("NVIDIA H100 80GB HBM3", 94), ("NVIDIA A40", 23), ("NVIDIA H20", 139.8)])
def test_a_different_memory_size_means_another_variant_or_a_part(name: str, gib: float) -> None:
    assert recognise(name, memory=int(gib * GIB)) is None


def test_every_driver_name_is_a_known_accelerator() -> None:
    assert {known for _, _, known in SEEN} == set(DRIVER_NAMES.values())


def test_a_lower_power_limit_is_reported() -> None:
    name = "NVIDIA H100 80GB HBM3"
    (told,) = caveats(name, recognise(name), power_limit=500.0)
    assert "500 W here, not 700 W" in told
    assert caveats(name, recognise(name), power_limit=700.0) == ()
    assert caveats(name, recognise(name)) == ()


def test_a_mig_slice_is_reported() -> None:
    (told,) = caveats("NVIDIA H100 80GB HBM3 MIG 3g.40gb", None)
    assert "slice" in told
    (told,) = caveats("NVIDIA H800", None)
    assert "not in the table" in told


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this test needs an NVIDIA GPU")
def test_this_gpu_is_recognised_or_reported_as_unknown() -> None:
    gpu = device.accelerators()[0]
    found = recognise(gpu.name, memory=gpu.memory)
    assert (found is None) <= bool(caveats(gpu.name, found))
