"""Record the forbidden calls that an answer makes at run time, however it reaches them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import FrameType
from typing import Any

from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, resolve_name

from lmcourse.exercises.forbidden_names import Names, full_name, matches
from lmcourse.exercises.limits import restore_profile, trace_hook
from lmcourse.exercises.origin import in_library, is_framework


@lru_cache(maxsize=4096)
def dotted_name(function: Callable[..., Any]) -> str:
    """The dotted name of what a torch function mode is handed: "torch.Tensor.softmax"."""
    return resolve_name(function) or f"torch.{getattr(function, '__name__', '')}"


SETTINGS = ("torch.autograd.grad_mode",)
"""What an answer may call whatever is ruled out: `torch.no_grad` computes nothing."""


@lru_cache(maxsize=65536)
def _is_ruled_out(name: str, forbid: Names) -> bool:
    return matches(name, forbid) and not matches(name, SETTINGS)


class ForbiddenCallRecorder(TorchFunctionMode):
    """Records every forbidden call made inside a `with` block.

    Torch functions are seen by a torch function mode, which sees the outermost of nested calls only; everything else
    by Python's profiling hook, which looks at calls that the learner's own code makes. So what a library does inside
    (printing a tensor takes its maximum) is not held against anybody. Threads that begin inside are watched too.

    Attributes:
        seen: the names, in the order of the first call.
    """

    def __init__(self, forbid: Names) -> None:
        super().__init__()
        self.forbid = forbid
        self.seen: list[str] = []

    def __enter__(self) -> ForbiddenCallRecorder:
        self._profile, self._profile_of_threads = sys.getprofile(), threading.getprofile()
        if self.forbid:
            self._modes_before = _count_modes()
            super().__enter__()  # type: ignore[no-untyped-call]
            threading.setprofile(self._on_call)
            sys.setprofile(self._on_call)
        return self

    def __exit__(self, *error: object) -> None:
        if self.forbid:
            restore_profile(self._profile)
            threading.setprofile(self._profile_of_threads)
            # torch takes a mode off its stack while the mode handles a call. A time limit that interrupts just there
            # leaves it off, and there is nothing to take off any more.
            if _count_modes() > self._modes_before:
                super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self._note(dotted_name(func))
        return func(*args, **(kwargs or {}))

    def was_replaced(self) -> bool:
        """Whether another profiler has taken the place of this one, inside of its block."""
        return bool(self.forbid) and sys.getprofile() != self._on_call

    @trace_hook
    def _on_call(self, frame: FrameType, event: str, called: Any) -> None:
        # Most calls are made by libraries. One look at a frame's code tells them, and of each an audit hook hears.
        if event == "call":
            if (caller := frame.f_back) is None or in_library(caller.f_code.co_filename):
                return
            code = frame.f_code
            if in_library(code.co_filename) and not is_framework(frame):
                self._note(f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}")
        elif event == "c_call" and not in_library(frame.f_code.co_filename):
            self._note(full_name(called))

    def _note(self, name: str) -> None:
        if _is_ruled_out(name, self.forbid) and name not in self.seen:
            self.seen.append(name)


def _count_modes() -> int:
    return len(_get_current_function_mode_stack())  # type: ignore[no-untyped-call]
