"""Who starts the process of a notebook and ends it: a plain process, one in a jail, or a fork of one that is ready."""

from __future__ import annotations

import socket
from typing import Protocol

from lmcourse.grading.examination_result import Evidence


class Guest(Protocol):
    """The process of one notebook, and everything that it started."""

    def kill(self) -> None:
        """End all of it, and return when it is gone. May be called again."""

    def ended_for(self) -> str:
        """Why the host itself ended it, in half a sentence ("it used more than 2048 MiB of memory"), or nothing."""

    def evidence(self) -> list[Evidence]:
        """What was noticed of it so far; complete once it has been killed."""


class Host(Protocol):
    """Starts guests, one after the other."""

    def start(self, end: socket.socket) -> Guest:
        """Start a process that serves requests (`child.serve`) at this end of a connection, which it takes over.

        Raises:
            CourseError: no process can be started here.
        """
