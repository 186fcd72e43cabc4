"""The keeper in its bubblewrap, seen by the grader: started, spoken to, killed."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lmcourse.errors import CourseError
from lmcourse.grading.jail import Jail
from lmcourse.grading.jail.bubblewrap import WORK, bubblewrap, file_system, folder_in_memory
from lmcourse.grading.jail.jail import surrender
from lmcourse.grading.jail.view import data
from lmcourse.grading.nursery.wire import DATA, KILL, LONGEST, READY

RIGHTS = ("CAP_NET_ADMIN", "CAP_SYS_ADMIN")
"""What it takes to make namespaces, to mount in them, and to start their loopback."""

ROOTS_RIGHTS = ("CAP_KILL", "CAP_SETGID", "CAP_SETUID")
"""And to make a guest another user, whom the keeper can still end."""

LOADING = 180.0
"""Seconds until everything is imported."""

ENDING = 30.0
"""Seconds until the kernel has taken down what was killed."""


class RoomLostError(Exception):
    """The keeper is gone."""


class Room:
    """One keeper. It ends with the thread that started it (bubblewrap's --die-with-parent).

    Args:
        jail: the data files and the limits of every guest.
        modules: to import before the first guest.

    Raises:
        CourseError: it does not start.
    """

    def __init__(self, jail: Jail, modules: Sequence[str]) -> None:
        command = _command(jail)
        self.control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        with there:
            self._process = subprocess.Popen(
                command, stdin=there.fileno(), stdout=self._said, stderr=self._said, start_new_session=True
            )
        settings = {"scratch": jail.limits.scratch, "surrender": surrender(jail.limits, (), None)}
        try:
            self._meet({**settings, "modules": list(modules)})
        except (OSError, RoomLostError) as error:
            reason = self.last_words() or str(error) or "it says nothing"
            self._process.kill()
            self._process.wait()
            self.control.close()
            self._said.close()
            raise CourseError(f"No process for notebooks starts in bubblewrap: {reason}") from error

    def _meet(self, settings: dict[str, object]) -> None:
        """Wait until the keeper has loaded everything, and find out who it is. Raises OSError and RoomLostError."""
        self.control.send(json.dumps(settings).encode())
        self.control.settimeout(LOADING)
        if self.control.recv(LONGEST) != READY:
            raise RoomLostError
        first = _only_child(self._process.pid)
        self.keeper = _only_child(first)
        self._end = os.pidfd_open(first)

    def admit(self, user: int | None, channel: int, witness: int) -> None:
        """Have a guest born, who gets the two descriptors.

        Raises:
            RoomLostError: nobody is there to do it.
        """
        try:
            socket.send_fds(self.control, [json.dumps({"user": user}).encode()], [channel, witness])
        except OSError as error:
            raise RoomLostError from error

    def kill_guest(self) -> None:
        """Have the guest ended, if there is one; its exit status comes when all of it is gone."""
        with suppress(OSError):  # nobody is there: then neither is a guest
            self.control.send(KILL, socket.MSG_DONTWAIT)

    def last_words(self) -> str:
        """The last line that the keeper, or somebody on the way to a guest, wrote of an error."""
        lines = os.pread(self._said.fileno(), LONGEST, 0).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def end(self) -> None:
        """Kill the keeper and its guest, and return when they are gone. May be called again."""
        if self._process.returncode is None:
            # Process 1 is bubblewrap inside. It ends when all are dead whose process 1 it is.
            with suppress(OSError):
                signal.pidfd_send_signal(self._end, signal.SIGKILL)
            self._process.kill()
            select.select([self._end], [], [], ENDING)
            self._process.wait()

    def close(self) -> None:
        """`end`, and give back what belonged to it. To be called once."""
        self.end()
        os.close(self._end)
        self.control.close()
        self._said.close()


def _command(jail: Jail) -> list[str]:
    """The command that starts a keeper. Raises CourseError."""
    rights = (*RIGHTS, *ROOTS_RIGHTS) if os.geteuid() == 0 else RIGHTS
    folder = ("--perms", "0755", "--dir", DATA)
    contents = (*folder_in_memory(WORK, jail.limits.scratch), *folder, *data(jail.data, DATA))
    program = [sys.executable, "-m", "lmcourse.grading.nursery.keeper"]
    return [*bubblewrap(rights), *file_system(contents), "--", *program]


def _only_child(process: int) -> int:
    """The number of the one process that this one has started.

    Raises:
        OSError: it has none.
    """
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    if len(children) != 1:
        raise OSError(f"process {process} has not one child but {len(children)}")
    return int(children[0])
