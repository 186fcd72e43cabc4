"""Whose user a notebook's process runs as: with root as the grader another one, with an ordinary user the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lmcourse.grading.fork_server import fork_server
from lmcourse.grading.sandbox.sandbox import USER_IDS
from tests.grading.ordinary_user import NOBODY, ROOT, as_ordinary_user
from tests.grading.sandboxed import needs_bubblewrap
from tests.grading.test_sandbox_kernel import REFUSED


def test_no_two_processes_are_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(fork_server, "USER_IDS", USER_IDS[:2])
    (first, held), (second, also_held) = fork_server.reserve_user_id(), fork_server.reserve_user_id()
    with held, also_held:
        assert {first, second} == {*USER_IDS[:2]}
        with pytest.raises(OSError, match="taken"):
            fork_server.reserve_user_id()
    number, again = fork_server.reserve_user_id()
    with again:
        assert number in USER_IDS[:2]


def test_an_ordinary_user_cannot_become_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert fork_server.reserve_user_id()[0] is None


GRADER = r"""
from lmcourse.grading.fork_server import ForkServer
from tests.grading.forked import Conversation, children
from tests.grading.test_sandbox_kernel import CALL
PIDFD_GETFD = 438
with ForkServer() as server:
    with Conversation(server) as talk:
        print(talk.got("print(os.getuid(), [n for n in os.listdir('/proc') if n.isdigit()], os.listdir('/proc/1'))"))
        print(talk.got("print([line for line in open('/proc/self/status') if line[:6] in ('CapEff', 'CapPrm')])"))
        print(talk.got("print(trying(lambda: open('/proc/1/mem')), trying(lambda: open('/etc/passwd')))"))
        print(talk.got(f"{CALL}\nprint(call({PIDFD_GETFD}, os.pidfd_open(1), 1, 0))"))
        talk.send("while True: os.fork()")
        talk.process.kill()
        print(children(server._running_server().pid))
"""


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests ran as an ordinary user")
def test_an_ordinary_user_gets_the_same_isolation() -> None:
    done = subprocess.run(
        as_ordinary_user([sys.executable, "-c", GRADER]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        f"{NOBODY} ['1', '2'] []",
        r"['CapPrm:\t0000000000000000\n', 'CapEff:\t0000000000000000\n']",
        "FileNotFoundError 2 FileNotFoundError 2",
        REFUSED,
        "[]",
    ], done.stderr
