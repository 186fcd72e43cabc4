"""Puts the witness into a process that is about to run a notebook."""

from __future__ import annotations

import builtins
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from lmcourse.exercises import limits, watch
from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.jail import view
from lmcourse.grading.jail.bubblewrap import WORK
from lmcourse.grading.nursery.witness import events

HOOK = Path(__file__).with_name("hook.py")

OWN = ("/tmp", "/dev/shm", WORK)
"""Folders where honest work writes."""

PLACES = (*OWN, "/usr", "/bin", "/lib", "/lib64")
"""Folders where it finds what it needs, besides Python's own."""

FILES = ("/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/self/statm")
"""The last is read by `lmcourse.exercises.limits`, the others by libraries."""

COMPARISONS = ("__eq__", "__ne__", "allclose", "equal", "isclose", "item", "tolist")
"""What a check of one's own would rely on."""


_begin: list[Callable[[int], None]] = []


def prepare() -> None:
    """Build the witness, and let it remember what is to stay as it is. Only our code may have run so far.

    The hook is run from its file, with a copy of the builtins, and becomes no module: so there is no name under
    which a notebook could find and change it, nor does a change of `builtins` or of `json` reach it.
    """
    names: dict[str, Any] = {"__name__": "witness", "__builtins__": dict(vars(builtins))}
    exec(compile(HOOK.read_text(encoding="utf-8"), "<witness>", "exec"), names)
    places = tuple(f"{place}/" for place in (*PLACES, sys.prefix, sys.base_prefix, *view.python()))
    tracers = [*_tracers(limits), *_tracers(watch), *_tracers(threading)]
    own = tuple(f"{place}/" for place in OWN)
    names["remember"](places, own, FILES, events.MODULES, tracers, limits.TimeLimitExceeded, list(_watched()))
    names["judge_by"](events.PATHS, paths=True)
    names["judge_by"]({**events.NETWORK, **events.PROCESSES, **events.INTERPRETER}, paths=False)
    _begin[:] = [names["begin"]]


def install(pipe: int) -> None:
    """Begin to watch this process. What was prepared is then known to Python alone.

    Args:
        pipe: a descriptor to write to.
    """
    _begin.pop()(pipe)


def _tracers(module: ModuleType) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """The functions that may trace: each one's code, and the names that it sees."""
    for value in list(vars(module).values()):
        for member in vars(value).values() if isinstance(value, type) else (value,):
            function = inspect.unwrap(member) if callable(member) else None
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function.__code__, function.__globals__


def _watched() -> Iterator[tuple[str, Mapping[str, Any], Collection[str]]]:
    """What is not to be replaced: what it belongs to, the names there, and those that count."""
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "lmcourse"}
    yield "builtins", vars(builtins), list(vars(builtins))
    yield "torch", vars(torch), COMPARISONS
    yield "torch.Tensor", vars(torch.Tensor), COMPARISONS
    yield "sys.modules", sys.modules, ["builtins", "sys", "torch", *ours]
    for name, module in ours.items():
        yield name, vars(module), list(vars(module))


class WitnessedChannel(Channel):
    """A channel that has the witness look around before each message: after each cell and each answer, that is."""

    def send(self, value: Plain, seconds: float | None = None) -> None:
        """Look, then send. Raises what `Channel.send` does."""
        sys.audit("lmcourse.look")
        super().send(value, seconds)
