"""The witness itself. `watching` runs this file where no notebook has a name for it; nobody imports it.

Everything it calls is written in C or stands in this file. What comes with an event may be an object of the learner's
own class, so none of its methods is called. Nothing may reach the learner's code from here, least of all a traceback,
which would lead to these names. What cannot be looked at, at the end of the stack for example, is told later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from os import fstat, getcwd, write
from socket import AF_UNIX
from sys import _getframe, addaudithook
from typing import Any

MOST = 10
"""Sentences of one kind: many of one must leave room for the others."""

LONGEST = 120
"""Characters of what a sentence quotes."""

HIGHEST = 1024
"""Above the number of every descriptor."""

WRITING = 0o3 | 0o100 | 0o1000  # O_WRONLY and O_RDWR, O_CREAT, O_TRUNC
GONE = object()

told: dict[str, set[str]] = {}
missed: dict[str, bool] = {}
state: dict[str, Any] = {}
judges: dict[str, tuple[str, Callable[[Any], str]]] = {}


def remember(
    places: tuple[str, ...],
    own: tuple[str, ...],
    files: Collection[str],
    modules: Collection[str],
    tracers: Sequence[tuple[Any, Any]],
    struck: type[BaseException],
    watched: Sequence[tuple[str, Mapping[str, Any], Collection[str]]],
) -> None:
    """Learn what is usual.

    Args:
        places: beginnings of paths that are nobody's secret, each with a slash at its end.
        own: the same, where anybody may write.
        files: the same, of single files.
        modules: what nobody has a use for.
        tracers: code that may trace, with its globals.
        struck: what the course's own time limit raises, wherever Python is at that moment.
        watched: a name, the names it holds, and those of them that are not to be replaced.
    """
    state.update(
        places=places, own=own, files=frozenset(files), modules=frozenset(modules), tracers=tracers, struck=struck
    )
    state["watched"] = [(name, now, {key: now.get(key, GONE) for key in keys}) for name, now, keys in watched]


def judge_by(table: Mapping[str, tuple[str, str, int | None]], *, paths: bool) -> None:
    """Learn events, by name: their kind, what to say, and the argument to quote. Of paths, strange ones only."""
    for event, (kind, doing, which) in table.items():
        judges[event] = (kind, reached(doing, which or 0) if paths else did(doing, which))


def begin(pipe: int) -> None:
    """Watch from now on, and tell it there."""
    known = fstat(pipe)
    state.update(pipe=pipe, identity=(known.st_dev, known.st_ino))
    addaudithook(hook)


def hook(event: str, details: Any) -> None:
    """What Python calls at each event (PEP 578)."""
    found = judges.get(event)
    if found is None:
        return
    try:
        what = found[1](details)
        if what:
            tell(found[0], what)
    except BaseException as error:  # at the end of the stack, or from a signal handler
        if type(error) is not state["struck"]:  # which strikes again
            missed[event] = True


def look(_: Any) -> str:
    """Tell what was replaced, and what had to be let pass."""
    for event in list(missed):
        tell("interpreter", f"it did something ({event}) in a way that hides what it was")
    for name, now, was in state["watched"]:
        for key, value in was.items():
            if now.get(key, GONE) is not value:
                tell("builtins", f"it replaced {key} of {name}")
    return ""


def tell(kind: str, what: str) -> None:
    """Write a sentence that was not written before."""
    sentences = told.setdefault(kind, set())
    if what in sentences or len(sentences) >= MOST:
        return
    plain = "".join([c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in what])
    write(pipe(), f'{{"kind": "{kind}", "what": "{plain}"}}\n'.encode())
    sentences.add(what)


def pipe() -> int:
    """Where to tell. Whoever puts another file in its place has to close the pipe, which the grader sees, or keep it
    open under another number, where it is found."""
    for number in (state["pipe"], *range(HIGHEST)):
        try:
            one = fstat(number)
        except OSError:
            continue
        if (one.st_dev, one.st_ino) == state["identity"]:
            return number  # type: ignore[no-any-return]
    raise OSError


def text(value: Any) -> str:
    """A path or a name as an exact string; nothing if it is neither."""
    if issubclass(type(value), str):
        return str.__str__(value)
    if issubclass(type(value), bytes):
        return bytes.decode(value, "utf-8", "replace")
    return ""


def whole(path: str) -> str:
    """A path from the root, without `..`."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{getcwd()}/{path}").split("/"):  # noqa: PTH109 - ours alone
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def strange(path: str) -> str:
    """The path if honest work has no business there."""
    if path.startswith(state["places"]) and "/../" not in path:
        return ""
    path = whole(path)
    return "" if path in state["files"] or f"{path}/".startswith(state["places"]) else path[:LONGEST]


def not_its_own(path: str) -> str:
    """The path if honest work does not write there."""
    path = whole(path)
    return "" if path == "/dev/null" or f"{path}/".startswith(state["own"]) else path[:LONGEST]


def opened(details: Any) -> str:
    name, _, flags = details
    path = text(name)
    writing = type(flags) is int and flags & WRITING
    found = path and (not_its_own(path) if writing else strange(path))
    return found and f"it opened {found}{' to write' if writing else ''}"


def reached(doing: str, which: int) -> Callable[[Any], str]:
    """A judge of events whose argument of this number is a path."""

    def judge(details: Any) -> str:
        name = text(details[which])
        path = strange(name) if name else ""
        return path and f"it {doing} {path}"

    return judge


def did(doing: str, which: int | None) -> Callable[[Any], str]:
    """A judge of events that honest work never causes; the argument of this number is quoted."""

    def judge(details: Any) -> str:
        name = "" if which is None else text(details[which])
        return f"it {doing} {name[:LONGEST]}".rstrip()

    return judge


def made_a_socket(details: Any) -> str:
    return "" if details[1] in (AF_UNIX, -1) else "it made a socket for a network"


def traced(details: Any) -> str:
    frame = _getframe(2)
    for code, names in state["tracers"]:
        if frame.f_code is code and frame.f_globals is names:
            return ""
    return "it set a function that Python calls at each step (sys.settrace or sys.setprofile)"


def rewired(details: Any) -> str:
    return "it replaced the code of a function" if details[1] == "__code__" else ""


def imported(details: Any) -> str:
    name = text(details[0])
    return f"it imported {name}" if name in state["modules"] else ""


judges["open"] = ("file", opened)
judges["socket.__new__"] = ("network", made_a_socket)
judges["sys.settrace"] = judges["sys.setprofile"] = ("interpreter", traced)
judges["object.__setattr__"] = ("interpreter", rewired)
judges["import"] = ("interpreter", imported)
judges["lmcourse.look"] = ("builtins", look)
