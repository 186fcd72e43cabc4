"""Hardware detection: accelerators, processor and memory.

All other code takes a device as an argument or uses `best_device()` as the default, so that a notebook from a laptop
runs unchanged on a GPU. torch is imported inside the functions, because asking for the number of cores should not take
seconds.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmcourse.base.errors import CourseError
from lmcourse.base.units import GIB

if TYPE_CHECKING:
    import torch

TOOL_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for a system tool, because nvidia-smi can hang if a driver is broken."""

DEVICE = "LMCOURSE_DEVICE"
"""The environment variable that chooses the device: cpu, cuda, cuda:1 or mps."""

NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "Invalid buffer size")
"""Texts of torch's out-of-memory errors on CPUs and Apple GPUs, for which there is no exception class."""

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""The file in which Linux (cgroup v2) limits the memory of a container."""


@dataclass(frozen=True)
class DetectedAccelerator:
    """A GPU that torch can use.

    Attributes:
        name: the maker's name for it.
        memory: bytes of its memory; None if torch does not report it (an Apple GPU shares the machine's memory).
        driver: the driver's version; None if there is no separate driver (Apple).
    """

    name: str
    memory: int | None
    driver: str | None


def best_device() -> torch.device:
    """Return the device in the variable DEVICE or, by default, the fastest one available (cuda, mps or cpu).

    A variable that does not name a device raises CourseError.
    """
    import torch

    if named := os.environ.get(DEVICE):
        try:
            return torch.device(named)
        except RuntimeError:
            advice = "set it to cpu, cuda, cuda:1 or mps"
            raise CourseError(f"{DEVICE} is {named}, which is not a device: {advice}") from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def power_limit(index: int = 0) -> float | None:
    """Return a GPU's power limit in watts from NVIDIA's driver; None if there is none (AMD, Apple, virtual GPUs).

    Args:
        index: the index of the GPU in torch's order, which differs from the driver's if CUDA_VISIBLE_DEVICES is set.
    """
    import torch

    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    answer = None if uuid is None else _nvidia_smi("power.limit", units=False, gpu=f"GPU-{uuid}")
    try:
        return None if answer is None else float(answer)
    except ValueError:  # the driver may print "[N/A]"
        return None


def may_have_gpu() -> bool:
    """Return True if the system has a GPU that torch might be able to use. This does not import torch, so it is fast.

    Linux has a device file for each driver: NVIDIA's, AMD's (kfd), and the driver of the Windows Subsystem for Linux
    (dxg).
    """
    if platform.system() == "Darwin" or shutil.which("nvidia-smi"):
        return True
    return any(Path(file).exists() for file in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg"))


def accelerators() -> tuple[DetectedAccelerator, ...]:
    """Return the GPUs that torch can use. `unused_nvidia_gpu` finds a GPU that it cannot use."""
    import torch

    if torch.cuda.is_available():
        # torch knows the CUDA version that a driver supports, but not the driver's own version. For AMD, use the ROCm
        # version.
        rocm = torch.version.hip
        driver = f"ROCm {rocm}" if rocm else _nvidia_smi("driver_version")
        properties = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        return tuple(DetectedAccelerator(p.name, p.total_memory, driver) for p in properties)
    if torch.backends.mps.is_available():
        return (DetectedAccelerator(f"{cpu_name()} GPU", None, None),)
    return ()


def unused_nvidia_gpu() -> str | None:
    """Return the name of an NVIDIA GPU that the driver reports but torch cannot use, if there is one."""
    import torch

    return None if torch.cuda.is_available() else _nvidia_smi("name")


def describe_accelerator(accelerator: DetectedAccelerator) -> str:
    """Describe a GPU in one line, such as "NVIDIA H200, 139.8 GiB, driver 570.86"."""
    parts = [accelerator.name]
    if accelerator.memory is not None:
        parts.append(gib(accelerator.memory))
    if accelerator.driver is not None:
        parts.append(f"driver {accelerator.driver}")
    return ", ".join(parts)


def gib(size: int) -> str:
    """Format bytes in GiB (2³⁰ bytes)."""
    return f"{size / GIB:.1f} GiB"


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # on Linux this respects taskset, SLURM and most containers
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main_memory() -> int:
    """Return the bytes of main memory that this process may use."""
    import psutil

    there = int(psutil.virtual_memory().total)
    return min(there, _memory_limit(CGROUP_LIMIT) or there)


@contextmanager
def telling_no_memory(advice: str) -> Iterator[None]:
    """Raise CourseError with advice if a `with` block runs out of memory on the machine or a GPU."""
    import torch

    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(text in str(error) for text in NO_MEMORY):
            raise CourseError(f"out of memory: {advice}") from error
        raise


def _memory_limit(file: Path) -> int | None:
    """Return a container's memory limit in bytes on Linux; None if it has no limit ("max")."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def cpu_name() -> str:
    """Return the maker's name of the processor or, if it is not known, its architecture."""
    name = ""
    if platform.system() == "Linux":
        name = _cpu_name_from(Path("/proc/cpuinfo"))
    elif platform.system() == "Darwin":
        name = _first_line(["sysctl", "-n", "machdep.cpu.brand_string"]) or ""
    return name or platform.processor() or platform.machine() or "unknown processor"


def _cpu_name_from(cpuinfo: Path) -> str:
    """Return the first "model name" in Linux's list; ARM kernels do not print one."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    names = (line.split(":", 1)[1] for line in lines if line.startswith("model name"))
    return " ".join(next(names, "").split())


def _nvidia_smi(field: str, *, units: bool = True, gpu: str | None = None) -> str | None:
    """Return one property of a GPU, by default the first, from NVIDIA's tool."""
    form = "csv,noheader" if units else "csv,noheader,nounits"
    which = [] if gpu is None else [f"--id={gpu}"]
    return _first_line(["nvidia-smi", f"--query-gpu={field}", f"--format={form}", *which])


def _first_line(command: list[str]) -> str | None:
    """Return the first line that a command prints; None if it is missing, fails, hangs or prints nothing."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = result.stdout.strip().splitlines()
    return lines[0].strip() if result.returncode == 0 and lines else None
