"""Conversations with guests of a nursery, for the tests."""

from __future__ import annotations

import secrets
import socket
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.jail import Limits
from lmcourse.grading.nursery import Nursery
from tests.grading.jailed import MIB, PREAMBLE

LITTLE = Limits(
    memory=600 * MIB, cpu_seconds=3, processes=16, file_size=MIB, open_files=64, scratch=4 * MIB
)  # so that an attack is over soon; torch alone takes 200 MiB


class Visit:
    """A guest, from its birth to its end."""

    def __init__(self, nursery: Nursery) -> None:
        here, there = socket.socketpair()
        self.guest = nursery.start(there)
        self.channel = Channel(here)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.guest.kill()
        self.channel.close()

    def send(self, code: str) -> None:
        """Have it begin with a piece of Python, in which `trying` gives "DONE …" or what went wrong."""
        text = PREAMBLE + textwrap.dedent(code)
        self.channel.send({"text": text, "place": 1, "nonce": secrets.token_hex(4)}, 5)

    def got(self, code: str) -> str:
        """What a piece of Python printed that ran to its end."""
        self.send(code)
        reply: Any = self.channel.receive(30)
        assert reply["result"]["failure"] is None, reply
        return str(reply["result"]["printed"]).strip()

    def hangs_up(self) -> bool:
        """Whether its end comes by itself, before long."""
        with suppress(OSError):
            self.channel.receive(30)
            return False
        return True

    def told(self) -> list[tuple[str, str, str]]:
        """What was noticed of it, once it has been killed: kind, sentence, source."""
        self.guest.kill()
        return [(one.kind, one.what, one.source) for one in self.guest.evidence()]


def got(nursery: Nursery, code: str) -> str:
    """What a guest of its own printed."""
    with Visit(nursery) as visit:
        return visit.got(code)


def children(process: int) -> list[int]:
    """The numbers of the processes that a process has started; none if it is gone."""
    with suppress(FileNotFoundError):
        return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []
