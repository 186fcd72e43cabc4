"""The command that runs a program in the jail."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmcourse.grading.jail import view
from lmcourse.grading.jail.bubblewrap import WORK, bubblewrap, file_system, folder_in_memory
from lmcourse.grading.jail.limits import Limits
from lmcourse.grading.jail.syscalls import syscall_filter

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
        start = [*bubblewrap(("CAP_SETUID", "CAP_SETGID") if os.geteuid() == 0 else ()), *file_system(self._contents())]
        settings = json.dumps(surrender(self.limits, keep, user()), separators=(",", ":"))
        enter = [sys.executable, "-I", "-S", str(view.PACKAGE / "grading" / "jail" / "enter.py"), settings]
        return [*start, "--", *enter]

    def _contents(self) -> Iterator[str]:
        """What is to be had besides the system, and a folder to write in."""
        for place in ("/dev/shm", WORK):
            yield from folder_in_memory(place, self.limits.scratch)
        yield from view.data(self.data, WORK)
        # Process 1 is bubblewrap itself, without our limits and filter. Of the same user, it could be written to.
        yield from ("--tmpfs", "/proc/1", "--remount-ro", "/proc/1")


def user() -> int | None:
    """A user for a jail to run as: root takes any that has no name, whoever is no root stays what they are."""
    return secrets.choice(USERS) if os.geteuid() == 0 else None


def surrender(limits: Limits, keep: Collection[int], user: int | None) -> dict[str, Any]:
    """What `enter` gives up, and what it keeps, as plain data: its first argument."""
    return {"limits": limits.of_process(), "keep": sorted(keep), "uid": user, "filter": syscall_filter().hex()}
