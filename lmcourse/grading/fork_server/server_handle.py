"""The grader's handle of a zygote in bubblewrap and of its fork parent: start, send requests, kill."""

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
from lmcourse.exercises.forbidden_names import Names
from lmcourse.grading.fork_server.protocol import DATA_DIR, KILL, MAX_MESSAGE_BYTES, NEXT, READY
from lmcourse.grading.sandbox import WORK_DIR, Sandbox, filesystem
from lmcourse.grading.sandbox.sandbox import bubblewrap_command, privilege_settings

PROGRAM = "import gc; gc.disable(); from lmcourse.grading.fork_server.zygote import main; main()"
"""What runs in bubblewrap. While it loads, nothing is collected: nothing is garbage, and to look takes a second."""

CAPABILITIES = ("CAP_NET_ADMIN", "CAP_SYS_ADMIN")
"""What it takes to make namespaces, to mount in them, and to start their loopback."""

ROOT_CAPABILITIES = ("CAP_KILL", "CAP_SETGID", "CAP_SETUID")
"""And to make a child another user, whom the parent can still kill."""

LOAD_SECONDS = 180.0
"""Seconds until everything must be imported."""

KILL_SECONDS = 30.0
"""Seconds until the kernel must have taken down what was killed."""


class ServerLostError(Exception):
    """The fork parent is gone."""


class ServerHandle:
    """One zygote, and its fork parent. They end with the thread that started them (bubblewrap's --die-with-parent).

    Args:
        sandbox: the data files and the limits of every child.

    Attributes:
        control: the socket to them (see `protocol`).
        pid: the process id of the fork parent, once `load` has been called.

    Raises:
        CourseError: no process starts.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        command = _command(sandbox)
        self.control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        with there:
            self._bwrap = subprocess.Popen(
                command, stdin=there.fileno(), stdout=self._stderr, stderr=self._stderr, start_new_session=True
            )
        self.control.settimeout(LOAD_SECONDS)
        self.pid = 0
        self._first_pidfd = -1
        privileges = privilege_settings(sandbox.limits, (), None)
        self._settings = {"scratch": sandbox.limits.scratch, "drop_privileges": privileges}

    def load(self, modules: Sequence[str], rules: Sequence[Names]) -> None:
        """Get a fork parent for an assignment, in place of the one before, which must have no child any more.

        Args:
            modules: to import before the first child.
            rules: those of each exercise, to be prepared before the first child.

        Raises:
            CourseError: it does not start; then the handle is closed.
        """
        settings = self._settings | {"modules": list(modules), "rules": [list(each) for each in rules]}
        try:
            if self.pid:
                self.control.send(NEXT)
            self.control.send(json.dumps(settings).encode())
            if self.control.recv(MAX_MESSAGE_BYTES) != READY:
                raise ServerLostError
            self._find_processes()
        except (OSError, ServerLostError) as error:
            reason = self.last_error_line() or str(error) or "it says nothing"
            self.close()
            raise CourseError(f"No process for notebooks starts in bubblewrap: {reason}") from error

    def _find_processes(self) -> None:
        """The fork parent is a child of the zygote, and that one of process 1. Raises OSError."""
        first = _only_child(self._bwrap.pid)
        self.pid = _only_child(_only_child(first))
        if self._first_pidfd < 0:
            self._first_pidfd = os.pidfd_open(first)

    def fork(self, uid: int | None, connection: int, audit_pipe: int) -> None:
        """Have a child forked, which gets the two descriptors.

        Raises:
            ServerLostError: nobody is there to do it.
        """
        try:
            socket.send_fds(self.control, [json.dumps({"user": uid}).encode()], [connection, audit_pipe])
        except OSError as error:
            raise ServerLostError from error

    def kill_child(self) -> None:
        """Have the child killed, if there is one; its exit status comes when all of it is gone."""
        with suppress(OSError):  # nobody is there: then neither is a child
            self.control.send(KILL, socket.MSG_DONTWAIT)

    def last_error_line(self) -> str:
        """The last line that the parent, or a process on the way to a child, wrote of an error; or nothing."""
        lines = os.pread(self._stderr.fileno(), MAX_MESSAGE_BYTES, 0).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def kill(self) -> None:
        """Kill the parent and its child, and return when they are gone. May be called again."""
        if self._bwrap.returncode is None and self._first_pidfd >= 0:
            # Process 1 is bubblewrap inside. It ends when all are dead whose process 1 it is.
            with suppress(OSError):
                signal.pidfd_send_signal(self._first_pidfd, signal.SIGKILL)
            self._bwrap.kill()
            select.select([self._first_pidfd], [], [], KILL_SECONDS)
        self._bwrap.kill()
        self._bwrap.wait()

    def close(self) -> None:
        """`kill`, and close what belonged to it. To be called once."""
        self.kill()
        if self._first_pidfd >= 0:
            os.close(self._first_pidfd)
        self.control.close()
        self._stderr.close()


def _command(sandbox: Sandbox) -> list[str]:
    """The command that starts a zygote. Raises CourseError."""
    capabilities = (*CAPABILITIES, *ROOT_CAPABILITIES) if os.geteuid() == 0 else CAPABILITIES
    data = ("--perms", "0755", "--dir", DATA_DIR, *filesystem.data_mounts(sandbox.data, DATA_DIR))
    mounts = filesystem.mounts((*filesystem.tmpfs(WORK_DIR, sandbox.limits.scratch), *data), sandbox.private)
    return [*bubblewrap_command(capabilities), *mounts, "--", sys.executable, "-c", PROGRAM]


def _only_child(process: int) -> int:
    """The id of the one process that this one has started.

    Raises:
        OSError: it has none.
    """
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    if len(children) != 1:
        raise OSError(f"process {process} has not one child but {len(children)}")
    return int(children[0])
