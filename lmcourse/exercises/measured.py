"""Measure one call of an answer: its memory, its operators and its FLOPs. Work that nothing measures is rejected.

Torch's modes see the operators of one thread, and only while they are on. So `measured_call` raises `Unfit` if an
answer starts a thread or a process, writes a file, moves many numbers out of torch, or switches the modes off. Names
that an answer must not even mention are in `forbidden_names.NOT_MEASURED`.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from lmcourse.accounting.counter import flop_counter
from lmcourse.accounting.live import live_bytes
from lmcourse.exercises.open_task import Unfit
from lmcourse.exercises.rules import WithoutCompiler, warm_up

CHANGED = "Your code changes its inputs in place. Work on new tensors, and leave the inputs alone."
SHARED = "A result shares its memory with an input. Return new tensors."
ELSEWHERE = "Your code starts a thread or a process, where nothing is measured. Compute where you are called."
FILES = "Your code writes a file. What it keeps there is not measured."
OUTSIDE = "Your code takes more than 10,000 numbers out of torch with `{name}`, where nothing is measured."
SWITCHED_OFF = "Your code switches off the modes that measure it."

_THREADS = [(module, name) for module in (threading, _thread) for name in vars(module) if "start_" in name]
"""The functions that start a thread; their names differ between versions of Python."""

_PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec", "os.spawn")
_EVENTS = {
    **dict.fromkeys(_PROCESSES, ELSEWHERE),
    **dict.fromkeys(("mmap.__new__", "sqlite3.connect", "socket.__new__"), FILES),
}
"""Python's audit events that end a measured call, and what they mean."""

_MOST = 10_000
"""So many numbers may leave torch in a call: enough for results, and no place for a tensor."""

_OUT = ("numpy", "tolist", "__dlpack__", "__reduce_ex__")
"""Methods of a tensor that hand its numbers to other libraries or to Python."""


@dataclass(frozen=True)
class MeasuredCall:
    """The result of a call, and its cost.

    Attributes:
        peak: the most bytes that were in use at once, results included and inputs not.
        operators: how many of torch's operators ran, views included.
        flops: the FLOPs of the matrix products.
    """

    result: Any
    peak: int
    operators: int
    flops: int


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread. For small matrices this is faster, and many times so while other programs run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@one_thread()
def measured_call(answer: Callable[..., Any], *inputs: Any, keep: bool = True) -> MeasuredCall:
    """Call `answer` with copies of the inputs, in one thread, and measure it; raise Unfit if it evades that.

    Draw the inputs afresh and compare the result: an answer may have stored an earlier one. Require a smallest number
    of FLOPs, too: an answer that evades the measurement in another way has few or none.

    Args:
        keep: whether the inputs must stay as they are, and the results be new.
    """
    copies: Any = deepcopy(inputs)
    calls: list[Any] = []
    counted = _Operators()
    with torch.inference_mode(False):
        warm_up()

    def call(*_: Tensor) -> None:
        with counted, _InsideTorch(counted), _only_here(), _kept_inside(counted):
            calls.append(answer(*copies))

    peak = live_bytes(call, *_tensors(copies)).peak
    if keep and not all(map(_same, _tensors(copies), _tensors(inputs))):
        raise Unfit(CHANGED)
    given = {tensor.untyped_storage()._cdata for tensor in _tensors(copies)}
    if keep and any(tensor.untyped_storage()._cdata in given for tensor in _tensors(calls)):
        raise Unfit(SHARED)
    return MeasuredCall(calls[0], peak, counted.operators, counted.flops)


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _same(one: Tensor, other: Tensor) -> bool:
    same = one.shape == other.shape and one.dtype == other.dtype
    return same and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


class _Operators(WithoutCompiler):  # type: ignore[no-untyped-call]
    """Counts operators, and the FLOPs of matrix products. In inference mode torch leaves it to a mode to split some."""

    def __init__(self) -> None:
        super().__init__()
        self.operators = self.flops = self._outside = 0
        self._formulas = flop_counter().flop_registry

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with self:
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        result = func(*args, **kwargs)
        self.operators += 1
        if formula := self._formulas.get(func._overloadpacket):
            self.flops += formula(*args, **kwargs, out_val=result)
        if func is torch.ops.aten._local_scalar_dense.default:
            self.take("item")
        return result

    def take(self, name: str, numbers: int = 1) -> None:
        """Note that numbers leave torch; raise Unfit if they are too many."""
        self._outside += numbers
        if self._outside > _MOST:
            raise Unfit(OUTSIDE.format(name=name))


class _InsideTorch(TorchFunctionMode):
    """Rejects calls while modes that were on are off, and watches `_OUT`. Inside a function of torch it is off."""

    def __init__(self, counted: _Operators) -> None:
        super().__init__()
        self._counted = counted

    def __enter__(self) -> _InsideTorch:
        super().__enter__()  # type: ignore[no-untyped-call]
        self._modes = _len_torch_dispatch_stack()
        return self

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _len_torch_dispatch_stack() < self._modes:
            raise Unfit(SWITCHED_OFF)
        if (name := getattr(func, "__name__", "")) in _OUT:
            self._counted.take(name, args[0].numel())
        return func(*args, **(kwargs or {}))


@contextmanager
def _kept_inside(counted: _Operators) -> Iterator[None]:
    """Count the numbers that leave torch through `_OUT` in hooks too, which torch calls, and byte by byte."""

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def take(one: Any, *args: Any, **kwargs: Any) -> Any:
            counted.take(method.__name__, one.numel() if isinstance(one, Tensor) else 1)
            with torch._C.DisableTorchFunction():
                return method(one, *args, **kwargs)

        return take

    places = [*((Tensor, name) for name in _OUT), (torch.UntypedStorage, "__getitem__")]
    before = [vars(owner).get(name) for owner, name in places]
    try:
        for owner, name in places:
            setattr(owner, name, watched(getattr(owner, name)))
        yield
    finally:
        for (owner, name), method in zip(places, before, strict=True):
            setattr(owner, name, method) if method else delattr(owner, name)  # None: it is inherited


_hooked: list[bool] = []
_watching: list[bool] = []
"""Not empty once Python calls the audit hook, and while an answer is measured. A hook stays until Python ends."""


@contextmanager
def _only_here() -> Iterator[None]:
    """Raise Unfit at an event of `_EVENTS`, if a thread is started, or if a file is opened for writing."""
    if not _hooked:
        sys.addaudithook(_heard)
        _hooked.append(True)
    starts = {(module, name): getattr(module, name) for module, name in _THREADS}
    _watching.append(True)
    try:
        for module, name in starts:
            setattr(module, name, _no_thread)
        yield
    finally:
        for (module, name), start in starts.items():
            setattr(module, name, start)
        _watching.pop()


def _no_thread(*_: object, **__: object) -> None:
    raise Unfit(ELSEWHERE)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event in _EVENTS:
        raise Unfit(_EVENTS[event])
    if event == "open" and _writes(arguments) and not _imports(sys._getframe(1)):
        raise Unfit(FILES)


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    return any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def _imports(frame: FrameType | None) -> bool:
    """Return True if Python imports a module, and writes its compiled form."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
