"""Detect simulated hardware: GPUs, processors, power and memory."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lmcourse.base import device
from lmcourse.base.errors import CourseError


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A simulated machine without GPUs, to which tests add GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(device, "_nvidia_smi", lambda field: None)
    monkeypatch.delenv(device.DEVICE, raising=False)
    return monkeypatch


def add_cuda(machine: pytest.MonkeyPatch, *names: str) -> None:
    gpus = [SimpleNamespace(name=name, total_memory=80 * device.GIB) for name in names]
    machine.setattr(torch.cuda, "is_available", lambda: True)
    machine.setattr(torch.cuda, "device_count", lambda: len(gpus))
    machine.setattr(torch.cuda, "get_device_properties", lambda i: gpus[i])


def test_the_cpu_is_used_when_there_is_no_gpu(machine: pytest.MonkeyPatch) -> None:
    assert device.best_device() == torch.device("cpu")
    assert device.accelerators() == ()


def test_mps_is_used_on_an_apple_machine(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(torch.backends.mps, "is_available", lambda: True)
    machine.setattr(device, "cpu_name", lambda: "Apple M3")
    assert device.best_device() == torch.device("mps")
    assert device.accelerators() == (device.DetectedAccelerator("Apple M3 GPU", None, None),)


def test_cuda_comes_first_and_every_gpu_is_reported(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(torch.backends.mps, "is_available", lambda: True)
    machine.setattr(device, "_nvidia_smi", {"driver_version": "570.86"}.get)
    add_cuda(machine, "NVIDIA H100", "NVIDIA A100")
    assert device.best_device() == torch.device("cuda")
    shown = [device.describe_accelerator(a) for a in device.accelerators()]
    assert shown == ["NVIDIA H100, 80.0 GiB, driver 570.86", "NVIDIA A100, 80.0 GiB, driver 570.86"]


def test_the_environment_variable_selects_the_device(machine: pytest.MonkeyPatch) -> None:
    add_cuda(machine, "NVIDIA H100", "NVIDIA A100")
    for name in ("cpu", "cuda:1"):
        machine.setenv(device.DEVICE, name)
        assert device.best_device() == torch.device(name)
    machine.setenv(device.DEVICE, "gpu")
    with pytest.raises(CourseError, match="gpu, which is not a device: set it to cpu, cuda, cuda:1 or mps"):
        device.best_device()


def test_an_amd_gpu_is_reported_with_its_rocm(machine: pytest.MonkeyPatch) -> None:
    add_cuda(machine, "AMD Instinct MI300X")
    machine.setattr(torch.version, "hip", "6.3")
    assert device.describe_accelerator(device.accelerators()[0]) == "AMD Instinct MI300X, 80.0 GiB, driver ROCm 6.3"


def test_a_gpu_that_torch_cannot_use_is_detected(machine: pytest.MonkeyPatch) -> None:
    assert device.unused_nvidia_gpu() is None
    machine.setattr(device, "_nvidia_smi", {"name": "NVIDIA L4"}.get)
    assert device.unused_nvidia_gpu() == "NVIDIA L4"
    add_cuda(machine, "NVIDIA L4")
    assert device.unused_nvidia_gpu() is None


@pytest.mark.skipif(sys.platform == "win32", reason="writes a shell script")
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 570.86\necho 570.86", "570.86"),
        ("echo failed\nexit 9", None),
        ("true", None),
        ("exec sleep 60", None),
    ],
    ids=["answers", "fails", "says nothing", "hangs"],
)
def test_nvidia_smi_results_and_failures_are_handled(
    script: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(device, "TOOL_TIMEOUT_SECONDS", 2.0)
    assert device._nvidia_smi("driver_version") == expected


def test_a_missing_nvidia_smi_is_handled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert device._nvidia_smi("name") is None


def test_the_processor_name_is_read_on_linux(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: AMD  EPYC 9654: 96-Core\nmodel name\t: other\n", encoding="utf-8")
    assert device._cpu_name_from(cpuinfo) == "AMD EPYC 9654: 96-Core"
    cpuinfo.write_text("processor\t: 0\nBogoMIPS\t: 50\n", encoding="utf-8")
    assert device._cpu_name_from(cpuinfo) == "", "an ARM kernel gives no name"
    assert device._cpu_name_from(tmp_path / "absent") == ""


@pytest.mark.parametrize(("answer", "watts"), [("700.00", 700.0), ("[N/A]", None), (None, None)])
def test_the_power_limit_belongs_to_torchs_gpu(
    answer: str | None, watts: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=f"uuid-{index}"))
    monkeypatch.setattr(device, "_first_line", lambda command: commands.append(command) or answer)
    assert device.power_limit(1) == watts
    form = "--format=csv,noheader,nounits"
    assert commands == [["nvidia-smi", "--query-gpu=power.limit", form, "--id=GPU-uuid-1"]]


def test_a_gpu_without_a_name_for_the_driver_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace())
    monkeypatch.setattr(device, "_first_line", lambda command: "700.00")
    assert device.power_limit() is None
