"""The command that runs a program in the jail."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import sysconfig
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.jail import view
from lmcourse.grading.jail.limits import Limits
from lmcourse.grading.jail.syscalls import syscall_filter

WORK = "/submission"
"""The working folder inside: in memory, empty but for the data files, gone at the end."""

USERS = range(61184, 65520)
"""Numbers of users without a name, kept for programs that need one for as long as they run (systemd's
DynamicUser). The kernel counts processes by user, so each jail takes its own."""


@dataclass(frozen=True)
class Jail:
    """What a program is given.

    Args:
        data: the assignment's data files and folders; they appear in the working folder, read-only.
        limits: how much of the machine it may use.
    """

    data: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def command(self, program: Sequence[str], keep: Collection[int] = ()) -> list[str]:
        """The whole command, without a shell: `prefix`, and the program.

        Args:
            program: a path, as seen from inside (`sys.executable` is there), and its arguments.
            keep: as in `prefix`.

        Raises:
            CourseError: as `prefix` does.
            ValueError: the program is no path from the root.
        """
        if not program or not Path(program[0]).is_absolute():
            raise ValueError(f"a jailed program is named by a path from the root, not {list(program[:1])}")
        return [*self.prefix(keep), *program]

    def prefix(self, keep: Collection[int] = ()) -> list[str]:
        """What is put in front of a program to jail it: bubblewrap, and `enter`. Started by root, what
        one call jails is of one user, whom nobody else is.

        Args:
            keep: the file descriptors from 3 on that stay open; all others are closed.

        Raises:
            CourseError: there is no bubblewrap, a data file cannot be shown, or the course lies where
                submissions have to read.
        """
        tools = [shutil.which(name) for name in ("env", "bwrap")]
        if None in tools:
            raise CourseError("There is no bubblewrap here: the program bwrap was not found.")
        env, bwrap = map(str, tools)
        # The environment ends before bubblewrap starts: it lives on as process 1 inside, where /proc shows what it
        # was started with.
        start = [env, "-i", *self._environment(), bwrap, *_apart(), *self._view()]
        settings = json.dumps(self._settings(keep), separators=(",", ":"))
        enter = [sys.executable, "-I", "-S", str(view.PACKAGE / "grading" / "jail" / "enter.py"), settings]
        return [*start, "--", *enter]

    def _environment(self) -> Iterator[str]:
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

    def _view(self) -> Iterator[str]:
        """bubblewrap's arguments for what to read and a folder to write in; all else is empty and locked."""
        shown = view.python()
        # bubblewrap would make the folders above a mount for their owner only.
        for folder in sorted({above for path in (*shown, Path(WORK)) for above in path.parents} | {Path("/etc")}):
            yield from ("--perms", "0755", "--dir", str(folder))
        yield from view.system()
        yield from ("--proc", "/proc", "--dev", "/dev")
        for place in ("/dev/shm", WORK):
            yield from ("--perms", "1777", "--size", str(self.limits.scratch), "--tmpfs", place)
        for path in shown:
            yield from ("--ro-bind", str(path), str(path))
        yield from view.data(self.data, WORK)
        # Process 1 is bubblewrap itself, without our limits and filter. Of the same user, it could be written to.
        yield from ("--tmpfs", "/proc/1", "--remount-ro", "/proc/1")
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK)

    def _settings(self, keep: Collection[int]) -> dict[str, object]:
        limits = {
            "RLIMIT_CORE": (0, 0),
            # The signal of the first limit says that it was time; one second later comes SIGKILL.
            "RLIMIT_CPU": (self.limits.cpu_seconds, self.limits.cpu_seconds + 1),
            "RLIMIT_DATA": (self.limits.memory, self.limits.memory),
            "RLIMIT_FSIZE": (self.limits.file_size, self.limits.file_size),
            "RLIMIT_NOFILE": (self.limits.open_files, self.limits.open_files),
            "RLIMIT_NPROC": (self.limits.processes, self.limits.processes),
        }
        user = secrets.choice(USERS) if os.geteuid() == 0 else None
        return {"limits": limits, "keep": sorted(keep), "uid": user, "filter": syscall_filter().hex()}


def _apart() -> list[str]:
    """Namespaces of its own, and no rights.

    An ordinary user needs a user namespace for this. Root does not, and keeps two rights until `enter` has become
    another user: within a namespace root would stay root outside, whom RLIMIT_NPROC does not bind.
    """
    apart = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    apart += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        return [*apart, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*apart, "--unshare-user"]
