"""Measurements of notebook 19 that take the learner's stopwatch, and the operations that it times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

import torch

from lmcourse.accounting.accelerators import Accelerator, present_gpu
from lmcourse.accounting.formats import BYTES_PER_NUMBER, DTYPES, Format
from lmcourse.accounting.timing import Timing, synchronise
from lmcourse.base.device import cpu_name

Run = Callable[[], object]
Watch = Callable[..., float]
"""Takes a run, a function that waits for the device, a clock, and the numbers of runs; returns seconds."""


def described(device: torch.device) -> tuple[str, Accelerator | None]:
    """Return the name of a device with what is uncertain about it, and its published numbers if the course has them."""
    if device.type != "cuda":
        return cpu_name(), None
    known, caveats = present_gpu(device)
    return "; ".join([torch.cuda.get_device_name(device), *caveats]), known


def said(times: Timing) -> str:
    """Write the median with the quartiles: "11.2 ms (10.7 to 12.0)"."""
    low, high = times.quartiles
    return f"{times.median * 1e3:.3g} ms ({low * 1e3:.3g} to {high * 1e3:.3g})"


def seconds(
    time_it: Watch, run: Run, device: torch.device | str = "cpu", runs: int = 5, before: Run | None = None
) -> Timing:
    """Time single runs, after one to warm up; `before` is called before each, and not timed."""
    run()
    times = []
    for _ in range(runs):
        if before is not None:
            before()
        times.append(time_it(run, partial(synchronise, device), perf_counter, warmup=0, repeats=1))
    return Timing(tuple(times))


def in_turns(time_it: Watch, *runs: Run, device: torch.device | str = "cpu", rounds: int = 7) -> list[Timing]:
    """Time runs alternately: A, B, B, A, …"""
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 1):
        for run, times in list(zip(runs, found, strict=True))[:: 1 if turn % 2 else -1]:
            times.append(time_it(run, partial(synchronise, device), perf_counter, warmup=0, repeats=1))
    return [Timing(tuple(times[1:])) for times in found]  # the first round warms up


def product_of(width: int, device: torch.device, number: Format) -> Run:
    """Return a product of two square matrices."""
    x = torch.randn(width, width, device=device).to(DTYPES[number])
    return partial(torch.mm, x, x, out=torch.empty_like(x))


def copy_of(size: int, device: torch.device) -> Run:
    """Return a copy of so many bytes."""
    x = torch.ones(size, dtype=torch.uint8, device=device)
    return partial(torch.empty_like(x).copy_, x)


def operations(device: torch.device, number: Format) -> Iterator[tuple[str, float, float, Run]]:
    """Yield operations with a name, FLOPs, bytes and a function to run: products, element-wise work, a tiny product."""
    large = device.type != "cpu"
    dtype, size = DTYPES[number], BYTES_PER_NUMBER[number]
    width = 8192 if large else 1536

    def product(tokens: int, width: int) -> tuple[str, float, float, Run]:
        x, w = (torch.randn(rows, width, device=device).to(dtype) for rows in (tokens, width))
        moved = size * (width**2 + 2 * tokens * width)
        run = partial(torch.mm, x, w, out=torch.empty_like(x))
        return f"{tokens} × {width} · W", 2 * tokens * width**2, moved, run

    yield from (product(tokens, width) for tokens in ((1, 32, 256, 4096) if large else (1, 8, 64, 512)))
    x = torch.randn(2**26 if large else 2**23, device=device).to(dtype)
    y, moved = torch.empty_like(x), 2 * size * x.numel()
    yield "add 1 to each", x.numel(), moved, lambda: torch.add(x, 1, out=y)
    yield "GELU, as 20 FLOPs", 20 * x.numel(), moved, lambda: torch.ops.aten.gelu.out(x, out=y)
    yield product(16, 16)
