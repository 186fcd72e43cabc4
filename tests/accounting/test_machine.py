"""Test rates with given times: the numbers of FLOPs and bytes must be right."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting import machine
from lmcourse.accounting.machine import copy_bandwidth, matmul_rates, measure_machine
from lmcourse.base import device


def one_second(function: Callable[[], object]) -> float:
    function()
    return 1.0


def test_product_flops_match_torchs_count() -> None:
    counted: list[int] = []

    def count(function: Callable[[], object]) -> float:
        with FlopCounterMode(display=False) as counter:
            function()
        counted.append(counter.get_total_flops())
        return 2.0

    rates = matmul_rates("fp32", (64, 96), seconds=0, stopwatch=count)
    assert rates == {64: counted[0] / 2, 96: counted[-1] / 2}


@pytest.mark.parametrize(
    ("precision", "matmul_precision"), [("fp32", "highest"), ("tf32", "high"), ("bf16", "highest")]
)
def test_fp32_excludes_tf32_and_torchs_setting_is_restored(precision: machine.Format, matmul_precision: str) -> None:
    seen: set[str] = set()

    def look(function: Callable[[], object]) -> float:
        seen.add(torch.get_float32_matmul_precision())
        return one_second(function)

    torch.set_float32_matmul_precision("medium")
    try:
        matmul_rates(precision, (32,), seconds=0, stopwatch=look)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert seen == {matmul_precision}


def test_copy_bandwidth_counts_reads_and_writes() -> None:
    assert copy_bandwidth(1000, seconds=0, stopwatch=one_second) == 2000


def test_other_load_does_not_lower_a_measured_peak() -> None:
    times = itertools.cycle([5.0, 3.0, 2.0])

    def disturbed(function: Callable[[], object]) -> float:
        function()
        return next(times)

    assert copy_bandwidth(1000, seconds=0, stopwatch=disturbed) == 2000 / 2.0
    assert matmul_rates("fp32", (8,), seconds=0, stopwatch=disturbed) == {8: 2 * 8**3 / 2.0}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make the measurement with tiny sizes."""
    monkeypatch.setattr(machine, "SIZES", {"cpu": (16, 32, 64)})
    monkeypatch.setattr(machine, "COPY_BYTES", {"cpu": 2**16})
    monkeypatch.setattr(machine, "SECONDS", 0.0)
    monkeypatch.setattr(machine, "QUICK_SECONDS", 0.0)
    return monkeypatch


def test_a_measured_machine_is_an_accelerator(small: pytest.MonkeyPatch) -> None:
    found = measure_machine(device="cpu")
    assert set(found.peaks) == {"fp64", "fp32", "bf16"}
    assert all(peak > 0 for peak in found.peaks.values())
    assert found.memory == device.main_memory()
    assert found.title.startswith(device.cpu_name())
    assert (found.link, found.power) == (None, None)
    (source,) = found.sources
    today = datetime.date.today().isoformat()
    assert source == f"measured on {today} with torch {torch.__version__}, {torch.get_num_threads()} threads"


def test_the_best_size_counts_and_quick_omits_the_largest(small: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def rates(precision: str, sizes: tuple[int, ...], **options: object) -> dict[int, float]:
        asked.append(tuple(sizes))
        return {16: 1.0, 32: 7.0, 64: 5.0}

    small.setattr(machine, "matmul_rates", rates)
    assert measure_machine(device="cpu").peak("fp32") == 7.0
    assert set(asked) == {(16, 32, 64)}
    asked.clear()
    measure_machine(quick=True, device="cpu")
    assert set(asked) == {(16, 32)}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this test needs an NVIDIA GPU")
def test_a_gpu_stays_below_its_data_sheet() -> None:
    from lmcourse.accounting.accelerators import recognise

    gpu = device.accelerators()[0]
    whole, found = recognise(gpu.name, memory=gpu.memory), measure_machine(quick=True, device="cuda")
    if whole is not None:
        assert all(
            found.peaks[precision] <= whole.peaks[precision] for precision in found.peaks if precision in whole.peaks
        )
        assert found.bandwidth <= whole.bandwidth
