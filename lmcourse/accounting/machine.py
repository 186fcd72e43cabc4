"""Measure the peaks and the bandwidth of this machine, and return them as an `Accelerator`.

No program reaches the peaks of data sheets. This module measures the best speed of torch's matrix product and copy, so
a fraction of it tells you how good a model's code is, not how good the libraries are. The shortest of several times
counts, because other programs on the machine only make times longer.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.formats import DTYPES, Format
from lmcourse.accounting.timing import Stopwatch, time_it
from lmcourse.base import device as hardware

MEASURED_FORMATS: Mapping[str, tuple[Format, ...]] = {
    "cpu": ("fp64", "fp32", "bf16"),
    "mps": ("fp32", "bf16", "fp16"),
    "cuda": ("fp32", "tf32", "bf16", "fp16"),
}
"""The formats to measure on each type of device. CPUs use fp16 only for storage."""

SIZES = {"cpu": (512, 1024, 2048), "mps": (1024, 2048, 4096), "cuda": (2048, 4096, 8192)}
COPY_BYTES = {"cpu": 2**28, "mps": 2**28, "cuda": 2**30}
"""Bytes to copy: too many for the caches."""

SECONDS, QUICK_SECONDS = 1.0, 0.1
"""Duration of a measurement in seconds, and of a quick measurement."""


def measure_machine(quick: bool = False, *, device: torch.device | str | None = None) -> Accelerator:
    """Measure matrix products in every format, and the bandwidth of a copy.

    Args:
        quick: measure for a shorter time and without the largest products: a few seconds on two cores instead of half a
            minute.
        device: the device to measure; by default the best one present.
    """
    where = torch.device(device) if device is not None else hardware.best_device()
    seconds = QUICK_SECONDS if quick else SECONDS
    sizes = SIZES[where.type][: 2 if quick else None]
    title, memory = title_and_memory(where)
    return Accelerator(
        name="this-machine",
        title=title,
        peaks={
            precision: max(matmul_rates(precision, sizes, device=where, seconds=seconds).values())
            for precision in MEASURED_FORMATS[where.type]
            if has_units(precision, where)
        },
        bandwidth=copy_bandwidth(COPY_BYTES[where.type] // (4 if quick else 1), device=where, seconds=seconds),
        memory=memory,
        link=None,
        power=hardware.power_limit(where.index or 0) if where.type == "cuda" else None,
        sources=(_source(where),),
    )


def matmul_rates(
    precision: Format,
    sizes: Sequence[int],
    *,
    device: torch.device | str = "cpu",
    seconds: float = SECONDS,
    stopwatch: Stopwatch | None = None,
) -> dict[int, float]:
    """Return the FLOP/s of the product of two square matrices by width n: 2·n³ FLOPs in the shortest time.

    Args:
        precision: the format of the matrices. "tf32" multiplies fp32 matrices with torch's precision "high".
        sizes: the widths to measure.
        device, seconds, stopwatch: as in `time_it`.
    """
    dtype = DTYPES["fp32" if precision == "tf32" else precision]
    rates = {}
    with _fp32_precision("high" if precision == "tf32" else "highest"):
        for width in sizes:
            left, right = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
            out = torch.empty_like(left)
            product = partial(torch.mm, left, right, out=out)
            timing = time_it(product, warmup=2, repeats=3, seconds=seconds, device=device, stopwatch=stopwatch)
            rates[width] = 2 * width**3 / timing.fastest
    return rates


def copy_bandwidth(
    size: int,
    *,
    device: torch.device | str = "cpu",
    seconds: float = SECONDS,
    stopwatch: Stopwatch | None = None,
) -> float:
    """Return the bytes/s of a copy of `size` bytes. Reading and writing both count."""
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    timing = time_it(lambda: target.copy_(source), repeats=3, seconds=seconds, device=device, stopwatch=stopwatch)
    return 2 * size / timing.fastest


def title_and_memory(device: torch.device) -> tuple[str, int]:
    """Return the name of a device, and its memory in bytes."""
    if device.type == "cpu":
        cores = hardware.usable_cores()
        return f"{hardware.cpu_name()}, {cores} core{'' if cores == 1 else 's'}", hardware.main_memory()
    gpu = hardware.accelerators()[device.index or 0]
    return gpu.name, gpu.memory or hardware.main_memory()


def has_units(precision: Format, device: torch.device) -> bool:
    """Return True if the device has hardware for a format. NVIDIA GPUs have bf16 and TF32 since Ampere."""
    if device.type != "cuda" or precision not in ("bf16", "tf32") or torch.version.hip:
        return True
    return torch.cuda.get_device_capability(device) >= (8, 0)


def _source(device: torch.device) -> str:
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    return f"measured on {datetime.date.today().isoformat()} with torch {torch.__version__}{threads}"


@contextmanager
def _fp32_precision(precision: str) -> Iterator[None]:
    """Set `torch.set_float32_matmul_precision` in a `with` block, and restore it afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
