"""What a program in the sandbox cannot use up: processes, memory, disk, descriptors, output, time."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from lmcourse.exercises.limits import HEADROOM_BYTES
from lmcourse.grading.sandbox import ResourceLimits, Sandbox
from lmcourse.units import GIB
from tests.grading.sandbox_runner import run
from tests.grading.sandboxed import MIB, SMALL, got, inside, needs_bubblewrap, printed, python

pytestmark = needs_bubblewrap


def test_a_fork_bomb_ends_at_the_limit() -> None:
    attack = """
    def bomb():
        while True:
            if os.fork() == 0:
                time.sleep(60)
            print(flush=True)
    print(trying(bomb))
    """
    *forks, end = got(attack).split("\n")
    assert end.startswith("BlockingIOError")
    assert len(forks) < SMALL.processes


def test_a_thread_counts_as_a_process() -> None:
    attack = """
    import threading
    start = lambda: threading.Thread(target=time.sleep, args=(0.2,)).start()
    print(trying(lambda: [start() for _ in range(100)]))
    """
    assert got(attack) == "RuntimeError"


def test_a_fork_bomb_does_not_use_up_the_processes_of_another_sandbox() -> None:
    bomb = "try:\n    while os.fork(): pass\nexcept OSError: print('full', flush=True)\ntime.sleep(60)"
    with Popen(Sandbox(limits=SMALL).command(python(bomb)), stdout=PIPE) as neighbour:
        try:
            assert neighbour.stdout is not None
            assert neighbour.stdout.readline() == b"full\n"
            assert got("print(os.fork() >= 0)").split() == ["True", "True"]
        finally:
            neighbour.kill()


def test_a_graded_answer_may_allocate_what_one_in_a_notebook_may() -> None:
    """And 1 GiB for Python and torch. (The limits are read by processes that do not load torch.)"""
    assert ResourceLimits().memory == HEADROOM_BYTES + GIB


def test_asking_for_too_much_memory_is_an_error_of_python() -> None:
    assert got("print(trying(lambda: bytearray(300 * 2**20)))") == "MemoryError"
    ended = inside("bytearray(300 * 2**20)")
    assert (ended.cause, ended.status) == ("memory", 1)
    assert b"MemoryError" in ended.errors


@pytest.mark.parametrize(
    "attack",
    [
        "import mmap\nkept = mmap.mmap(-1, 2**30)\nfor _ in range(2**10): kept.write(bytes(2**20))\ntime.sleep(60)",
        "for _ in range(3): os.fork()\nkept = b'x' * (60 * 2**20)\ntime.sleep(60)",
    ],
    ids=["shared", "eight processes"],
)
def test_memory_that_no_limit_of_a_process_counts_is_counted_too(attack: str) -> None:
    ended = inside(attack)
    assert ended.cause == "memory"
    assert "256 MiB" in ended.reason


def test_the_working_folder_and_shared_memory_are_small() -> None:
    attack = """
    def fill(folder):
        for number in range(100):
            with open(f"{folder}/{number}", "wb") as file:
                file.write(bytes(2**19))
    for folder in (".", "/dev/shm"):
        print(trying(lambda: fill(folder)), len(os.listdir(folder)))
    """
    assert got(attack).splitlines() == ["OSError 28 9", "OSError 28 9"]  # no space left; 8 of half a MiB, one empty


def test_a_large_file_is_refused() -> None:
    assert got("print(trying(lambda: open('big', 'wb').write(bytes(2**21))), os.stat('big').st_size)") == (
        f"OSError 27 {MIB}"
    )
    ended = run(Sandbox(limits=SMALL), ["/bin/dd", "if=/dev/zero", "of=big", "bs=1M", "count=2"], seconds=10)
    assert ended.status == 128 + signal.SIGXFSZ
    assert "larger file" in ended.reason


def test_many_open_files_are_refused() -> None:
    assert got("print(trying(lambda: [open('/dev/null') for _ in range(100)]))") == "OSError 24"


def test_a_bomb_of_empty_files_ends_with_the_time() -> None:
    attack = """
    import itertools
    for number in itertools.count():
        open(str(number), "w").close()
    """
    assert inside(attack, seconds=1).cause in ("time", "failed")  # or the folder is full


def test_a_lower_limit_of_the_grader_stays() -> None:
    program = python("import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))")
    lowered = ["/bin/sh", "-c", 'ulimit -n 40 && exec "$@"', "sh", *Sandbox(limits=SMALL).command(program)]
    assert printed(run(None, lowered, seconds=20)) == "40 40"


def test_limits_cannot_be_raised() -> None:
    attack = """
    import resource
    for name in ("DATA", "NPROC", "FSIZE", "NOFILE", "CPU", "CORE"):
        print(trying(lambda: resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (-1, -1))))
    """
    assert got(attack).split() == ["ValueError"] * 6


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_stopped_and_cut(stream: str) -> None:
    ended = inside(f"while True: sys.{stream}.write('x' * 10000)", output_limit=5000)
    assert ended.cause == "output"
    assert len(ended.output) + len(ended.errors) <= 2 * 5000
    assert "5000 bytes" in ended.reason


def test_a_short_flood_is_cut_too() -> None:
    ended = inside("print('x' * 20000, end='')", output_limit=5000)
    assert (ended.cause, len(ended.output)) == ("output", 5000)


def test_an_endless_loop_that_ignores_signals_is_stopped() -> None:
    attack = """
    import signal
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    print("on", flush=True)
    while True: pass
    """
    ended = inside(attack, seconds=4)
    assert ended.cause == "time"
    assert ended.output == b"on\n"
    assert "longer than 4 s" in ended.reason


def test_processor_time_is_limited_even_of_one_who_ignores_the_signal() -> None:
    sandbox = Sandbox(limits=ResourceLimits(cpu_seconds=1))
    ended = inside("while True: pass", sandbox=sandbox)
    assert (ended.cause, ended.status) == ("time", 128 + signal.SIGXCPU)
    ended = inside("import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", sandbox=sandbox)
    assert (ended.cause, ended.status) == ("killed", 128 + signal.SIGKILL)


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 64)
    time.sleep(100)  # {mark}
time.sleep({wait})
print("started")
"""


def alive(mark: str) -> list[int]:
    """The processes with this mark in their command line, given 5 s to die."""
    for _ in range(100):
        found = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if _holds(path, mark)]
        if not found:
            break
        time.sleep(0.05)
    return found


def _holds(path: Path, mark: str) -> bool:
    try:
        return mark.encode() in path.read_bytes()
    except OSError:
        return False


def test_nothing_outlives_its_program(tmp_path: Path) -> None:
    assert got(DAEMON.format(mark=tmp_path, wait=0.2)) == "started"
    assert alive(str(tmp_path)) == []


def test_nothing_outlives_the_end_of_time(tmp_path: Path) -> None:
    assert inside(DAEMON.format(mark=tmp_path, wait=60), seconds=1).cause == "time"
    assert alive(str(tmp_path)) == []


def test_nothing_outlives_the_grader(tmp_path: Path) -> None:
    program = python(DAEMON.format(mark=tmp_path, wait=60))
    start = f"from tests.grading.sandbox_runner import Sandbox, run; run(Sandbox(), {program!r}, seconds=60)"
    with Popen([sys.executable, "-c", start], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}) as grader:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not _started(str(tmp_path), grader.pid):
            time.sleep(0.05)
        grader.kill()
    assert alive(str(tmp_path)) == []


def _started(mark: str, grader: int) -> bool:
    """Whether the program itself runs, and not only the commands that lead to it."""
    ours = (path for path in Path("/proc").glob("[0-9]*/cmdline") if _holds(path, mark))
    return sum(path.parent.name != str(grader) and b"bwrap" not in path.read_bytes() for path in ours) >= 2
