"""Ways to tell another sandbox something by files that both may read. Each works outside."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

import lmcourse
from lmcourse.grading.fork_server import ForkServer
from lmcourse.grading.sandbox import Sandbox, filesystem
from tests.grading import forked
from tests.grading.sandboxed import SMALL, got, got_outside, needs_bubblewrap

pytestmark = needs_bubblewrap

SHARED = lmcourse.__file__
"""A file that every sandbox of this checkout shows."""

REFUSED = f"PermissionError {errno.EPERM}"
TAKEN = f"BlockingIOError {errno.EAGAIN}"
RANGE = f"struct.pack('hhqqi4x', {{kind}}, 0, {os.getpid()}, 1, 0)"
"""A byte of /dev/null that no other run of these tests, in another checkout say, has a lock on."""

LOCK = f"""
import fcntl, struct
file = open({SHARED!r})
null = open("/dev/null", "r+b", buffering=0)
print(trying(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)))
print(trying(lambda: fcntl.lockf(null, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, {os.getpid()})))
print(trying(lambda: fcntl.fcntl(null, 37, {RANGE.format(kind=1)})).split(" b")[0])
"""


@pytest.fixture
def locks() -> Iterator[None]:
    """Locks that somebody else holds, on a file to read and on a device to write to."""
    with Path(SHARED).open() as file, Path("/dev/null").open("r+b", buffering=0) as null:
        taken_within(60, lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB))
        # Of the open file, not of this process: that one would end as soon as anything here closes /dev/null.
        fcntl.fcntl(null, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, os.getpid(), 1, 0))
        yield


def taken_within(seconds: float, take: Callable[[], None]) -> None:
    """Take a lock that another worker of this test run may have; a wait in the kernel would have no end."""
    deadline = monotonic() + seconds
    while True:
        try:
            return take()
        except BlockingIOError:
            assert monotonic() < deadline, "somebody else keeps this lock"
            sleep(0.1)


@pytest.mark.usefixtures("locks")
def test_nobody_elses_locks_are_seen() -> None:
    assert got_outside(LOCK).splitlines() == [TAKEN, TAKEN, TAKEN]
    assert got(LOCK).splitlines() == ["DONE None", "DONE None", "DONE"]


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("command", [5, 36, 1024, 1025, 1026, 1031, 1035, 1036], ids=lambda command: f"fcntl-{command}")
def test_files_have_nothing_else_to_tell(command: int) -> None:
    attack = f"""
    import fcntl, struct
    null = open("/dev/null", "r+b", buffering=0)
    print(trying(lambda: fcntl.fcntl(null, {command}, {RANGE.format(kind=1)})))
    """
    assert got(attack) == REFUSED


@pytest.mark.usefixtures("locks")
def test_a_lock_that_is_asked_about_is_told_outside() -> None:
    attack = f"""
    import fcntl, struct
    null = open("/dev/null", "r+b", buffering=0)
    print(struct.unpack("hhqqi4x", fcntl.fcntl(null, 5, {RANGE.format(kind=0)}))[0])
    """
    assert got_outside(attack) == str(fcntl.F_WRLCK)


WATCH = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(0o4000)
libc.inotify_add_watch(watch, {SHARED!r}.encode(), 0x20)
open({SHARED!r}).close()
print(trying(lambda: len(os.read(watch, 1000))).split()[0])
"""


def test_who_opens_a_file_is_not_told() -> None:
    assert got_outside(WATCH) == "DONE"
    assert got(WATCH) == "OSError"


def test_times_of_devices_and_counters_of_the_machine_tell_nothing() -> None:
    places = [f"/dev/{name}" for name in filesystem.SHARED_DEVICES]
    before = [Path(place).stat().st_mtime_ns for place in places]
    with ForkServer(Sandbox(limits=forked.SMALL_WITH_TORCH)) as server:
        shown = forked.got(server, "print(sorted(os.listdir('/proc')))")
        assert shown == str(["1", "2", "self", "thread-self"])
        touched = forked.got(server, f"print(*[trying(lambda: os.utime(place)) for place in {places}], sep=chr(10))")
        assert touched.splitlines() == [f"OSError {errno.EROFS}"] * len(places)
        used = "print(open('/dev/null', 'w').write('x'), len(open('/dev/urandom', 'rb').read(9)))"
        assert forked.got(server, used) == "1 9"
    assert [Path(place).stat().st_mtime_ns for place in places] == before
    os.utime("/dev/null")
    assert Path("/dev/null").stat().st_mtime_ns != before[0]


HONEST = """
import fcntl, multiprocessing, sqlite3, subprocess, tempfile
with sqlite3.connect("notes.db") as book:
    book.execute("create table notes (text)")
    book.execute("insert into notes values ('kept')")
print(sqlite3.connect("notes.db").execute("select text from notes").fetchall())
with open("lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.lockf(file, fcntl.LOCK_UN)
print(subprocess.run(["/bin/echo", "heard"], capture_output=True, text=True).stdout.strip())
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
"""


def test_honest_work_with_files_goes_on() -> None:
    assert got(HONEST, sandbox=Sandbox(limits=SMALL)).splitlines() == ["[('kept',)]", "heard", "[1, 2]"]
