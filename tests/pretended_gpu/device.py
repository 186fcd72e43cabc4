"""A simulated CUDA device on a CPU build of torch: shapes, dtypes and devices are real, but there are no numbers.

torch's FakeTensorMode computes the result of every operator without its numbers, and rejects operands on two devices,
as a GPU does. Reading a number from the device gives 0 and is counted, because on a real GPU the program would wait for
all earlier work. The same holds for copies from memory that is not pinned.

Use it only in a separate process: guard.cpp must be loaded before torch and cannot be unloaded.
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
"""The state of the GPU's random generator. It is a real tensor, because its bytes are saved."""


class Properties:
    """Properties of the simulated device."""

    name = "NVIDIA H100 80GB HBM3"
    total_memory = 80 * 2**30
    major, minor = 9, 0
    multi_processor_count = 132
    L2_cache_size = 50 * 2**20
    uuid = None


class Event:
    """An event in the queue of the device. There is one second between two events."""

    def __init__(self, **_: bool) -> None: ...

    def record(self) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing: waiting for a timing does not count."""

    def elapsed_time(self, other: Event) -> float:
        """Return the time between two events in milliseconds."""
        return 1000.0


class Generator(torch.Generator):
    """A random generator that claims to be on a device, because a CPU build has generators only for the CPU.

    It draws on the CPU, and its numbers are never read.
    """

    made: ClassVar[dict[int, tuple[Generator, torch.device]]] = {}

    def __new__(cls, device: torch.device | str = "cpu") -> Generator:
        """Store its device by the address that operators see, and keep the generator so that the address is not
        reused."""
        generator = super().__new__(cls, "cpu")
        cls.made[generator._cdata] = generator, torch.device(device)
        return generator


class Watch:
    """A record of events on the device.

    Attributes:
        waits: how often the program waited for the device, by the line of lmcourse that waited.
        dtypes: the number of matrix products by dtype of the result.
        kernels: how often each attention kernel ran; "shared" if query heads share key heads.
    """

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()

    def clear(self) -> None:
        """Clear all records."""
        for counter in (self.waits, self.dtypes, self.kernels):
            counter.clear()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context whose waits do not count."""
        before = self.waits.copy()
        yield
        self.waits = before


class PretendedDevice(FakeTensorMode):
    """The mode in which all tensors are simulated."""

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
    """Read a number: 0 on the device, 1 in main memory (where optimizers count steps), and False for booleans."""
    if x.device.type == "cuda":
        watch.waits[_line()] += 1
    nothing = _zeros(torch.Size(), x.dtype)
    return nothing if x.device.type == "cuda" or x.dtype is torch.bool else nothing + 1


def _nonzero(watch: Watch, x: Tensor) -> Tensor:
    """Return no indices, because all numbers are 0."""
    _read(watch, x)
    return x.new_empty((0, x.dim()), dtype=torch.long)


INSTEAD: dict[Any, Callable[[Watch, Tensor], Any]] = {
    aten._local_scalar_dense: _read,
    aten.nonzero: _nonzero,
    aten._pin_memory: lambda _, x: x,
    aten.is_pinned: lambda _, x: False,
}
"""Replacements of functions that need numbers or a driver."""


def _waits(operator: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Return True if an operator copies between main memory and the device, and the program waits for the copy."""
    if operator is aten._to_copy:
        there = torch.device(kwargs.get("device") or args[0].device)
        return there.type != args[0].device.type and not kwargs.get("non_blocking")
    if operator in (aten.index, aten.index_put, aten.index_put_):
        return any(x is not None and x.device != args[0].device for x in args[1])
    return operator is aten.copy_ and args[0].device.type != args[1].device.type and not (args[2:] and args[2])


def _check_generator(args: Any, kwargs: dict[str, Any]) -> None:
    """Raise torch's error for a generator on another device."""
    generator = kwargs.get("generator")
    if generator is None or generator._cdata not in Generator.made:
        return
    found = Generator.made[generator._cdata][1].type
    wanted = (args[0].device if isinstance(args[0], Tensor) else torch.device(kwargs.get("device") or "cpu")).type
    if found != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")


def _kernel(operator: Any, args: Any) -> str:
    """Return the name of an attention kernel, and whether it shares heads."""
    shared = operator is not aten._safe_softmax and args[0].shape[1] != args[1].shape[1]
    return f"{ATTENTION[operator]}, shared" if shared else ATTENTION[operator]


ATTENTION = {
    aten._scaled_dot_product_flash_attention: "flash",
    aten._scaled_dot_product_efficient_attention: "efficient",
    aten._safe_softmax: "math",  # used only by the math kernel
}
PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}


def _line() -> str:
    """Return the innermost running line of lmcourse."""
    for frame in reversed(traceback.extract_stack()):
        if "/lmcourse/" in frame.filename:
            return f"{frame.filename.rsplit('/lmcourse/', 1)[1]}: {frame.line}"
    return "elsewhere"


def _mover(watch: Watch) -> Callable[..., nn.Module]:
    """Return `nn.Module._apply` without swapping a parameter's data, which simulated tensors lack. Moving a model is
    not counted."""

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
    """Simulate a GPU inside a `with` block. The library made from guard.cpp must have been loaded before torch."""
    watch = Watch()
    mode = PretendedDevice(watch)  # created before CUDA seems available, so that torch.tensor does not use the device
    with contextlib.ExitStack() as stack:
        for owner, name, value in _patches(watch):
            stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(mode)
        yield watch


def _patches(watch: Watch) -> list[tuple[Any, str, Any]]:
    """Return the replacements of torch's functions that need a driver or that cannot be simulated."""
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
    """Replace `tolist`: it copies all numbers at once, one wait. torch's version for fake tensors reads each
    separately."""
    if x.device.type == "cuda":
        watch.waits[_line()] += 1
    return _zeros(x.shape, x.dtype)


def _zeros(shape: torch.Size, dtype: torch.dtype) -> Any:
    """Return nested lists that contain only 0 or False."""
    if not shape:
        return False if dtype is torch.bool else 0.0 if dtype.is_floating_point else 0
    return [_zeros(shape[1:], dtype) for _ in range(shape[0])]
