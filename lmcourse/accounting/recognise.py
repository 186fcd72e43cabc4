"""Recognise a GPU in the table of accelerators by its driver's name and memory.

Never a guess: variants differ by a third.
"""

from __future__ import annotations

import re

import torch

from lmcourse import device as hardware
from lmcourse.accounting.accelerator import Accelerator
from lmcourse.accounting.accelerators import find_accelerator

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
"""What drivers call them, without the maker: "NVIDIA H100 PCIe", and "Tesla T4" in former days."""

MEMORY_RATIO_RANGE = (0.88, 1.02)
"""A driver's memory as a share of what is sold: error correction takes up to an eighth of GDDR."""

MIN_POWER_RATIO = 0.99
MIG_MARKER = " MIG "


def recognise(name: str, *, memory: int | None = None) -> Accelerator | None:
    """The accelerator that a driver's name stands for; None if it is not in the table or not a whole one.

    Where it is None, say so, and offer to measure the machine (`lmcourse bench`). `caveats` says what keeps one that
    was recognised below its peak.

    Args:
        name: as `torch.cuda.get_device_name` or `nvidia-smi` print it.
        memory: bytes that the driver says it has. One with much more or less is another variant, or a virtual part.
    """
    known = DRIVER_NAMES.get(re.sub(r"^(NVIDIA|Tesla|AMD) ", "", name.strip()))
    if known is None:
        return None
    found = find_accelerator(known)
    usual = memory is None or MEMORY_RATIO_RANGE[0] <= memory / found.memory <= MEMORY_RATIO_RANGE[1]
    return found if usual else None


def caveats(name: str, found: Accelerator | None, *, power_limit: float | None = None) -> tuple[str, ...]:
    """Why a GPU is not what its name says, in sentences for its owner; none if all is as in the table.

    Args:
        name: as `recognise` was given it.
        found: what it answered.
        power_limit: watts that the GPU may draw.
    """
    if MIG_MARKER in name:
        return (f"{name} is a slice of a GPU (MIG): the peak of the whole does not hold for it; measure it.",)
    if found is None:
        return (
            f"{name} is not in the table of accelerators, or not with this memory. Its peak is unknown; measure it.",
        )
    if power_limit is not None and found.power is not None and power_limit < MIN_POWER_RATIO * found.power:
        return (f"{found.title} may draw {power_limit:g} W here, not {found.power:g} W: its peak may not be reached.",)
    return ()


def present_gpu(device: torch.device) -> tuple[Accelerator | None, tuple[str, ...]]:
    """The accelerator that a CUDA device is, as far as it is in the table, and the caveats."""
    index = torch.cuda.current_device() if device.index is None else device.index
    gpu = hardware.accelerators()[index]
    found = recognise(gpu.name, memory=gpu.memory)
    return found, caveats(gpu.name, found, power_limit=hardware.power_limit(index))
