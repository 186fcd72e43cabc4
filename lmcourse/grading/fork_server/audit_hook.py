"""The audit hook itself. `audit` runs this file where no notebook has a name for it; nobody imports it.

Everything it calls is written in C or stands in this file. What comes with an event may be an object of the learner's
own class, so none of its methods is called. Nothing may reach the learner's code from here, least of all a traceback,
which would lead to these names. What cannot be looked at, at the end of the stack for example, is reported later.
"""

from __future__ import annotations

from _lsprof import Profiler
from _operator import is_
from _thread import get_ident
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import repeat
from os import fstat, getcwd, write
from socket import AF_UNIX
from sys import _getframe, addaudithook, getprofile, gettrace
from types import MethodType
from typing import Any

MAX_SENTENCES_PER_KIND = 10
"""Sentences of one kind: many of one must leave room for the others."""

MAX_QUOTED_CHARS = 120
"""Characters of what a sentence quotes."""

MAX_DESCRIPTORS = 1024
"""Above the number of every descriptor."""

TRACED = "it set a function that Python calls at each step (sys.settrace or sys.setprofile)"

CALLERS = "it looked at the frames of its callers"

TURNS = 8
"""Messages until all of what marks do not hang on has been looked at."""

FRAME_ATTRIBUTES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")

DROPPED_PROFILER = ("sys.setprofile", "sys._getframe")
"""What happens where Python drops a profiler that it has no room left to call, as in any recursion without end."""

WRITE_FLAGS = 0o3 | 0o100 | 0o1000  # O_WRONLY and O_RDWR, O_CREAT, O_TRUNC
MISSING = object()

reported: dict[str, set[str]] = {}
missed: dict[str, bool] = {}
state: dict[str, Any] = {}
looking: list[bool] = []
doubtful_profiles: dict[int, Any] = {}
describers: dict[str, tuple[str, Callable[[Any], str]]] = {}


def configure(
    *,
    readable_folders: tuple[str, ...],
    writable_folders: tuple[str, ...],
    readable_files: Collection[str],
    suspicious_modules: Collection[str],
    tracers: Sequence[tuple[Any, Any]],
    line_hook: Any,
    time_limit: type[BaseException],
    unpatched: Sequence[tuple[str, Mapping[str, Any], Collection[str], Any]],
    each_message: tuple[str, ...],
) -> None:
    """Set what is allowed.

    Args:
        readable_folders: beginnings of paths that are nobody's secret, each with a slash at its end.
        writable_folders: the same, where anybody may write.
        readable_files: single files that are nobody's secret.
        suspicious_modules: what nobody has a use for.
        tracers: code that may trace, or change the code of others, with its globals.
        line_hook: what the course's own time limit has called at each line.
        time_limit: what the course's own time limit raises, wherever Python is at that moment.
        unpatched: a name, the names it holds, those of them that are not to be replaced, and what has another `value`
            once any of them was; None if nothing tells.
        each_message: beginnings of the names among these that are looked at before each message, not only in turn.
    """
    state.update(
        readable_folders=readable_folders,
        writable_folders=writable_folders,
        readable_files=frozenset(readable_files),
        suspicious_modules=frozenset(suspicious_modules),
        tracers={id(code): (code, names) for code, names in tracers},
        line_hook=line_hook,
        time_limit=time_limit,
    )
    known = [[name, now, {key: now.get(key, MISSING) for key in keys}, tag, None] for name, now, keys, tag in unpatched]
    state["unpatched"] = [one for one in known if str.startswith(one[0], each_message)]
    state["in_turn"] = [one for one in known if not str.startswith(one[0], each_message)]
    state["turn"] = 0


def add_events(table: Mapping[str, tuple[str, str, int | None]], *, paths: bool) -> None:
    """Add events, by name: their kind, what to say, and the argument to quote. Of paths, unusual ones only."""
    for event, (kind, doing, which) in table.items():
        describers[event] = (kind, path_describer(doing, which or 0) if paths else call_describer(doing, which))


def install(pipe: int) -> None:
    """Watch from now on, and write reports to this descriptor."""
    known = fstat(pipe)
    state.update(pipe=pipe, identity=(known.st_dev, known.st_ino))
    addaudithook(hook)


def hook(event: str, details: Any) -> None:
    """What Python calls at each event (PEP 578)."""
    entry = describers.get(event)
    if entry is None:
        return
    try:
        if entry[1] is describe_getattr and type(details[1]) is str and details[1] == "f_code":
            return  # the recorder of an answer's calls looks at the code of each frame
        what = entry[1](details)
        if what:
            report(entry[0], what)
    except BaseException as error:  # at the end of the stack, or from a signal handler
        dropped = type(error) is RecursionError and event in DROPPED_PROFILER
        if type(error) is not state["time_limit"] and not dropped:  # which is raised again
            missed[event] = True


def report_patches(_: Any) -> str:
    """Report what was replaced, and what had to be let pass."""
    if describe_doubtful_profile() or doubtful_profiles:  # another thread's cannot be looked at
        report("interpreter", TRACED)
    for event in list(missed):
        report("interpreter", f"it did something ({event}) in a way that hides what it was")
    state["turn"] = turn = (state["turn"] + 1) % TURNS
    for known in state["unpatched"] + state["in_turn"][turn::TURNS]:
        name, now, was, tag, good = known
        version = None if tag is None else tag.value
        if version is not None and version == good:
            continue
        if all(map(is_, map(now.get, was.keys(), repeat(MISSING)), was.values())):
            known[-1] = version
            continue  # thousands of names, again and again: the loop below takes longer
        for key, value in was.items():
            if now.get(key, MISSING) is not value:
                report("builtins", f"it replaced {key} of {name}")
    return ""


def report(kind: str, what: str) -> None:
    """Write a sentence that was not written before."""
    sentences = reported.setdefault(kind, set())
    if what in sentences or len(sentences) >= MAX_SENTENCES_PER_KIND:
        return
    ascii_text = "".join([c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in what])
    write(report_fd(), f'{{"kind": "{kind}", "what": "{ascii_text}"}}\n'.encode())
    sentences.add(what)


def report_fd() -> int:
    """The descriptor to report to.

    Whoever puts another file in its place has to close the pipe, which the grader sees, or keep it open under another
    number, where it is found. Raises OSError if it is closed.
    """
    for number in (state["pipe"], *range(MAX_DESCRIPTORS)):
        try:
            one = fstat(number)
        except OSError:
            continue
        if (one.st_dev, one.st_ino) == state["identity"]:
            return number  # type: ignore[no-any-return]
    raise OSError


def exact_text(value: Any) -> str:
    """A path or a name as an exact string; nothing if it is neither."""
    if issubclass(type(value), str):
        return str.__str__(value)
    if issubclass(type(value), bytes):
        return bytes.decode(value, "utf-8", "replace")
    return ""


def absolute_path(path: str) -> str:
    """A path from the root, without `..`."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{getcwd()}/{path}").split("/"):  # noqa: PTH109 - ours alone
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def unusual_path(path: str) -> str:
    """The path if honest work has no business there."""
    if path.startswith(state["readable_folders"]) and "/../" not in path:
        return ""
    path = absolute_path(path)
    usual = path in state["readable_files"] or f"{path}/".startswith(state["readable_folders"])
    return "" if usual else path[:MAX_QUOTED_CHARS]


def unusual_write_path(path: str) -> str:
    """The path if honest work does not write there."""
    path = absolute_path(path)
    return "" if path == "/dev/null" or f"{path}/".startswith(state["writable_folders"]) else path[:MAX_QUOTED_CHARS]


def describe_open(details: Any) -> str:
    """Opening a file that honest work does not open."""
    name, _, flags = details
    path = exact_text(name)
    writing = type(flags) is int and flags & WRITE_FLAGS
    found = path and (unusual_write_path(path) if writing else unusual_path(path))
    return found and f"it opened {found}{' to write' if writing else ''}"


def path_describer(doing: str, which: int) -> Callable[[Any], str]:
    """Describes events whose argument of this number is a path."""

    def describe(details: Any) -> str:
        name = exact_text(details[which])
        path = unusual_path(name) if name else ""
        return path and f"it {doing} {path}"

    return describe


def call_describer(doing: str, which: int | None) -> Callable[[Any], str]:
    """Describes events that honest work never causes; the argument of this number is quoted."""

    def describe(details: Any) -> str:
        if is_tracer(_getframe(2)):
            return ""
        name = "" if which is None else exact_text(details[which])
        return f"it {doing} {name[:MAX_QUOTED_CHARS]}".rstrip()

    return describe


def describe_socket(details: Any) -> str:
    """Making a socket that could leave this machine."""
    return "" if details[1] in (AF_UNIX, -1) else "it made a socket for a network"


def describe_settrace(_: Any) -> str:
    """Tracing by code that is not the course's own. Python itself drops a trace function that raises, as the time
    limit's does."""
    now = gettrace()
    limited = type(now) is MethodType and now.__func__ is state["line_hook"]
    return "" if limited or (now is None and is_tracer(_getframe(2))) else TRACED


def describe_setprofile(_: Any) -> str:
    """Profiling by code that is not the course's own, other than with `cProfile`.

    What is being set is not told: it is looked at as soon as it is there, at the next event or message.
    """
    sentence, now = describe_doubtful_profile(), getprofile()
    if not is_tracer(_getframe(2)) and not issubclass(type(now), Profiler):
        doubtful_profiles[get_ident()] = now
    return sentence


def describe_doubtful_profile() -> str:
    """What code that is not the course's own did with this thread's profile function, unless it was `cProfile`, or
    nothing (as when `cProfile` is ended twice)."""
    if get_ident() not in doubtful_profiles:
        return ""
    before, now = doubtful_profiles.pop(get_ident()), getprofile()
    return "" if issubclass(type(now), Profiler) or (before is None and now is None) else TRACED


def is_tracer(frame: Any) -> bool:
    """Whether this is the frame of code that may trace."""
    code, names = state["tracers"].get(id(frame.f_code), (None, None))
    return frame.f_code is code and frame.f_globals is names


def describe_setattr(details: Any) -> str:
    """Replacing the code of a function, other than to refuse what an exercise rules out."""
    if details[1] != "__code__" or is_tracer(_getframe(2)):
        return ""
    return "it replaced the code of a function"


def describe_code(_: Any) -> str:
    """Making code other than from text, or to refuse what an exercise rules out."""
    return "" if is_tracer(_getframe(2)) else "it made code that is no text"


def describe_function(_: Any) -> str:
    """Making a function of code that exists already, in a cell of the notebook's."""
    return "it made a function of another one's code" if in_cell(_getframe(2)) else ""


def describe_unmarshalling(_: Any) -> str:
    """Reading what is written as compiled modules are, numbers among it, in a cell of the notebook's."""
    return "it read what is written as compiled modules are" if in_cell(_getframe(2)) else ""


def describe_getattr(details: Any) -> str:
    """Going from a traceback or a generator to a frame, in a cell of the notebook's."""
    return CALLERS if exact_text(details[1]) in FRAME_ATTRIBUTES and in_cell(_getframe(2)) else ""


def describe_getframe(_: Any) -> str:
    """Looking at its callers' frames, in a cell of the notebook's."""
    if looking:  # for this
        return ""
    looking.append(True)
    try:
        caller = _getframe(2)
    finally:
        looking.clear()
    return CALLERS if in_cell(caller) else ""


def in_cell(frame: Any) -> bool:
    """Whether this is the frame of code that stands in a cell."""
    return str.startswith(frame.f_code.co_filename, "<cell ")


def describe_import(details: Any) -> str:
    """Importing what leads to where no audit hook looks."""
    name = exact_text(details[0])
    return f"it imported {name}" if name in state["suspicious_modules"] else ""


describers["open"] = ("file", describe_open)
describers["socket.__new__"] = ("network", describe_socket)
describers["sys.settrace"] = ("interpreter", describe_settrace)
describers["sys.setprofile"] = ("interpreter", describe_setprofile)
describers["code.__new__"] = ("interpreter", describe_code)
describers["marshal.loads"] = ("interpreter", describe_unmarshalling)
describers["function.__new__"] = ("interpreter", describe_function)
describers["object.__getattr__"] = ("interpreter", describe_getattr)
describers["sys._getframe"] = ("interpreter", describe_getframe)
describers["object.__setattr__"] = ("interpreter", describe_setattr)
describers["import"] = ("interpreter", describe_import)
describers["lmcourse.check_patches"] = ("builtins", report_patches)
