"""MFU is torch's count of FLOPs, divided by the time and a known peak."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.base import device as hardware
from lmcourse.models.loss import next_token_loss
from lmcourse.training import mfu_meter
from lmcourse.training.metrics import read_metrics
from lmcourse.training.mfu_meter import MfuMeter, Peak, find_peak, flops_per_token, make_mfu_meter
from lmcourse.training.precision import Precision
from lmcourse.training.training_config import Parallelism
from tests.training import runs

H200 = ("NVIDIA H200", 150_754_820_096)
PEAK = Peak(1e9, "a machine of these tests")


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, memory: int, power: float | None = None) -> None:
    """Simulate a GPU, with torch's default precision of products in fp32."""
    gpu = hardware.DetectedAccelerator(name, memory, None)
    monkeypatch.setattr(hardware, "accelerators", lambda: (gpu,))
    monkeypatch.setattr(hardware, "power_limit", lambda index: power)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "highest")


def test_mfu_is_torchs_flops_over_time_and_peak() -> None:
    """torch counts forward and backward pass; on a CPU it would not count fused attention."""
    model = runs.model(dropout=0.0)
    tokens = runs.text(2 * 16).reshape(2, 16)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        next_token_loss(model(tokens), tokens).backward()  # type: ignore[no-untyped-call]
    assert flops_per_token(model, 16) * 32 == counter.get_total_flops()

    meter = MfuMeter(flops_per_token(model, 16), PEAK, devices=4)
    seconds = 0.01
    expected = counter.get_total_flops() / seconds / (4 * 1e9)
    assert meter(32 / seconds)["mfu"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("one_thread")
def test_a_run_reports_mfu_and_its_peak_once(tmp_path: Path) -> None:
    run = runs.trainer(tmp_path, steps=5)
    run.meter = MfuMeter(1000.0, PEAK)
    run.run()
    told = read_metrics(tmp_path / "metrics.jsonl")
    assert [record["mfu"] for record in told] == [record["tokens_per_second"] * 1000.0 / 1e9 for record in told]
    assert [record.get("mfu_of") for record in told] == [str(PEAK), *[None] * 4]


@pytest.mark.usefixtures("one_thread")
def test_measuring_mfu_does_not_change_a_run(whole: Path, tmp_path: Path) -> None:
    meter = make_mfu_meter(runs.model(), runs.BASE)
    assert meter is not None
    run = runs.trainer(tmp_path)
    run.meter = meter
    run.run()
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["mfu"] > 0
    assert runs.records(tmp_path) == runs.records(whole)
    assert runs.same_weights(tmp_path, whole)


def test_an_mfu_above_1_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    meter = MfuMeter(1.0, PEAK)
    with caplog.at_level(logging.WARNING):
        shares = [meter(rate)["mfu"] for rate in (1e9, 1.25e9, 2e9)]
    assert shares == [1.0, 1.25, 2.0]
    (message,) = caplog.messages
    assert "MFU of 125 % is impossible" in message
    assert str(PEAK) in message


@pytest.mark.parametrize(
    ("precision", "multiplied", "tflops"),
    [("bf16", "bf16", 989.4), ("fp16", "fp16", 989.4), ("fp32", "fp32", 67), ("fp32", "tf32", 494.7)],
)
def test_a_known_gpu_has_its_data_sheets_dense_peak(
    monkeypatch: pytest.MonkeyPatch, precision: Precision, multiplied: str, tflops: float
) -> None:
    pretend(monkeypatch, *H200)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high" if multiplied == "tf32" else "highest")
    peak = find_peak(torch.device("cuda", 0), precision)
    assert peak.flops_per_second == tflops * 1e12
    assert str(peak).startswith(
        f"{tflops} TFLOP/s, the dense {multiplied} peak of NVIDIA H200 SXM (NVIDIA H200 data sheet"
    )


def test_an_unknown_gpu_has_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "NVIDIA GeForce RTX 9999", 2**34)
    with pytest.raises(ValueError, match="is not in the table of accelerators"):
        find_peak(torch.device("cuda", 0), "bf16")


@pytest.fixture
def unmeasured() -> Iterator[None]:
    """Clear cached peaks before and after a test."""
    mfu_meter._measured.cache_clear()
    yield
    mfu_meter._measured.cache_clear()


@pytest.mark.usefixtures("unmeasured")
def test_a_cpu_is_measured_once_in_the_precision_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def rates(number: str, sizes: tuple[int, ...], **_: object) -> dict[int, float]:
        measured.append(number)
        return {512: 5e10, 1024: 7e10}

    monkeypatch.setattr(mfu_meter, "matmul_rates", rates)
    peak = find_peak(torch.device("cpu"), "bf16")
    assert (peak.flops_per_second, measured) == (7e10, ["bf16"])
    assert str(peak).startswith("0.07 TFLOP/s, measured: bf16 product of 1024 × 1024 matrices on ")
    assert find_peak(torch.device("cpu"), "bf16") is peak
    find_peak(torch.device("cpu"), "fp32")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    assert "with 77 threads" in str(find_peak(torch.device("cpu"), "bf16"))
    assert measured == ["bf16", "fp32", "bf16"]


@pytest.mark.parametrize(
    ("model", "changes", "why"),
    [
        (nn.Linear(2, 2), {}, "the FLOPs of a Linear are not known"),
        (None, {"precision": "fp16"}, "fp16 is not measured on a cpu device"),
        (None, {"parallel": Parallelism(data_parallel=2)}, "processes on one CPU share its peak"),
    ],
)
def test_unknown_flops_give_no_mfu_and_a_reason(
    caplog: pytest.LogCaptureFixture, model: nn.Module | None, changes: dict[str, object], why: str
) -> None:
    config = replace(runs.BASE, **changes)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        assert make_mfu_meter(model or runs.model(), config) is None
    (message,) = caplog.messages
    assert message.startswith("MFU is not computed: ")
    assert why in message
