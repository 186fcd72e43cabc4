"""Conversations with the processes of a fork server, for the tests."""

from __future__ import annotations

import hmac
import secrets
import socket
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from lmcourse.grading.examination.channel import QUESTION, Channel, signed_text
from lmcourse.grading.fork_server import ForkServer
from lmcourse.grading.sandbox import ResourceLimits
from tests.grading.sandboxed import MIB, PREAMBLE

SMALL_WITH_TORCH = ResourceLimits(
    memory=600 * MIB, cpu_seconds=3, processes=16, file_size=MIB, open_files=64, scratch=4 * MIB
)  # so that an attack is over soon; torch alone takes 200 MiB


KEY = bytes(range(32))


class Conversation:
    """A process, from its fork to its end."""

    def __init__(self, server: ForkServer) -> None:
        here, there = socket.socketpair()
        self.process = server.start(there)
        self.channel = Channel(here)
        self.sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.channel.close()

    def send(self, code: str) -> None:
        """Have it begin with a piece of Python, in which `trying` gives "DONE …" or what went wrong."""
        text = PREAMBLE + textwrap.dedent(code)
        request = {"text": text, "number": 1, "answer": "", "under": [], "statements": None}
        request |= {"nonce": secrets.token_hex(4)}
        message = self.channel.encoded(request if self.sent else request | {"key": KEY.hex()})
        self.channel.put(message, hmac.digest(KEY, signed_text(QUESTION, self.sent, message), "sha256"), 5)
        self.sent += 1

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

    def evidence(self) -> list[tuple[str, str, str]]:
        """What was noticed of it, once it has been killed: kind, sentence, source."""
        self.process.kill()
        return [(one.kind, one.what, one.source) for one in self.process.evidence()]


def got(server: ForkServer, code: str) -> str:
    """What a process of its own printed."""
    with Conversation(server) as talk:
        return talk.got(code)


def children(process: int) -> list[int]:
    """The numbers of the processes that a process has started; none if it is gone."""
    with suppress(FileNotFoundError):
        return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


def parent_of(process: int) -> int:
    """The number of the process that has started a process."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
    return int(after_name.split()[1])
