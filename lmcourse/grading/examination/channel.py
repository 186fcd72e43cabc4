"""Length-limited messages over a socket whose other end is not trusted.

length of the message (4 bytes) | message (see `encoding`) | signature (32 bytes)

Questions and answers are signed (HMAC-SHA256 of RFC 2104), each with its number: the code of a notebook can read and
write the same socket, and whoever answered in place of the program around it, or changed on the way what that is
asked, would not be held to the rules of an exercise. Nothing else is signed.
"""

from __future__ import annotations

import socket
from time import monotonic

from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import DEFAULT_LIMITS, LENGTH_BYTES, MessageLimits, ProtocolError, encode

SIGNATURE_BYTES = 32
UNSIGNED = bytes(SIGNATURE_BYTES)
QUESTION, ANSWER = b"question", b"answer"
"""The two ways that a signed message goes."""

CHUNK_BYTES = 2**20
"""Bytes that are read at once."""


def signed_text(direction: bytes, number: int, message: bytes) -> bytes:
    """What is signed of a message: also which way it goes, and how many went before it."""
    return b"%s %d " % (direction, number) + message


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
        self.put(self.encoded(value), UNSIGNED, seconds)

    def encoded(self, value: Plain) -> bytes:
        """The bytes of a message, for `put`. Raises ProtocolError: it is too large, or not plain."""
        return encode(value, self.limits)

    def put(self, message: bytes, signature: bytes, seconds: float | None = None) -> None:
        """Send bytes from `encoded`. Raises TimeoutError as `send` does."""
        self.connection.settimeout(seconds)
        self.connection.sendall(len(message).to_bytes(LENGTH_BYTES, "little") + message + signature)

    def receive(self, seconds: float | None = None) -> Plain:
        """The next value, whoever sent it. Raises what `take` does, and ProtocolError if what came is no message."""
        return decode(self.take(seconds)[0], self.limits)

    def take(self, seconds: float | None = None) -> tuple[bytes, bytes]:
        """The bytes of the next message, for `decode`, and its signature.

        Raises:
            ProtocolError: it is too long.
            TimeoutError: no whole message came within `seconds`.
        """
        deadline = None if seconds is None else monotonic() + seconds
        length = int.from_bytes(self._read(LENGTH_BYTES, deadline), "little")
        if length > self.limits.message:
            raise ProtocolError(f"a message of {length} bytes")
        return self._read(length, deadline), self._read(SIGNATURE_BYTES, deadline)

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
