"""Peaks of hardware by name, as in `find_accelerator("h100-sxm")`, and the GPU that a driver's name stands for.

Every peak is the dense peak in FLOP/s from the maker's data sheet or white paper. If a source prints only the peak with
2:4 sparsity, the table has half of it. Numbers that could not be verified are left out. For NVIDIA's fp16, products are
summed in fp32, as in PyTorch; GeForce cards do this at half the advertised rate, which is for sums in fp16. If there is
no GPU, `lmcourse.accounting.machine` measures the peaks.

Memory is in GiB, because chips come in powers of two: "80 GB" means 80 · 2³⁰ bytes, and the driver reserves a few of
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import torch

from lmcourse.accounting.formats import Format
from lmcourse.base import device as hardware
from lmcourse.base.errors import CourseError


@dataclass(frozen=True)
class Accelerator:
    """A GPU, or a CPU whose speed was measured.

    Attributes:
        name: its name on the command line, such as "h100-sxm".
        title: its full name and variant.
        peaks: dense matrix FLOP/s by format; formats that it does not have are left out. Many data sheets print the
            peak for 2:4 sparse matrices instead, which is twice as high.
        bandwidth: memory bandwidth in bytes/s.
        memory: the advertised size in bytes (80 GB may be 80e9 or 80·2³⁰, depending on the source).
        link: speed of the link to other accelerators in the same machine, in bytes/s for both directions together; None
            if there is no link.
        power: power limit in watts; None for a CPU.
        sources: the source of each of these numbers.
    """

    name: str
    title: str
    peaks: Mapping[Format, float]
    bandwidth: float
    memory: int
    link: float | None
    power: float | None
    sources: tuple[str, ...]

    def peak(self, precision: Format) -> float:
        """Return the dense FLOP/s in a format; raise ValueError if the accelerator cannot compute in it."""
        if precision not in self.peaks:
            raise ValueError(f"{self.title} has no {precision} units; it has {', '.join(self.peaks)}")
        return self.peaks[precision]

    def ridge(self, precision: Format) -> float:
        """Return the ridge point: the FLOPs per byte above which arithmetic is the limit, not memory bandwidth."""
        return self.peak(precision) / self.bandwidth


PCIE_3, PCIE_4, PCIE_5 = 32, 64, 128
"""GB/s of 16 PCIe lanes for both directions together: the link of a GPU without NVLink."""

Peaks = dict[Format, float]

V100_PCIE: Peaks = {"fp64": 7, "fp32": 14, "fp16": 112}
V100_SXM: Peaks = {"fp64": 7.8, "fp32": 15.7, "fp16": 125}
A100: Peaks = {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624}
H100_SXM: Peaks = {"fp64": 67, "fp32": 67, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1978.9}
H100_PCIE: Peaks = {"fp64": 51, "fp32": 51, "tf32": 378, "bf16": 756, "fp16": 756, "fp8": 1513, "int8": 1513}
HOPPER_NVL: Peaks = {"fp64": 60, "fp32": 60, "tf32": 417.5, "bf16": 835.5, "fp16": 835.5, "fp8": 1670.5, "int8": 1670.5}
MI250X: Peaks = {"fp64": 95.7, "fp32": 95.7, "bf16": 383, "fp16": 383, "int8": 383}
"""Dense TFLOP/s of MI250X. This chip and each of those above are sold as several products."""

VOLTA = "NVIDIA V100 data sheet, January 2020"
AMPERE = "NVIDIA A100 data sheet, June 2021"
HOPPER = "NVIDIA H100 data sheet, 2023; dense figures of SXM from the H100 white paper, v1.04"
BLACKWELL = "NVIDIA Blackwell data sheet, 2025"
GA102 = "NVIDIA Ampere GA102 white paper, v2.0"
TPU = "Google Cloud TPU documentation, {}: system architecture"


def find_accelerator(name: str) -> Accelerator:
    """Return the accelerator with this name; case, dashes, underscores and spaces do not matter.

    The name of a family stands for one member: "h100" for "h100-sxm". The result has the full name. An unknown name
    raises CourseError, which lists the nearest names.
    """
    bare = {_bare(known): known for known in (*_ACCELERATORS, *ALIASES)}
    known = bare.get(_bare(name))
    if known is None:
        nearest = get_close_matches(_bare(name), bare, n=3, cutoff=0.0)
        raise CourseError(f"There is no accelerator {name!r}. The nearest are {', '.join(bare[n] for n in nearest)}.")
    return _ACCELERATORS[ALIASES.get(known, known)]


def all_accelerators() -> list[Accelerator]:
    """Return all accelerators of the table, sorted by maker and age."""
    return list(_ACCELERATORS.values())


def _bare(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())


def _entry(
    name: str,
    title: str,
    tflops: Peaks,
    gib: int,
    bandwidth: float,
    link: float | None,
    watts: float | None,
    source: str,
) -> Accelerator:
    """Make an accelerator from peaks in TFLOP/s, memory in GiB, and bandwidth and link in GB/s."""
    peaks = {precision: round(peak * 1e12) for precision, peak in tflops.items()}
    speed = None if link is None else link * 1e9
    return Accelerator(name, title, peaks, bandwidth * 1e9, gib * 2**30, speed, watts, (source,))


# name, title, peaks, memory, bandwidth, link, power, source
# fmt: off
_ENTRIES = (
    _entry("v100-pcie-16gb", "NVIDIA V100 PCIe 16 GB", V100_PCIE, 16, 900, PCIE_3, 250, VOLTA),
    _entry("v100-pcie-32gb", "NVIDIA V100 PCIe 32 GB", V100_PCIE, 32, 900, PCIE_3, 250, VOLTA),
    _entry("v100-sxm-16gb", "NVIDIA V100 SXM2 16 GB", V100_SXM, 16, 900, 300, 300, VOLTA),
    _entry("v100-sxm-32gb", "NVIDIA V100 SXM2 32 GB", V100_SXM, 32, 900, 300, 300, VOLTA),
    _entry("v100s", "NVIDIA V100S PCIe", {"fp64": 8.2, "fp32": 16.4, "fp16": 130}, 32, 1134, PCIE_3, 250, VOLTA),
    _entry("t4", "NVIDIA T4", {"fp32": 8.1, "fp16": 65, "int8": 130}, 16, 320, PCIE_3, 70,
           "NVIDIA T4 data sheet, 2019; bandwidth from the Turing white paper"),
    _entry("a10", "NVIDIA A10", {"fp32": 31.2, "tf32": 62.5, "bf16": 125, "fp16": 125, "int8": 250}, 24, 600, PCIE_4,
           150, "NVIDIA A10 data sheet, 2021"),
    _entry("a10g", "NVIDIA A10G", {"fp32": 35, "tf32": 35, "bf16": 70, "fp16": 70, "int8": 140}, 24, 600, PCIE_4,
           300, "NVIDIA A10G data sheet, 2021"),
    _entry("a40", "NVIDIA A40", {"fp32": 37.4, "tf32": 74.8, "bf16": 149.7, "fp16": 149.7, "int8": 299.3}, 48, 696,
           112.5, 300, "NVIDIA A40 data sheet, 2021"),
    _entry("rtx-a6000", "NVIDIA RTX A6000", {"fp32": 38.7, "tf32": 77.4, "bf16": 154.8, "fp16": 154.8, "int8": 309.7},
           48, 768, 112.5, 300, GA102),
    _entry("rtx-3090", "NVIDIA GeForce RTX 3090",
           {"fp32": 35.6, "tf32": 35.6, "bf16": 71, "fp16": 71, "int8": 284}, 24, 936, 112.5, 350, GA102),
    _entry("a100-pcie-40gb", "NVIDIA A100 PCIe 40 GB", A100, 40, 1555, 600, 250, AMPERE),
    _entry("a100-pcie-80gb", "NVIDIA A100 PCIe 80 GB", A100, 80, 1935, 600, 300, AMPERE),
    _entry("a100-sxm-40gb", "NVIDIA A100 SXM4 40 GB", A100, 40, 1555, 600, 400, AMPERE),
    _entry("a100-sxm-80gb", "NVIDIA A100 SXM4 80 GB", A100, 80, 2039, 600, 400, AMPERE),
    _entry("l4", "NVIDIA L4", {"fp32": 30.3, "tf32": 60, "bf16": 121, "fp16": 121, "fp8": 242.5, "int8": 242.5},
           24, 300, PCIE_4, 72, "NVIDIA L4 data sheet, 2023"),
    _entry("l40s", "NVIDIA L40S",
           {"fp32": 91.6, "tf32": 183, "bf16": 362, "fp16": 362, "fp8": 733, "int8": 733}, 48, 864, PCIE_4, 350,
           "NVIDIA L40S data sheet, 2023"),
    _entry("rtx-4090", "NVIDIA GeForce RTX 4090",
           {"fp32": 82.6, "tf32": 82.6, "bf16": 165.2, "fp16": 165.2, "fp8": 330.3, "int8": 660.6}, 24, 1008, PCIE_4,
           450, "NVIDIA Ada white paper, v2.01; fp8 with sums in fp32"),
    _entry("h100-pcie", "NVIDIA H100 PCIe", H100_PCIE, 80, 2000, 600, 350, HOPPER),
    _entry("h100-nvl", "NVIDIA H100 NVL", HOPPER_NVL, 94, 3900, 600, 400, HOPPER),
    _entry("h100-sxm", "NVIDIA H100 SXM5", H100_SXM, 80, 3350, 900, 700, HOPPER),
    _entry("h200-nvl", "NVIDIA H200 NVL", HOPPER_NVL, 141, 4800, 900, 600, "NVIDIA H200 data sheet, 2024"),
    _entry("h200", "NVIDIA H200 SXM", H100_SXM, 141, 4800, 900, 700,
           "NVIDIA H200 data sheet, 2024; the compute units are the H100's"),
    _entry("h20", "NVIDIA H20", {"fp32": 44, "tf32": 74, "bf16": 148, "fp16": 148, "fp8": 296, "int8": 296},
           96, 4000, 900, 400, "NVIDIA publishes none for everybody: what sellers quote from its data sheet, 2024"),
    _entry("b200", "NVIDIA B200 (HGX)",
           {"fp32": 75, "tf32": 1100, "bf16": 2250, "fp16": 2250, "fp8": 4500, "int8": 4500, "fp4": 9000},
           180, 7700, 1800, 1000, BLACKWELL),
    _entry("gb200", "NVIDIA GB200, one of its GPUs",
           {"fp32": 80, "tf32": 1250, "bf16": 2500, "fp16": 2500, "fp8": 5000, "int8": 5000, "fp4": 10000},
           186, 8000, 1800, 1200, BLACKWELL),
    _entry("rtx-5090", "NVIDIA GeForce RTX 5090",
           {"fp32": 104.8, "tf32": 104.8, "bf16": 209.5, "fp16": 209.5, "fp8": 419, "int8": 838, "fp4": 1676},
           32, 1792, PCIE_5, 575, "NVIDIA RTX Blackwell white paper, v1.1; fp8 with sums in fp32"),
    _entry("mi250x", "AMD Instinct MI250X, both dies", MI250X, 128, 3276.8, 800, 500,
           "AMD Instinct MI200 series data sheet, 2022"),
    _entry("mi250x-die", "AMD Instinct MI250X, one of its two dies: torch takes each for a GPU",
           {precision: peak / 2 for precision, peak in MI250X.items()}, 64, 1638.4, None, None,
           "half of the AMD Instinct MI200 series data sheet, 2022"),
    _entry("mi300x", "AMD Instinct MI300X",
           {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9, "int8": 2614.9},
           192, 5300, 896, 750, "AMD Instinct MI300X data sheet, 2023"),
    _entry("tpu-v4", "Google TPU v4, one chip", {"bf16": 275}, 32, 1200, None, None, TPU.format("v4")),
    _entry("tpu-v5e", "Google TPU v5e, one chip", {"bf16": 197, "int8": 393}, 16, 819, 400, None, TPU.format("v5e")),
    _entry("tpu-v5p", "Google TPU v5p, one chip", {"bf16": 459}, 95, 2765, 1200, None, TPU.format("v5p")),
    _entry("tpu-v6e", "Google TPU v6e, one chip", {"bf16": 918, "int8": 1836}, 32, 1600, 800, None, TPU.format("v6e")),
)
# fmt: on

_ACCELERATORS = {accelerator.name: accelerator for accelerator in _ENTRIES}

ALIASES = {
    "v100": "v100-sxm-32gb",
    "v100-sxm": "v100-sxm-32gb",
    "v100-pcie": "v100-pcie-32gb",
    "a6000": "rtx-a6000",
    "a100": "a100-sxm-80gb",
    "a100-sxm": "a100-sxm-80gb",
    "a100-pcie": "a100-pcie-80gb",
    "a100-40gb": "a100-sxm-40gb",
    "a100-80gb": "a100-sxm-80gb",
    "h100": "h100-sxm",
    "h200-sxm": "h200",
    "3090": "rtx-3090",
    "4090": "rtx-4090",
    "5090": "rtx-5090",
    "trillium": "tpu-v6e",
}
"""Names of families and short names, each with the accelerator that it stands for."""


DRIVER_NAMES = {
    "V100-PCIE-16GB": "v100-pcie-16gb",
    "V100-PCIE-32GB": "v100-pcie-32gb",
    "V100-SXM2-16GB": "v100-sxm-16gb",
    "V100-SXM2-32GB": "v100-sxm-32gb",
    "V100S-PCIE-32GB": "v100s",
    "T4": "t4",
    "A10": "a10",
    "A10G": "a10g",
    "A40": "a40",
    "RTX A6000": "rtx-a6000",
    "GeForce RTX 3090": "rtx-3090",
    "A100-PCIE-40GB": "a100-pcie-40gb",
    "A100 80GB PCIe": "a100-pcie-80gb",
    "A100-SXM4-40GB": "a100-sxm-40gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "L4": "l4",
    "L40S": "l40s",
    "GeForce RTX 4090": "rtx-4090",
    "H100 PCIe": "h100-pcie",
    "H100 NVL": "h100-nvl",
    "H100 80GB HBM3": "h100-sxm",
    "H200": "h200",
    "H200 NVL": "h200-nvl",
    "H20": "h20",
    "B200": "b200",
    "GB200": "gb200",
    "GeForce RTX 5090": "rtx-5090",
    "Instinct MI250X": "mi250x-die",
    "Instinct MI300X": "mi300x",
}
"""Names that drivers print, without the prefix "NVIDIA" (in older drivers "Tesla")."""

MEMORY_RATIO_RANGE = (0.88, 1.02)
"""Memory that a driver reports, as a fraction of the advertised memory: error correction uses up to an eighth."""

MIN_POWER_RATIO = 0.99
MIG_MARKER = " MIG "


def recognise(name: str, *, memory: int | None = None) -> Accelerator | None:
    """Return the accelerator for a driver's name; None if the table lacks it, or if it is only a part of a GPU.

    If the result is None, tell the user, and suggest to measure the machine (`lmcourse bench`). `caveats` lists reasons
    why a recognised GPU may stay below its peak.

    Args:
        name: as `torch.cuda.get_device_name` or `nvidia-smi` print it.
        memory: bytes that the driver reports. Much more or less than expected means another variant or a virtual part.
    """
    known = DRIVER_NAMES.get(re.sub(r"^(NVIDIA|Tesla|AMD) ", "", name.strip()))
    if known is None:
        return None
    found = find_accelerator(known)
    usual = memory is None or MEMORY_RATIO_RANGE[0] <= memory / found.memory <= MEMORY_RATIO_RANGE[1]
    return found if usual else None


def caveats(name: str, found: Accelerator | None, *, power_limit: float | None = None) -> tuple[str, ...]:
    """Return sentences, if any, on how a GPU differs from the table: a power limit in watts, or a part of a GPU.

    `found` is the result of `recognise` for this name.
    """
    if MIG_MARKER in name:
        return (f"{name} is a slice of a GPU (MIG): the peak of the whole does not hold for it; measure it.",)
    if found is None:
        where = "is not in the table of accelerators, or not with this memory"
        return (f"{name} {where}. Its peak is unknown; measure it.",)
    if power_limit is not None and found.power is not None and power_limit < MIN_POWER_RATIO * found.power:
        return (f"{found.title} may draw {power_limit:g} W here, not {found.power:g} W: its peak may not be reached.",)
    return ()


def present_gpu(device: torch.device) -> tuple[Accelerator | None, tuple[str, ...]]:
    """Return the accelerator of a CUDA device, if the table has it, and its caveats."""
    index = torch.cuda.current_device() if device.index is None else device.index
    gpu = hardware.accelerators()[index]
    found = recognise(gpu.name, memory=gpu.memory)
    return found, caveats(gpu.name, found, power_limit=hardware.power_limit(index))
