"""Install an audit hook (PEP 578) in the notebook's process, which reports suspicious events over a pipe.

Python itself calls it at each of its "audit events" (PEP 578), and it cannot be taken out again. `audit_hook.py` is its
code; here stand the events that it reports, and how it is put where the notebook's code has no name for it. All
solutions of the course were run to find out which events honest work does not cause; some need a closer look, and are
described in `audit_hook.py`. `sandboxed_process.AuditReports` is what the grader makes of what came.

It is evidence and no wall: the sandbox keeps a notebook from doing harm, and marks come from outside. Whoever writes to
the memory of Python (ctypes, a C extension) can silence it, which is reported as long as it was done by ways that
Python announces. So can a signal handler that strikes in the middle of the hook and looks around in its frame. Nor does
Python announce everything: not `os.stat`, not what a library does in C.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from lmcourse.exercises import forbidden_calls, limits
from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.restrictions import late_imports, library_functions
from lmcourse.grading.sandbox import WORK_DIR, filesystem

HOOK_SOURCE = Path(__file__).with_name("audit_hook.py")

EventTable = dict[str, tuple[str, str, int | None]]
"""An event's kind of evidence, what it did, and which of the event's arguments tells with what."""

PATH_EVENTS: EventTable = {
    event: ("file", doing, which)
    for event, doing, which in (
        ("os.listdir", "listed", 0),
        ("os.scandir", "listed", 0),
        ("os.chdir", "went to", 0),
        ("os.chmod", "changed", 0),
        ("os.chown", "changed", 0),
        ("os.mkdir", "made", 0),
        ("os.remove", "removed", 0),
        ("os.rmdir", "removed", 0),
        ("os.rename", "renamed", 0),
        ("os.truncate", "cut", 0),
        ("os.symlink", "made a link to", 0),
        ("os.link", "made a link to", 0),
    )
}
"""Usual in some places, strange in others."""

NETWORK_EVENTS: EventTable = {
    **{f"socket.{name}": ("network", f"used a socket ({name})", None) for name in ("connect", "bind", "sendto")},
    "socket.sendmsg": ("network", "used a socket (sendmsg)", None),
    "socket.getaddrinfo": ("network", "looked up a host:", 0),
    "socket.gethostbyname": ("network", "looked up a host:", 0),
    "socket.gethostbyaddr": ("network", "looked up a host:", 0),
}

PROCESS_EVENTS: EventTable = {
    "subprocess.Popen": ("process", "started a program:", 0),
    "pty.spawn": ("process", "started a program:", 0),
    "os.fork": ("process", "doubled itself (os.fork)", None),
    "os.forkpty": ("process", "doubled itself (os.forkpty)", None),
    "os.system": ("process", "ran a command (os.system)", None),
    "os.exec": ("process", "became a program:", 0),
    "os.posix_spawn": ("process", "started a program:", 0),
    "os.spawn": ("process", "started a program:", 1),
    "os.kill": ("process", "sent a signal (os.kill)", None),
    "os.killpg": ("process", "sent a signal (os.killpg)", None),
}

INTERPRETER_EVENTS: EventTable = {
    **{
        f"ctypes.{name}": ("interpreter", "reached into memory with ctypes", None)
        for name in ("addressof", "call_function", "cdata", "cdata/buffer", "PyObj_FromPtr", "string_at", "wstring_at")
    },
    "ctypes.dlopen": ("interpreter", "loaded a library of C:", 0),
    "ctypes.dlsym": ("interpreter", "looked for a function of C:", 1),
    "ctypes.dlsym/handle": ("interpreter", "looked for a function of C:", 1),
    "gc.get_objects": ("interpreter", "looked through all of Python's objects (gc.get_objects)", None),
    "gc.get_referents": ("interpreter", "looked for what an object holds (gc.get_referents)", None),
    "gc.get_referrers": ("interpreter", "looked for what holds an object (gc.get_referrers)", None),
    "sys._current_frames": ("interpreter", "looked at other threads (sys._current_frames)", None),
    "sys._current_exceptions": ("interpreter", "looked at other threads (sys._current_exceptions)", None),
    "sys.addaudithook": ("interpreter", "wanted to hear of every event (sys.addaudithook)", None),
}

SUSPICIOUS_MODULES = ("_xxsubinterpreters", "_xxinterpchannels", "_testcapi", "_testinternalcapi")
"""Modules of Python that lead to where no audit hook looks."""


WRITABLE_FOLDERS = ("/tmp", "/dev/shm", WORK_DIR)
"""Folders where honest work writes."""

READABLE_FOLDERS = (*WRITABLE_FOLDERS, "/usr", "/bin", "/lib", "/lib64")
"""Folders where it finds what it needs, besides Python's own."""

READABLE_FILES = ("/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/self/statm")
"""The last is read by `lmcourse.exercises.limits`, the others by libraries."""

COMPARISON_FUNCTIONS = ("__eq__", "__ne__", "allclose", "equal", "isclose", "item", "tolist")
"""What a check of one's own would rely on."""


TRACING_MODULES = (limits, forbidden_calls, threading, library_functions, late_imports)
"""Modules of which functions may trace, or change the code of others."""

WATCHED_CLASSES = ("lmcourse.exercises", "lmcourse.grading.restrictions", "lmcourse.accounting.simulated_device")
"""Modules whose classes are to stay as they are: they run, watch and restrict an answer, or keep the time for one."""

VERSION_OFFSET = 3 * ctypes.sizeof(ctypes.c_void_p)
"""Where a dict has the number that changes with it (`ma_version_tag` of PEP 509, until CPython 3.12)."""

_install: list[Callable[[int], None]] = []


def prepare_audit_hook() -> None:
    """Build the hook, and let it remember what is to stay as it is. Only our code may have run so far.

    The hook is run from its file, with a copy of the builtins, and becomes no module: so there is no name under
    which a notebook could find and change it, nor does a change of `builtins` or of `json` reach it.
    """
    names: dict[str, Any] = {"__name__": "audit_hook", "__builtins__": dict(vars(builtins))}
    exec(compile(HOOK_SOURCE.read_text(encoding="utf-8"), "<audit hook>", "exec"), names)
    python = (sys.prefix, sys.base_prefix, *filesystem.python_folders())
    names["configure"](
        readable_folders=tuple(f"{place}/" for place in (*READABLE_FOLDERS, *python)),
        writable_folders=tuple(f"{place}/" for place in WRITABLE_FOLDERS),
        readable_files=READABLE_FILES,
        suspicious_modules=SUSPICIOUS_MODULES,
        tracers=[*(one for module in TRACING_MODULES for one in _tracers(module))],
        line_hook=limits._Interrupts._at_line,
        time_limit=limits.TimeLimitExceeded,
        unpatched=list(_unpatched()),
        each_message=("builtins", "sys.modules", "torch", "lmcourse.exercises", "lmcourse.grading", *WATCHED_CLASSES),
    )
    names["add_events"](PATH_EVENTS, paths=True)
    names["add_events"]({**NETWORK_EVENTS, **PROCESS_EVENTS, **INTERPRETER_EVENTS}, paths=False)
    _install[:] = [names["install"]]


def install_audit_hook(pipe: int) -> None:
    """Install the hook in this process. What was prepared is then known to Python alone.

    Args:
        pipe: a descriptor to write to.
    """
    _install.pop()(pipe)


def _tracers(module: ModuleType) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """The functions that may trace: each one's code, and the names that it sees."""
    for value in list(vars(module).values()):
        for member in vars(value).values() if isinstance(value, type) else (value,):
            function = inspect.unwrap(member) if callable(member) else None
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function.__code__, function.__globals__


def _unpatched() -> Iterator[tuple[str, Mapping[str, Any], Collection[str], ctypes.c_uint64 | None]]:
    """What is not to be replaced: what it belongs to, the names there, those that count, and the names' version."""
    tagged = _has_version_tags()
    for name, names, counting in _namespaces():
        yield name, names, counting, _version_tag(names) if tagged else None


def _version_tag(names: Mapping[str, Any]) -> ctypes.c_uint64:
    """Where the version of a dict stands, or of the one behind the names of a class."""
    [table] = [names] if isinstance(names, dict) else gc.get_referents(names)
    return ctypes.c_uint64.from_address(id(table) + VERSION_OFFSET)


def _has_version_tags() -> bool:
    """Whether this Python's dicts have versions: one that changes with what a dict holds, and with nothing else."""
    table = {"name": 1, "other": 2}
    tag = _version_tag(table)
    seen = [tag.value]
    for change in (lambda: table.update(name=3), lambda: table.pop("other"), lambda: table.get("name"), dict):
        change()
        seen.append(tag.value)
    return len({*seen}) == 3 and seen[2:] == seen[2:3] * 3


def _namespaces() -> Iterator[tuple[str, Mapping[str, Any], Collection[str]]]:
    """What is not to be replaced: what it belongs to, the names there, and those that count."""
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "lmcourse"}
    yield "builtins", vars(builtins), list(vars(builtins))
    yield "torch", vars(torch), COMPARISON_FUNCTIONS
    yield "torch.Tensor", vars(torch.Tensor), COMPARISON_FUNCTIONS
    yield "sys.modules", sys.modules, ["builtins", "sys", "torch", *ours]
    for name, module in ours.items():
        yield name, vars(module), list(vars(module))
        for own in vars(module).values() if name.startswith(WATCHED_CLASSES) else ():
            if isinstance(own, type) and own.__module__ == name:
                yield f"{name}.{own.__name__}", vars(own), list(vars(own))


class AuditedChannel(Channel):
    """A channel that has the hook look for patches before each message: after each cell and each answer, that is."""

    def encoded(self, value: Plain) -> bytes:
        """Look for patches, then encode. Raises what `Channel.encoded` does."""
        sys.audit("lmcourse.check_patches")
        return super().encoded(value)
