"""What a message between the examiner and an examinee may hold, and the one error of the wire."""

from __future__ import annotations

from dataclasses import dataclass

LENGTH = 4
"""Bytes of the length that stands in front of the JSON."""


class WireError(ValueError):
    """The bytes are no message, or the value does not fit into one; the text says why, in one line."""


@dataclass(frozen=True)
class Limits:
    """How much a message may hold.

    Attributes:
        text: bytes of its JSON.
        data: bytes of its tensors, all together.
        depth: how deep lists and dicts may be nested.
        items: values in it, all together.
        digits: of a whole number.
    """

    text: int = 2 * 2**20
    data: int = 64 * 2**20
    depth: int = 32
    items: int = 200_000
    digits: int = 400

    @property
    def message(self) -> int:
        """Bytes of a whole message."""
        return LENGTH + self.text + self.data

    def check(self, depth: int, items: int) -> None:
        """Raise WireError if a value lies too deep, or is one too many."""
        if depth > self.depth:
            raise WireError(f"nested more than {self.depth} deep")
        if items > self.items:
            raise WireError(f"more than {self.items} values")


LIMITS = Limits()
