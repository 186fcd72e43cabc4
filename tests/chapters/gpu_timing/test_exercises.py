"""The references of notebook 19 against closed forms, the package, torch's counts and published numbers."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting import machine
from lmcourse.accounting.accelerators import find_accelerator, recognise
from lmcourse.accounting.latency import Operation
from lmcourse.accounting.mfu import mfu
from lmcourse.accounting.timing import SimulatedDevice
from lmcourse.chapters.gpu_timing.exercises import EXERCISES
from lmcourse.chapters.gpu_timing.exercises.amdahl import free_norms
from lmcourse.chapters.gpu_timing.exercises.copies import copy_bandwidth
from lmcourse.chapters.gpu_timing.exercises.elementwise import chain_intensity
from lmcourse.chapters.gpu_timing.exercises.limits import bound_by
from lmcourse.chapters.gpu_timing.exercises.peaks import matmul_peak
from lmcourse.chapters.gpu_timing.exercises.ridge import ridge_point
from lmcourse.chapters.gpu_timing.exercises.roof import roofline
from lmcourse.chapters.gpu_timing.exercises.stopwatch import time_it
from lmcourse.chapters.gpu_timing.exercises.threshold import enough_tokens
from lmcourse.chapters.gpu_timing.exercises.utilisation import PEAKS, mfu_of_step
from lmcourse.course import find_chapter
from lmcourse.exercises import Exercise
from tests.course.chapters import source

TIMES = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=8)


@given(seconds=TIMES, launch=st.floats(0.0, 5.0), warmup=st.integers(0, 3), repeats=st.integers(1, 6))
def test_the_stopwatch_finds_the_median_of_launch_and_work(
    seconds: list[float], launch: float, warmup: int, repeats: int
) -> None:
    device = SimulatedDevice(seconds, launch)
    found = time_it.reference(device.run, device.synchronise, device.clock, warmup, repeats)
    endless = [*seconds, *[seconds[-1]] * (warmup + repeats)]
    expected = statistics.median(launch + work for work in endless[warmup : warmup + repeats])
    assert found == pytest.approx(expected)
    assert device.runs == warmup + repeats


def test_every_mistake_with_the_clock_gives_a_number_of_its_own() -> None:
    def found(answer: Callable[..., float]) -> tuple[float, ...]:
        devices = [
            (SimulatedDevice([9.0, 3.7, 1.0, 4.0, 0.5, 1.5], 0.1), 2, 4),
            (SimulatedDevice([2.0], 0.1, room=2), 1, 5),
        ]
        return tuple(round(answer(each.run, each.synchronise, each.clock, *runs), 9) for each, *runs in devices)

    numbers = [found(answer) for answer in (time_it.reference, *(wrong.answer for wrong in time_it.misconceptions))]
    assert len(set(numbers)) == 1 + len(time_it.misconceptions)


def test_peak_and_bandwidth_are_what_the_package_makes_of_the_same_times() -> None:
    log = {16: [3e-6, 1e-6, 2e-6], 32: [5e-6, 4e-6, 9e-6]}
    times = iter(time for runs in log.values() for time in runs)
    rates = machine.matmul_rates("fp32", [*log], seconds=0.0, stopwatch=lambda run: next(times))
    assert matmul_peak.reference(log) == pytest.approx(max(rates.values()))
    copies = iter([4e-6, 2e-6, 3e-6])
    speed = machine.copy_bandwidth(1000, seconds=0.0, stopwatch=lambda run: next(copies))
    assert copy_bandwidth.reference({1000: [4e-6, 2e-6, 3e-6], 500: [1e-9]}, 500) == pytest.approx(speed)


@pytest.mark.parametrize(
    ("tflops", "speed", "in_tb", "in_tib"), [(312, 1.6, 195, 177), (312, 2, 156, 142), (130, 1.1, 118, 107)]
)
def test_ridges_of_the_notes_hold_for_terabytes_only(tflops: float, speed: float, in_tb: int, in_tib: int) -> None:
    assert round(ridge_point.reference(tflops, speed, "TB/s")) == in_tb
    assert round(ridge_point.reference(tflops, speed, "TiB/s")) == in_tib


def test_the_ridge_of_an_h100_is_the_tables() -> None:
    chip = find_accelerator("h100-sxm")
    assert ridge_point.reference(2 * 989.4, 3350.0, sparse=True) == pytest.approx(chip.ridge("bf16"))


@given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(1, 10**10)), min_size=1, max_size=6))
def test_the_time_at_best_is_that_of_the_attainable_rate(kernels: list[tuple[int, int]]) -> None:
    """Williams et al., 2009: attainable FLOP/s = min(peak, intensity · bandwidth)."""
    peak, bandwidth = 3e14, 2e12
    expected = sum(flops / min(peak, flops / moved * bandwidth) for flops, moved in kernels)
    found = roofline.reference([[float(flops), float(moved)] for flops, moved in kernels], peak, bandwidth)
    assert found == pytest.approx(expected)


def test_enough_tokens_are_those_from_which_on_torchs_count_passes_the_ridge() -> None:
    def intensity(tokens: int) -> float:
        x, w = (torch.empty(rows, 8192, dtype=torch.bfloat16, device="meta") for rows in (tokens, 8192))
        with FlopCounterMode(display=False) as counter:
            out = x @ w
        return counter.get_total_flops() / (x.nbytes + w.nbytes + out.nbytes)

    first = enough_tokens.reference()
    assert intensity(first - 1) < 156 < intensity(first)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_chain_moves_what_its_tensors_hold(dtype: torch.dtype) -> None:
    x = torch.empty(100, dtype=dtype, device="meta")
    kernels = [(x, x + 1), (x + 1, (x + 1) * 2)]
    moved = sum(before.nbytes + after.nbytes for before, after in kernels)
    assert chain_intensity.reference([1, 1], dtype.itemsize, False) == pytest.approx(200 / moved)
    assert chain_intensity.reference([1, 1], dtype.itemsize, True) == pytest.approx(200 / (2 * x.nbytes))


def test_the_gain_of_free_norms_is_the_published_one() -> None:
    """Ivanov et al., 2021, table 1: 25.5 % of the time."""
    assert free_norms.reference() == pytest.approx(1 / (1 - 0.255))


@pytest.mark.parametrize(("flops", "moved"), [(10**6, 10**2), (10**3, 10**3), (10, 10**3)])
def test_a_kernel_on_the_roof_is_limited_by_what_the_package_says(flops: int, moved: int) -> None:
    chip = find_accelerator("a100")
    work = Operation(flops, moved)
    seconds = work.seconds(chip, "bf16")
    arguments = (chip.peak("bf16"), chip.bandwidth)
    assert bound_by.reference(flops, moved, seconds * 1.01, *arguments) == work.limit(chip, "bf16")
    assert bound_by.reference(flops, moved, seconds * 2.1, *arguments) == "neither"


def test_the_table_of_peaks_is_the_packages() -> None:
    for name, peaks in PEAKS.items():
        chip = recognise(name)
        assert chip is not None
        assert {number: peak for number, peak in chip.peaks.items() if number in peaks} == peaks
        assert ("bf16" in chip.peaks) == ("bf16" in peaks)


def test_mfu_is_the_packages_and_an_unknown_gpu_has_none() -> None:
    seconds = [0.2, 0.1, 0.9]
    share = mfu_of_step.reference(3e13, seconds, "NVIDIA H100 PCIe", "bf16", PEAKS)
    assert share == pytest.approx(mfu(3e13, 0.2, find_accelerator("h100-pcie"), "bf16"))
    for name, number in (("NVIDIA H100 NVL", "bf16"), ("NVIDIA H100 PCIe", "fp8")):
        with pytest.raises(ValueError, match="known"):
            mfu_of_step.reference(3e13, seconds, name, number, PEAKS)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_there_are_at_least_four_wrong_answers(exercise: Exercise) -> None:
    assert len(exercise.misconceptions) >= 4


def test_no_compared_cell_depends_on_the_machine() -> None:
    """What is measured is found in cells that nbval does not compare; so all others are the same on a CPU and a GPU."""
    measured: set[str] = set()
    for cell in source(find_chapter("19-gpu-timing")).cells:
        if cell.kind != "code":
            continue
        tree = ast.parse(cell.text)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        if "nbval-ignore-output" in cell.options.get("tags", []):
            measured |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        elif "exercise" not in cell.options:
            written = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            assert not (read - written) & measured, cell.text
            assert not read & {"best_device", "present_gpu", "measure_speedups", "make_training_step", "machine"}
