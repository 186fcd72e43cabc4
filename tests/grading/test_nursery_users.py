"""Who a guest is: with root as the grader somebody else, with an ordinary user the same, behind the same walls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmcourse
from lmcourse.grading.jail import view
from lmcourse.grading.jail.jail import USERS
from lmcourse.grading.nursery import users
from tests.grading.jailed import needs_bubblewrap
from tests.grading.test_jail_kernel import REFUSED

ROOT = Path(lmcourse.__file__).parents[1]
NOBODY = "65534"


def test_no_two_guests_are_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(users, "USERS", USERS[:2])
    (first, held), (second, also_held) = users.reserve(), users.reserve()
    with held, also_held:
        assert {first, second} == {*USERS[:2]}
        with pytest.raises(OSError, match="taken"):
            users.reserve()
    number, again = users.reserve()
    with again:
        assert number in USERS[:2]


def test_an_ordinary_user_cannot_become_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert users.reserve()[0] is None


def opened() -> Iterator[str]:
    """bubblewrap's arguments that let everybody see Python and the tests, wherever they lie."""
    places = [*view.python(), ROOT]
    closed = {above for place in places for above in place.parents if not above.stat().st_mode & 0o001}
    for folder in sorted(closed):
        yield from ("--perms", "0755", "--tmpfs", str(folder))
    for place in (place for place in places if closed & {*place.parents}):
        for folder in reversed(place.parents):
            yield from ("--perms", "0755", "--dir", str(folder))
        yield from ("--ro-bind", str(place), str(place))


GRADER = r"""
from lmcourse.grading.nursery import Nursery
from tests.grading.guests import Visit, children
from tests.grading.test_jail_kernel import CALL
PIDFD_GETFD = 438
with Nursery() as nursery:
    with Visit(nursery) as visit:
        print(visit.got("print(os.getuid(), [n for n in os.listdir('/proc') if n.isdigit()], os.listdir('/proc/1'))"))
        print(visit.got("print([line for line in open('/proc/self/status') if line[:6] in ('CapEff', 'CapPrm')])"))
        print(visit.got("print(trying(lambda: open('/proc/1/mem')), trying(lambda: open('/etc/passwd')))"))
        print(visit.got(f"{CALL}\nprint(call({PIDFD_GETFD}, os.pidfd_open(1), 1, 0))"))
        visit.send("while True: os.fork()")
        visit.guest.kill()
        print(children(nursery._ready().keeper))
"""


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests ran as an ordinary user")
def test_an_ordinary_user_gets_the_same_walls() -> None:
    bwrap, setpriv = (str(shutil.which(name)) for name in ("bwrap", "setpriv"))
    become = [setpriv, "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all", "--ambient-caps=-all"]
    command = [bwrap, "--dev-bind", "/", "/", *opened(), "--cap-add", "ALL", "--", *become]
    done = subprocess.run(
        [*command, sys.executable, "-c", GRADER], capture_output=True, text=True, cwd=ROOT, timeout=120, check=False
    )
    assert done.stdout.splitlines() == [
        f"{NOBODY} ['1', '2'] []",
        r"['CapPrm:\t0000000000000000\n', 'CapEff:\t0000000000000000\n']",
        "FileNotFoundError 2 FileNotFoundError 2",
        REFUSED,
        "[]",
    ], done.stderr
