"""Messages over a socket whose other end may send anything, or nothing.

length of the message (4 bytes) | message (see `lmcourse.exercises.wire`)
"""

from __future__ import annotations

import socket
from time import monotonic

from lmcourse.exercises.values import Plain
from lmcourse.exercises.wire import pack, unpack
from lmcourse.exercises.wire_limits import LENGTH, LIMITS, Limits, WireError

CHUNK = 2**20
"""Bytes that are read at once."""


class Channel:
    """One end of a connection. Every method raises OSError when the other end is gone."""

    def __init__(self, end: socket.socket, limits: Limits = LIMITS) -> None:
        self.end = end
        self.limits = limits

    def send(self, value: Plain, seconds: float | None = None) -> None:
        """Send a value.

        Raises:
            WireError: it is too large, or not plain; nothing was sent.
            TimeoutError: the other end did not take it within `seconds`.
        """
        message = pack(value, self.limits)
        self.end.settimeout(seconds)
        self.end.sendall(len(message).to_bytes(LENGTH, "little") + message)

    def receive(self, seconds: float | None = None) -> Plain:
        """The next value.

        Raises:
            WireError: what came is no message.
            TimeoutError: no whole message came within `seconds`.
        """
        deadline = None if seconds is None else monotonic() + seconds
        length = int.from_bytes(self._read(LENGTH, deadline), "little")
        if length > self.limits.message:
            raise WireError(f"a message of {length} bytes")
        return unpack(self._read(length, deadline), self.limits)

    def close(self) -> None:
        """Hang up."""
        self.end.close()

    def _read(self, count: int, deadline: float | None) -> bytes:
        read = bytearray()
        while len(read) < count:
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self.end.settimeout(left)
            part = self.end.recv(min(count - len(read), CHUNK))
            if not part:
                raise ConnectionResetError("the other end hung up")
            read += part
        return bytes(read)
