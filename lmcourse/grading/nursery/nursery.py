"""A host that has torch loaded already: each notebook gets a fork, in a jail of its own."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from select import select
from typing import Self

from lmcourse.errors import CourseError
from lmcourse.grading.jail import Jail
from lmcourse.grading.nursery import users
from lmcourse.grading.nursery.guest import NurseryGuest
from lmcourse.grading.nursery.room import Room, RoomLostError
from lmcourse.grading.nursery.wire import READY

BIRTH = 30.0
"""Seconds until a guest is ready. It takes some hundredths of one."""


class Nursery:
    """Forks guests, one at a time. A context manager: at its end nothing of it is left.

    It belongs to one thread, with which it ends. Whoever wants several guests at once takes several nurseries.

    Args:
        jail: the data files and limits of every guest.
        modules: what notebooks are known to import, so that it is loaded once; what fails to import is left out.

    Raises:
        CourseError: at the beginning, if this is not Linux.
    """

    def __init__(self, jail: Jail | None = None, modules: Sequence[str] = ()) -> None:
        if not sys.platform.startswith("linux"):
            raise CourseError("A nursery needs Linux: elsewhere use --isolation=process.")
        self.jail = jail or Jail()
        self.modules = tuple(modules)
        self._room: Room | None = None
        self._guest: NurseryGuest | None = None

    def __enter__(self) -> Self:
        """Begin to load, which takes seconds, before the first guest needs it. Raises CourseError as `start` does."""
        self._ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the guest, if there is one, and the process that they are forked from."""
        if self._guest:
            self._guest.kill()
        if self._room:
            self._room.close()
        self._room = self._guest = None

    def start(self, end: socket.socket) -> NurseryGuest:
        """A guest that serves requests (`child.serve`) at this end of a connection, which it takes over.

        A guest that is still there is killed. If the keeper has died, another is started.

        Raises:
            CourseError: no process can be started here.
        """
        with end:
            if self._guest:
                self._guest.kill()
            try:
                self._guest = self._admit(self._ready(), end)
            except RoomLostError:
                self.close()
                try:
                    self._guest = self._admit(self._ready(), end)
                except RoomLostError as error:
                    raise CourseError(f"No process for a notebook can be forked: {error}") from error
        return self._guest

    def _ready(self) -> Room:
        if self._room is None:
            self._room = Room(self.jail, self.modules)
        return self._room

    def _admit(self, room: Room, end: socket.socket) -> NurseryGuest:
        with ExitStack() as undo:
            here, there = os.pipe()
            os.set_blocking(there, False)  # the guest's end: who fills the pipe must not be stopped by it
            undo.callback(os.close, here)
            user, held = users.reserve()
            undo.push(held)
            try:
                room.admit(user, end.fileno(), there)
            finally:
                os.close(there)
            ready, _, _ = select([here], [], [], BIRTH)
            if not ready or os.read(here, len(READY)) != READY:
                raise RoomLostError(room.last_words() or "it does not say why")
            undo.pop_all()
            return NurseryGuest(room, self.jail.limits, here, held)
