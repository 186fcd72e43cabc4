"""Names as drivers print them, and the accelerator each stands for, or none."""

from __future__ import annotations

import pytest
import torch

from lmcourse import device
from lmcourse.accounting.accelerators import DRIVER_NAMES, caveats, find_accelerator, recognise
from lmcourse.units import GIB

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
"""Name, GiB that torch sees, and what it is."""

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


@pytest.mark.parametrize(("name", "gib", "known"), SEEN)
def test_a_name_stands_for_a_variant(name: str, gib: float, known: str) -> None:
    assert recognise(name, memory=int(gib * GIB)) is find_accelerator(known)
    assert recognise(name) is find_accelerator(known)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_only_looks_alike_is_not_recognised(name: str) -> None:
    assert recognise(name) is None
    assert len(caveats(name, None)) == 1


@pytest.mark.parametrize(("name", "gib"), [("NVIDIA H100 80GB HBM3", 94), ("NVIDIA A40", 23), ("NVIDIA H20", 139.8)])
def test_other_memory_is_another_variant_or_a_part(name: str, gib: float) -> None:
    assert recognise(name, memory=int(gib * GIB)) is None


def test_every_name_in_the_table_was_seen() -> None:
    assert {known for _, _, known in SEEN} == set(DRIVER_NAMES.values())


def test_a_lower_limit_of_power_is_told() -> None:
    name = "NVIDIA H100 80GB HBM3"
    (told,) = caveats(name, recognise(name), power_limit=500.0)
    assert "500 W here, not 700 W" in told
    assert caveats(name, recognise(name), power_limit=700.0) == ()
    assert caveats(name, recognise(name)) == ()


def test_a_slice_is_told_as_such() -> None:
    (told,) = caveats("NVIDIA H100 80GB HBM3 MIG 3g.40gb", None)
    assert "slice" in told
    (told,) = caveats("NVIDIA H800", None)
    assert "not in the table" in told


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this test needs an NVIDIA GPU")
def test_this_gpu_is_recognised_or_said_to_be_unknown() -> None:
    gpu = device.accelerators()[0]
    found = recognise(gpu.name, memory=gpu.memory)
    assert (found is None) <= bool(caveats(gpu.name, found))
