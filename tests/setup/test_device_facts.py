"""Power and memory, as systems that this one is not tell them."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest
import torch

from lmcourse import device


@pytest.mark.parametrize(("answer", "watts"), [("700.00", 700.0), ("[N/A]", None), (None, None)])
def test_the_limit_of_power_is_that_of_torchs_gpu(
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


def test_windows_fills_in_a_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is what the API asks for, and the memory is the third field (Microsoft, MEMORYSTATUSEX)."""

    def fill(pointer: object) -> int:
        status = pointer._obj  # type: ignore[attr-defined]
        assert (status.length, ctypes.sizeof(status)) == (64, 64)
        ctypes.memmove(ctypes.addressof(status) + 8, (16 * device.GIB).to_bytes(8, "little"), 8)
        return 1

    monkeypatch.delattr(device.os, "sysconf")
    libraries = SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=fill))
    monkeypatch.setattr(ctypes, "windll", libraries, raising=False)
    assert device.main_memory() == 16 * device.GIB


def test_a_system_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(device.os, "sysconf")
    monkeypatch.setattr(ctypes, "windll", None, raising=False)
    assert device.main_memory() is None
