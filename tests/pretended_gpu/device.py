"""A pretended CUDA device on a CPU build of torch: shapes, dtypes and devices are real, numbers are not.

torch's FakeTensorMode computes what every operator returns, but for the numbers, and refuses operands on two devices as
a GPU does. What reads a number of the device gets 0, and is counted: on a real one the program would wait there for all
that was asked of the GPU before.

Only for a process of its own: guard.cpp, which has to be loaded before torch, cannot be taken back.
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch._subclasses.fake_tensor
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

aten = torch.ops.aten


class Properties:
    """Of the device that is pretended."""

    name = "NVIDIA H100 80GB HBM3"
    total_memory = 80 * 2**30
    major, minor = 9, 0
    multi_processor_count = 132
    L2_cache_size = 50 * 2**20
    uuid = None


class Watch:
    """What happened on the device.

    Attributes:
        waits: how often numbers of the device were read, by the line of lmcourse that did.
        dtypes: how many matrix products had results of each dtype.
    """

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.dtypes: Counter[str] = Counter()

    def clear(self) -> None:
        """Begin anew."""
        self.waits.clear()
        self.dtypes.clear()


class PretendedDevice(FakeTensorMode):
    """The mode in which all tensors are pretended."""

    avoid_device_init = True

    def __init__(self, watch: Watch) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default:
            return self._read(args[0])
        if func is aten._to_copy.default and _comes_back(args[0], kwargs):
            self.watch.waits[_line()] += 1
        if func is aten._pin_memory.default:
            return args[0]
        if func is aten.is_pinned.default:
            return False
        out = super().__torch_dispatch__(func, types, args, kwargs)
        if isinstance(out, Tensor) and out.device.type == "cuda" and func.overloadpacket in PRODUCTS:
            self.watch.dtypes[str(out.dtype).removeprefix("torch.")] += 1
        return out

    def _read(self, x: Tensor) -> int | float | bool:
        if x.device.type == "cuda":
            self.watch.waits[_line()] += 1
        found: int | float | bool = _ones(torch.Size(), x.dtype)
        return found


def _comes_back(x: Tensor, kwargs: dict[str, Any]) -> bool:
    """Whether a copy goes to main memory and is waited for."""
    to = kwargs.get("device")
    return (
        x.device.type == "cuda" and to is not None and torch.device(to).type == "cpu" and not kwargs.get("non_blocking")
    )


PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}


def _line() -> str:
    """The innermost line of lmcourse that is being run."""
    for frame in reversed(traceback.extract_stack()):
        if "/lmcourse/" in frame.filename:
            return f"{frame.filename.rsplit('/lmcourse/', 1)[1]}: {frame.line}"
    return "elsewhere"


def _move(self: nn.Module, fn: Any, recurse: bool = True, memo: dict[int, Any] | None = None) -> nn.Module:
    """`nn.Module._apply` without its way to exchange a parameter's data, which pretended tensors have not."""
    memo = {} if memo is None else memo
    for child in self.children():
        child._apply(fn) if type(child)._apply is not _move else _move(child, fn, recurse, memo)
    for name, p in self._parameters.items():
        if p is not None:
            memo.setdefault(id(p), (p, nn.Parameter(fn(p.detach()), p.requires_grad)))
            self._parameters[name] = memo[id(p)][1]
    for name, buffer in self._buffers.items():
        self._buffers[name] = None if buffer is None else fn(buffer)
    return self


@contextlib.contextmanager
def pretended_gpu() -> Iterator[Watch]:
    """A context in which there is a GPU. The library made of guard.cpp must have been loaded before torch."""
    watch = Watch()
    mode = PretendedDevice(watch)  # made before CUDA is said to be there: then torch.tensor stays off the device
    with contextlib.ExitStack() as stack:
        for owner, name, value in _patches(watch):
            stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(mode)
        yield watch


def _patches(watch: Watch) -> list[tuple[Any, str, Any]]:
    """What of torch asks a driver, and the answers."""
    cuda = torch.cuda
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": (9, 0),
        "get_device_name": Properties.name,
        "get_device_properties": Properties(),
        "mem_get_info": (2**36, 80 * 2**30),
        "memory_allocated": 1,
        "max_memory_allocated": 1,
        **dict.fromkeys(("_lazy_init", "empty_cache", "reset_peak_memory_stats", "set_rng_state", "manual_seed")),
        "manual_seed_all": None,
    }
    patches: list[tuple[Any, str, Any]] = [
        (cuda, name, lambda *_, value=value, **__: value) for name, value in answers.items()
    ]
    return [
        *patches,
        (cuda, "get_rng_state", lambda *_: torch.zeros(16, dtype=torch.uint8)),
        (cuda, "synchronize", lambda *_: watch.waits.update([_line()])),
        (cuda, "device", lambda *_: contextlib.nullcontext()),
        (torch._subclasses.fake_tensor, "init_gpu_context", lambda *_: None),
        (torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
        (Tensor, "pin_memory", lambda self, *_: self),
        (FakeTensor, "tolist", lambda self: _list(self, watch)),
        (nn.Module, "_apply", _move),
    ]


def _list(x: Tensor, watch: Watch) -> Any:
    """`tolist`, which copies all numbers at once: one wait. torch's own for pretended tensors reads them one by one."""
    if x.device.type == "cuda":
        watch.waits[_line()] += 1
    return _ones(x.shape, x.dtype)


def _ones(shape: torch.Size, dtype: torch.dtype) -> Any:
    """Nested lists of what `_read` reads."""
    if not shape:
        return False if dtype is torch.bool else 0.0 if dtype.is_floating_point else 0
    return [_ones(shape[1:], dtype) for _ in range(shape[0])]
