"""bubblewrap's arguments that every jail shares: whose environment, which namespaces, which files."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.jail import view

WORK = "/submission"
"""The working folder inside: in memory, empty but for the data files, gone at the end."""


def bubblewrap(rights: Collection[str]) -> list[str]:
    """The beginning of the command: an environment of ours, namespaces of its own, and no rights but the named ones.

    An ordinary user needs a user namespace for this. Root does not, and must become another user later: within a
    namespace root would stay root outside, whom RLIMIT_NPROC does not bind.

    Args:
        rights: capabilities(7) that the first program inside keeps; it is ours, and gives them up.

    Raises:
        CourseError: there is no bubblewrap.
    """
    tools = [shutil.which(name) for name in ("env", "bwrap")]
    if None in tools:
        raise CourseError("There is no bubblewrap here: the program bwrap was not found.")
    env, bwrap = map(str, tools)
    # The environment ends before bubblewrap starts: it lives on as process 1 inside, where /proc shows what it was
    # started with.
    start = [env, "-i", *_environment(), bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    start += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() != 0:
        start.append("--unshare-user")
    return [*start, *(word for right in sorted(rights) for word in ("--cap-add", right))]


def file_system(contents: Iterable[str]) -> Iterator[str]:
    """The arguments for what can be read: the system, Python, our package without its exercises, and what is added; all
    else is empty and locked.

    Args:
        contents: more arguments of bubblewrap, after which nothing can be added any more.

    Raises:
        CourseError: the course lies where submissions have to read.
    """
    shown = view.python()
    # bubblewrap would make the folders above a mount for their owner only.
    for folder in sorted({above for path in (*shown, Path(WORK)) for above in path.parents} | {Path("/etc")}):
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from view.system()
    yield from ("--proc", "/proc", "--dev", "/dev")
    for path in shown:
        yield from ("--ro-bind", str(path), str(path))
    yield from view.chapters()
    yield from contents
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK)


def folder_in_memory(place: str, size: int) -> tuple[str, ...]:
    """The arguments for an empty folder that everybody inside may write to, of so many bytes."""
    return ("--perms", "1777", "--size", str(size), "--tmpfs", place)


def _environment() -> Iterator[str]:
    yield f"PATH={Path(sys.executable).parent}:/usr/bin:/bin"
    yield f"HOME={WORK}"
    yield f"TMPDIR={WORK}"
    yield "USER=learner"
    yield "LANG=C.UTF-8"
    yield "OMP_NUM_THREADS=1"
    yield "PYTHONDONTWRITEBYTECODE=1"
    yield "PYTHONNOUSERSITE=1"
    yield "PYTHONSAFEPATH=1"
    if view.PACKAGE.parent not in {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}:
        yield f"PYTHONPATH={view.PACKAGE.parent}"  # a checkout: of its folder only lmcourse can be seen
