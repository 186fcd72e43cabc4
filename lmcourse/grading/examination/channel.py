"""Length-limited messages over a socket whose other end is not trusted.

length of the message (4 bytes) | message (see `encoding`)
"""

from __future__ import annotations

import socket
from time import monotonic

from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import DEFAULT_LIMITS, LENGTH_BYTES, MessageLimits, ProtocolError, encode

CHUNK_BYTES = 2**20
"""Bytes that are read at once."""


class Channel:
    """One end of a connection. Every method raises OSError when the other end is gone."""

    def __init__(self, connection: socket.socket, limits: MessageLimits = DEFAULT_LIMITS) -> None:
        self.connection = connection
        self.limits = limits

    def send(self, value: Plain, seconds: float | None = None) -> None:
        """Send a value.

        Raises:
            ProtocolError: it is too large, or not plain; nothing was sent.
            TimeoutError: the other end did not take it within `seconds`.
        """
        message = encode(value, self.limits)
        self.connection.settimeout(seconds)
        self.connection.sendall(len(message).to_bytes(LENGTH_BYTES, "little") + message)

    def receive(self, seconds: float | None = None) -> Plain:
        """The next value.

        Raises:
            ProtocolError: what came is no message.
            TimeoutError: no whole message came within `seconds`.
        """
        deadline = None if seconds is None else monotonic() + seconds
        length = int.from_bytes(self._read(LENGTH_BYTES, deadline), "little")
        if length > self.limits.message:
            raise ProtocolError(f"a message of {length} bytes")
        return decode(self._read(length, deadline), self.limits)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def _read(self, count: int, deadline: float | None) -> bytes:
        read = bytearray()
        while len(read) < count:
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self.connection.settimeout(left)
            part = self.connection.recv(min(count - len(read), CHUNK_BYTES))
            if not part:
                raise ConnectionResetError("the other end hung up")
            read += part
        return bytes(read)
