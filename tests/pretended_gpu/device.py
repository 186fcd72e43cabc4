"""A pretended CUDA device on a CPU build of torch: shapes, dtypes and devices are real, numbers are not.

torch's FakeTensorMode computes what every operator returns, but for the numbers, and refuses operands on two devices as
a GPU does. What reads a number of the device gets 0, and is counted: on a real one the program would wait there for all
that was asked of the GPU before. So it would for what is copied there from memory that is not pinned.

Only for a process of its own: guard.cpp, which has to be loaded before torch, cannot be taken back.
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from unittest import mock

import torch
import torch._subclasses.fake_tensor
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

aten = torch.ops.aten

GENERATOR = torch.zeros(16, dtype=torch.uint8)
"""The state of the GPU's random generator: a real tensor, whose bytes are saved."""


class Properties:
    """Of the device that is pretended."""

    name = "NVIDIA H100 80GB HBM3"
    total_memory = 80 * 2**30
    major, minor = 9, 0
    multi_processor_count = 132
    L2_cache_size = 50 * 2**20
    uuid = None


class Event:
    """A mark in the queue of the device. Between two of them lies a second."""

    def __init__(self, **_: bool) -> None: ...

    def record(self) -> None:
        """Nothing is queued."""

    def synchronize(self) -> None:
        """Who times, waits: that does not count."""

    def elapsed_time(self, other: Event) -> float:
        """In milliseconds."""
        return 1000.0


class Generator(torch.Generator):
    """A generator of random numbers that is said to be on a device; a build for CPUs has none for another.

    Its numbers are a CPU's, and nobody reads them.
    """

    made: ClassVar[dict[int, tuple[Generator, torch.device]]] = {}

    def __new__(cls, device: torch.device | str = "cpu") -> Generator:
        """Remember where it is under the address by which operators know it; and keep it, lest that be used again."""
        generator = super().__new__(cls, "cpu")
        cls.made[generator._cdata] = generator, torch.device(device)
        return generator


class Watch:
    """What happened on the device.

    Attributes:
        waits: how often the program waited for the device, by the line of lmcourse that did.
        dtypes: how many matrix products had results of each dtype.
        kernels: how often each kernel for attention ran; "shared" if query heads share the heads of keys.
    """

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()

    def clear(self) -> None:
        """Begin anew."""
        for counter in (self.waits, self.dtypes, self.kernels):
            counter.clear()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context whose waits do not count."""
        before = self.waits.copy()
        yield
        self.waits = before


class PretendedDevice(FakeTensorMode):
    """The mode in which all tensors are pretended."""

    avoid_device_init = True

    def __init__(self, watch: Watch) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, operator = kwargs or {}, func.overloadpacket
        _check_generator(args, kwargs)
        if operator in INSTEAD:
            with self:
                return INSTEAD[operator](self.watch, args[0])
        if operator is aten.scaled_dot_product_attention:  # without gradients this operator is not decomposed
            with self:
                return func.decompose(*args, **kwargs)
        if _waits(operator, args, kwargs):
            self.watch.waits[_line()] += 1
        if operator in ATTENTION:
            self.watch.kernels[_kernel(operator, args)] += 1
        out = super().__torch_dispatch__(func, types, args, kwargs)
        if operator in PRODUCTS and out.device.type == "cuda":
            self.watch.dtypes[str(out.dtype).removeprefix("torch.")] += 1
        return out


def _read(watch: Watch, x: Tensor) -> Any:
    """A number of the device is 0, one of main memory is 1 (optimizers count their steps there), and none is true."""
    if x.device.type == "cuda":
        watch.waits[_line()] += 1
    nothing = _zeros(torch.Size(), x.dtype)
    return nothing if x.device.type == "cuda" or x.dtype is torch.bool else nothing + 1


def _nonzero(watch: Watch, x: Tensor) -> Tensor:
    """Where numbers are not 0: nowhere."""
    _read(watch, x)
    return x.new_empty((0, x.dim()), dtype=torch.long)


INSTEAD: dict[Any, Callable[[Watch, Tensor], Any]] = {
    aten._local_scalar_dense: _read,
    aten.nonzero: _nonzero,
    aten._pin_memory: lambda _, x: x,
    aten.is_pinned: lambda _, x: False,
}
"""What would need numbers, or a driver."""


def _waits(operator: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether it copies between main memory and the device, and the program goes on only after that."""
    if operator is aten._to_copy:
        there = torch.device(kwargs.get("device") or args[0].device)
        return there.type != args[0].device.type and not kwargs.get("non_blocking")
    if operator in (aten.index, aten.index_put, aten.index_put_):
        return any(x is not None and x.device != args[0].device for x in args[1])
    return operator is aten.copy_ and args[0].device.type != args[1].device.type and not (args[2:] and args[2])


def _check_generator(args: Any, kwargs: dict[str, Any]) -> None:
    """That of another device is an error, in torch's words."""
    given = kwargs.get("generator")
    if given is None or given._cdata not in Generator.made:
        return
    found = Generator.made[given._cdata][1].type
    wanted = (args[0].device if isinstance(args[0], Tensor) else torch.device(kwargs.get("device") or "cpu")).type
    if found != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")


def _kernel(operator: Any, args: Any) -> str:
    """The name of a kernel for attention, and whether it shares heads."""
    shared = operator is not aten._safe_softmax and args[0].shape[1] != args[1].shape[1]
    return f"{ATTENTION[operator]}, shared" if shared else ATTENTION[operator]


ATTENTION = {
    aten._scaled_dot_product_flash_attention: "flash",
    aten._scaled_dot_product_efficient_attention: "efficient",
    aten._safe_softmax: "math",  # used only by the math kernel
}
PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}


def _line() -> str:
    """The innermost line of lmcourse that is being run."""
    for frame in reversed(traceback.extract_stack()):
        if "/lmcourse/" in frame.filename:
            return f"{frame.filename.rsplit('/lmcourse/', 1)[1]}: {frame.line}"
    return "elsewhere"


def _mover(watch: Watch) -> Callable[..., nn.Module]:
    """`nn.Module._apply` without its way to exchange a parameter's data, which pretended tensors have not. That a model
    is moved is not counted."""

    def move(
        self: nn.Module, fn: Any, recurse: bool = True, memo: dict[int, tuple[Any, Any]] | None = None
    ) -> nn.Module:
        memo = {} if memo is None else memo
        for child in self.children():
            child._apply(fn) if type(child)._apply is not move else move(child, fn, recurse, memo)
        with watch.paused():
            for name, p in self._parameters.items():
                if p is not None:
                    memo.setdefault(id(p), (p, nn.Parameter(fn(p.detach()), p.requires_grad)))
                    self._parameters[name] = memo[id(p)][1]
            for name, buffer in self._buffers.items():
                self._buffers[name] = None if buffer is None else fn(buffer)
        return self

    return move


@contextlib.contextmanager
def pretended_gpu() -> Iterator[Watch]:
    """A context in which there is a GPU. The library made of guard.cpp must have been loaded before torch."""
    watch = Watch()
    mode = PretendedDevice(watch)  # created before CUDA seems available, so that torch.tensor does not use the device
    with contextlib.ExitStack() as stack:
        for owner, name, value in _patches(watch):
            stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(mode)
        yield watch


def _patches(watch: Watch) -> list[tuple[Any, str, Any]]:
    """What of torch asks a driver, and the answers; what of torch cannot be pretended, and what stands for it."""
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
        (cuda, "get_rng_state", lambda *_: GENERATOR),
        (cuda, "synchronize", lambda *_: watch.waits.update([_line()])),
        (cuda, "device", lambda *_: contextlib.nullcontext()),
        (torch._subclasses.fake_tensor, "init_gpu_context", lambda *_: None),
        (torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
        (Tensor, "pin_memory", lambda self, *_: self),
        (FakeTensor, "tolist", lambda self: _list(self, watch)),
        (torch, "Generator", Generator),
        (cuda, "Event", Event),
        (torch, "compile", lambda model, **_: model),
        (nn.Module, "_apply", _mover(watch)),
    ]


def _list(x: Tensor, watch: Watch) -> Any:
    """`tolist`, which copies all numbers at once: one wait. torch's own for pretended tensors reads them one by one."""
    if x.device.type == "cuda":
        watch.waits[_line()] += 1
    return _zeros(x.shape, x.dtype)


def _zeros(shape: torch.Size, dtype: torch.dtype) -> Any:
    """Nested lists of nothing but 0 or False."""
    if not shape:
        return False if dtype is torch.bool else 0.0 if dtype.is_floating_point else 0
    return [_zeros(shape[1:], dtype) for _ in range(shape[0])]
