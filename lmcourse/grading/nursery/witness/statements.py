"""What the grader makes of what comes from a witness, or from somebody who took its place."""

from __future__ import annotations

import json
from typing import Any

from lmcourse.grading.examination_result import Evidence, distinct_evidence

MOST = 2**16
"""Bytes that are read in all."""

LONGEST = 300
"""Bytes of one line."""

KINDS = ("file", "network", "process", "interpreter", "builtins")

STRANGE = Evidence("protocol", "What came from the witness in its process was not the witness's.", "seen")
SILENCED = Evidence("protocol", "The witness in its process was cut off while the notebook ran on.", "seen")


class Statements:
    """Lines that came from one guest. Only those that a witness could have written are believed."""

    def __init__(self) -> None:
        self.over = False
        self._found: list[Evidence] = []
        self._rest = b""
        self._read = 0

    def add(self, piece: bytes) -> None:
        """Take what was read; nothing was read at the end of the pipe."""
        self.over = self.over or not piece
        if self._read > MOST:
            return
        self._read += len(piece)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._found.append(_believed(line))
        if len(self._rest) > LONGEST or self._read > MOST or (self.over and self._rest):
            self._found.append(STRANGE)
            self._rest = b""

    def silenced(self) -> None:
        """The pipe ended before the process did."""
        self._found.append(SILENCED)

    def evidence(self) -> list[Evidence]:
        """What it comes to, each piece once."""
        return list(distinct_evidence(self._found))


def _believed(line: bytes) -> Evidence:
    try:
        told: Any = json.loads(line) if len(line) <= LONGEST else None
        if told.keys() == {"kind", "what"} and told["kind"] in KINDS and isinstance(told["what"], str):
            return Evidence(told["kind"], told["what"], "told")
    except (AttributeError, TypeError, ValueError, RecursionError):
        pass
    return STRANGE
