"""Length-limited messages over a socket whose other end is not trusted.

length of the message (4 bytes) | message (see `encoding`) | signature (32 bytes)

A notebook's program signs its answers (`signature`): the code that it runs can write to the same socket, and whoever
read the questions in its place could answer them without the rules of an exercise. What else is sent is not signed.
"""

from __future__ import annotations

import hmac
import socket
from time import monotonic

from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.decoding import decode
from lmcourse.grading.examination.encoding import DEFAULT_LIMITS, LENGTH_BYTES, MessageLimits, ProtocolError, encode

SIGNATURE_BYTES = 32
UNSIGNED = bytes(SIGNATURE_BYTES)

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
        self.put(self.encoded(value), UNSIGNED, seconds)

    def encoded(self, value: Plain) -> bytes:
        """The bytes of a message, for `put`. Raises ProtocolError: it is too large, or not plain."""
        return encode(value, self.limits)

    def put(self, message: bytes, signature: bytes, seconds: float | None = None) -> None:
        """Send bytes from `encoded`. Raises TimeoutError as `send` does."""
        self.connection.settimeout(seconds)
        self.connection.sendall(len(message).to_bytes(LENGTH_BYTES, "little") + message + signature)

    def receive(self, seconds: float | None = None) -> Plain:
        """The next value, whoever sent it. Raises what `receive_signed` does."""
        return self.receive_signed(b"", seconds)[0]

    def receive_signed(self, key: bytes, seconds: float | None = None) -> tuple[Plain, bool]:
        """The next value, and whether it was signed with this key.

        Raises:
            ProtocolError: what came is no message.
            TimeoutError: no whole message came within `seconds`.
        """
        deadline = None if seconds is None else monotonic() + seconds
        length = int.from_bytes(self._read(LENGTH_BYTES, deadline), "little")
        if length > self.limits.message:
            raise ProtocolError(f"a message of {length} bytes")
        message, signature = self._read(length, deadline), self._read(SIGNATURE_BYTES, deadline)
        signed = hmac.compare_digest(signature, hmac.digest(key, message, "sha256"))
        return decode(message, self.limits), signed

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
