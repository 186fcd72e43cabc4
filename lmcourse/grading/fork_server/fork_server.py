"""A launcher with torch preloaded: each notebook gets a forked process in a sandbox of its own."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from select import select
from typing import Self

from lmcourse.errors import CourseError
from lmcourse.exercises.forbidden_names import Names
from lmcourse.grading.fork_server.protocol import READY
from lmcourse.grading.fork_server.sandboxed_process import SandboxedProcess
from lmcourse.grading.fork_server.server_handle import ServerHandle, ServerLostError
from lmcourse.grading.sandbox import Sandbox
from lmcourse.grading.sandbox.sandbox import USER_IDS

START_SECONDS = 30.0
"""Seconds until a child must be ready. It takes some hundredths of one."""


class ForkServer:
    """Forks processes for notebooks, one at a time. A context manager: at its end nothing of it is left.

    It belongs to one thread, with which it ends. Whoever wants several processes at once takes several servers.

    Args:
        sandbox: the data files and limits of every process.
        modules: what notebooks are known to import, so that it is loaded once; what fails to import is left out.
        rules: those of each exercise to come, prepared once for all processes.

    Raises:
        CourseError: at the beginning, if this is not Linux.
    """

    quick = True

    def __init__(
        self, sandbox: Sandbox | None = None, modules: Sequence[str] = (), rules: Iterable[Names] = ()
    ) -> None:
        if not sys.platform.startswith("linux"):
            raise CourseError("A fork server needs Linux: elsewhere use --isolation=process.")
        self.sandbox = sandbox or Sandbox()
        self.modules = tuple(modules)
        self.rules = tuple(dict.fromkeys(rules))
        self._handle: ServerHandle | None = None
        self._process: SandboxedProcess | None = None

    def __enter__(self) -> Self:
        """Begin to load, which takes seconds, before the first process needs it. Raises CourseError as `start` does."""
        self._running_server()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def switch(self, modules: Sequence[str], rules: Iterable[Names]) -> None:
        """Get ready for the notebooks of another assignment. Nothing of the last one's is left, but torch stays loaded.

        Args:
            modules, rules: as at the beginning.

        Raises:
            CourseError: as `start` does.
        """
        before = (self.modules, self.rules)
        self.modules, self.rules = tuple(modules), tuple(dict.fromkeys(rules))
        if before == (self.modules, self.rules):
            return
        if self._process:
            self._process.kill()
        if self._handle:
            handle, self._handle = self._handle, None
            with suppress(CourseError):  # it has died meanwhile
                handle.load(self.modules, self.rules)
                self._handle = handle
        self._running_server()

    def close(self) -> None:
        """End the notebook's process, if there is one, and the one that they are forked from."""
        if self._process:
            self._process.kill()
        if self._handle:
            self._handle.close()
        self._handle = self._process = None

    def start(self, connection: socket.socket) -> SandboxedProcess:
        """A process that serves requests (`child.serve`) at this end of a connection, which it takes over.

        One that is still there is killed. If the fork parent has died, another is started.

        Raises:
            CourseError: no process can be started here.
        """
        with connection:
            if self._process:
                self._process.kill()
            try:
                self._process = self._fork(self._running_server(), connection)
            except ServerLostError:
                self.close()
                try:
                    self._process = self._fork(self._running_server(), connection)
                except ServerLostError as error:
                    raise CourseError(f"No process for a notebook can be forked: {error}") from error
        return self._process

    def _running_server(self) -> ServerHandle:
        if self._handle is None:
            handle = ServerHandle(self.sandbox)
            handle.load(self.modules, self.rules)
            self._handle = handle
        return self._handle

    def _fork(self, server: ServerHandle, connection: socket.socket) -> SandboxedProcess:
        with ExitStack() as undo:
            here, there = os.pipe()
            os.set_blocking(there, False)  # the child's end: who fills the pipe must not be stopped by it
            undo.callback(os.close, here)
            uid, reservation = reserve_user_id()
            undo.push(reservation)
            try:
                server.fork(uid, connection.fileno(), there)
            finally:
                os.close(there)
            ready, _, _ = select([here], [], [], START_SECONDS)
            if not ready or os.read(here, len(READY)) != READY:
                raise ServerLostError(server.last_error_line() or "it does not say why")
            undo.pop_all()
            return SandboxedProcess(server, self.sandbox.limits, here, reservation)


def reserve_user_id() -> tuple[int | None, AbstractContextManager[object]]:
    """A user id that no other sandboxed process has, whichever grader's process started it; and what holds it until it
    is closed. Only root can become another user, others get None.

    Held by the name of a socket: a name is given once on a machine, and is free again when its holder has died.

    Raises:
        OSError: all of them are taken.
    """
    if os.geteuid() != 0:
        return None, nullcontext()
    numbers = list(USER_IDS)
    while numbers:
        number = numbers.pop(secrets.randbelow(len(numbers)))
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0lmcourse-user-{number}")
        except OSError:
            held.close()
        else:
            return number, held
    raise OSError("all users are taken")
