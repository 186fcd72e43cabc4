"""The command that runs a program in the sandbox, and the arguments of bubblewrap that every sandbox shares."""

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
from typing import Any

from lmcourse.errors import CourseError
from lmcourse.grading.sandbox import filesystem
from lmcourse.grading.sandbox.filesystem import WORK_DIR
from lmcourse.grading.sandbox.limits import ResourceLimits
from lmcourse.grading.sandbox.seccomp import syscall_filter

USER_IDS = range(61184, 65520)
"""User ids without a name, kept for programs that need one for as long as they run (systemd's DynamicUser). The kernel
counts processes by user, so each sandbox takes its own."""


@dataclass(frozen=True)
class Sandbox:
    """Settings of a sandbox.

    Args:
        data: the assignment's data files and folders; they appear in the working folder, read-only.
        limits: how much of the machine it may use.
        private: folders that nobody inside may see, wherever they lie: nbgrader's exchange, the course.
    """

    data: tuple[Path, ...] = ()
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    private: tuple[Path, ...] = ()

    def command(self, program: Sequence[str], keep_fds: Collection[int] = ()) -> list[str]:
        """The whole command, without a shell: bubblewrap, `drop_privileges`, and the program. Started by root, it
        runs as a user whom nobody else is.

        Args:
            program: a path, as seen from inside (`sys.executable` is there), and its arguments.
            keep_fds: the file descriptors from 3 on that stay open; all others are closed.

        Raises:
            CourseError: there is no bubblewrap, a data file cannot be shown, or the course lies where submissions
                have to read.
            ValueError: the program is no path from the root.
        """
        if not program or not Path(program[0]).is_absolute():
            raise ValueError(f"a sandboxed program is named by a path from the root, not {list(program[:1])}")
        capabilities = ("CAP_SETUID", "CAP_SETGID") if os.geteuid() == 0 else ()
        bwrap = [*bubblewrap_command(capabilities), *filesystem.mounts(self._mounts(), self.private)]
        settings = json.dumps(privilege_settings(self.limits, keep_fds, choose_user_id()), separators=(",", ":"))
        first = filesystem.PACKAGE / "grading" / "sandbox" / "drop_privileges.py"
        return [*bwrap, "--", sys.executable, "-I", "-S", str(first), settings, *program]

    def _mounts(self) -> Iterator[str]:
        """What there is besides the system, and folders to write in."""
        for place in ("/dev/shm", WORK_DIR):
            yield from filesystem.tmpfs(place, self.limits.scratch)
        yield from filesystem.data_mounts(self.data, WORK_DIR)
        # Process 1 is bubblewrap itself, without our limits and filter. Of the same user, it could be written to.
        yield from ("--tmpfs", "/proc/1", "--remount-ro", "/proc/1")


def choose_user_id() -> int | None:
    """A user for a sandbox to run as: root takes any that has no name, others stay who they are (None)."""
    return secrets.choice(USER_IDS) if os.geteuid() == 0 else None


def privilege_settings(limits: ResourceLimits, keep_fds: Collection[int], uid: int | None) -> dict[str, Any]:
    """The argument of `drop_privileges.drop_privileges`, as plain data."""
    return {"limits": limits.rlimits(), "keep_fds": sorted(keep_fds), "uid": uid, "filter": syscall_filter().hex()}


def bubblewrap_command(capabilities: Collection[str]) -> list[str]:
    """The beginning of the command: an environment of ours, new namespaces, and no capabilities but the named ones.

    An ordinary user needs a user namespace for this. Root does not, and must become another user later: within a
    namespace root would stay root outside, whom RLIMIT_NPROC does not bind.

    Args:
        capabilities: those of capabilities(7) that the first program inside keeps; it is ours, and drops them.

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
    return [*start, *(word for name in sorted(capabilities) for word in ("--cap-add", name))]


def _environment() -> Iterator[str]:
    yield f"PATH={Path(sys.executable).parent}:/usr/bin:/bin"
    yield f"HOME={WORK_DIR}"
    yield f"TMPDIR={WORK_DIR}"
    yield "USER=learner"
    yield "LANG=C.UTF-8"
    yield "OMP_NUM_THREADS=1"
    yield "PYTHONDONTWRITEBYTECODE=1"
    yield "PYTHONNOUSERSITE=1"
    yield "PYTHONSAFEPATH=1"
    package_parent = filesystem.PACKAGE.parent
    if package_parent not in {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}:
        yield f"PYTHONPATH={package_parent}"  # a checkout: of its folder only lmcourse can be seen
