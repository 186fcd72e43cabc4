"""What a notebook's process cannot reach, and what it cannot use up.

Most attackers are those of the sandbox's own tests.
"""

from __future__ import annotations

import errno
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmcourse
from lmcourse.grading.fork_server import ForkServer
from lmcourse.grading.sandbox import Sandbox
from lmcourse.grading.sandbox.seccomp import DENIED_SYSCALLS
from tests.grading.forked import SMALL_WITH_TORCH, Conversation, got
from tests.grading.sandboxed import MIB, needs_bubblewrap
from tests.grading.test_sandbox_kernel import CALL, REFUSED

pytestmark = needs_bubblewrap

REPOSITORY = Path(lmcourse.__file__).parents[1]
WHICH = ["x86_64", "aarch64"].index(platform.machine()) if platform.machine() in ("x86_64", "aarch64") else 0
READ_ONLY = f"OSError {errno.EROFS}"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    os.environ["GRADEBOOK_PASSWORD"] = "hush"
    with ForkServer(Sandbox(limits=SMALL_WITH_TORCH)) as server:
        yield server
    del os.environ["GRADEBOOK_PASSWORD"]


def test_nothing_of_the_grader_can_be_read(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_text("marks")
    paths = [str(tmp_path / "gradebook.db"), "/etc/shadow", "/etc/passwd", "/root/.bashrc", "/proc/1/environ"]
    paths += [str(REPOSITORY / "solutions"), f"/proc/self/root{tmp_path}/gradebook.db"]
    assert got(server, f"print([os.path.exists(path) for path in {paths}])") == str([False] * len(paths))
    assert got(server, "print('hush' in str(os.environ), 'hush' in open('/proc/self/environ').read())") == "False False"


def test_what_a_notebook_does_not_import_of_the_package_is_not_there(server: ForkServer) -> None:
    look = "import lmcourse; where = os.path.dirname(lmcourse.__file__)\n"
    assert got(server, f"{look}print([os.listdir(f'{{where}}/{{name}}') for name in ('nn', 'models')])") == "[[], []]"
    assert got(server, "import importlib.util as find; print(find.find_spec('lmcourse.nn.rotary'))") == "None"


def test_of_the_processes_it_sees_only_itself(server: ForkServer) -> None:
    look = f"print([n for n in os.listdir('/proc') if n.isdigit()], os.getpid(), os.path.exists('/proc/{os.getpid()}'))"
    assert got(server, look) == "['1', '2'] 2 False"
    assert got(server, "print(os.listdir('/proc/1'), sorted(os.listdir('/proc/self/fd'))[:3])") == "[] ['0', '1', '2']"


def test_it_holds_no_descriptor_but_its_own(server: ForkServer) -> None:
    look = "where = [trying(lambda: os.readlink(f'/proc/self/fd/{n}')) for n in range(64)]\n"
    shown = got(server, f"{look}print(*[place for place in where if place.startswith('DONE')])").replace("DONE ", "")
    assert [place.strip("'").split(":")[0] for place in shown.split()] == ["/dev/null"] * 3 + ["socket", "pipe"]


TOUCH = f"""{CALL}
ptrace, read, getfd = {DENIED_SYSCALLS["ptrace"][WHICH]}, {DENIED_SYSCALLS["process_vm_readv"][WHICH]}, 438
print(call(ptrace, 16, 1), call(read, 1, 0, 0, 0, 0, 0), trying(lambda: open("/proc/1/mem", "rb")))
print(call(getfd, os.pidfd_open(1), 1, 0))
for number in range(1, 65):
    trying(lambda: os.kill(1, number))
print("still here")
"""


def test_its_init_cannot_be_touched(server: ForkServer) -> None:
    first, second, third = got(server, TOUCH).splitlines()
    assert first == f"{REFUSED} {REFUSED} FileNotFoundError {errno.ENOENT}"
    assert (second, third) == (REFUSED, "still here")


def test_it_has_no_rights(server: ForkServer) -> None:
    status = got(server, "print(open('/proc/self/status').read()); print('ids', *os.getresuid(), *os.getgroups())")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert [int(fields[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Amb")] == [0] * 4
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert "0" not in status.splitlines()[-1].split()[1:]


def test_denied_calls_are_denied(server: ForkServer) -> None:
    numbers = [pair[WHICH] for pair in DENIED_SYSCALLS.values()]
    errors = got(server, f"{CALL}\nprint(*[call(number, 0, 0, 0, 0, 0) for number in {numbers}])").split()
    assert dict(zip(DENIED_SYSCALLS, errors, strict=True)) == dict.fromkeys(DENIED_SYSCALLS, REFUSED)


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/dev", "/proc", "/assignment", str(REPOSITORY / "lmcourse")])
def test_nothing_outside_its_folder_can_be_written(server: ForkServer, folder: str) -> None:
    attempt = got(server, f"print(trying(lambda: open({f'{folder}/mark'!r}, 'w')))")
    assert attempt in (READ_ONLY, "FileNotFoundError 2", "PermissionError 13")


def test_its_settings_cannot_be_undone(server: ForkServer) -> None:
    attack = """
    import resource
    for name in ("DATA", "NPROC", "FSIZE", "NOFILE", "CPU", "CORE"):
        print(trying(lambda: resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (-1, -1))))
    print(trying(lambda: os.setuid(0)).startswith("DONE"), open("/proc/self/oom_score_adj").read().strip())
    print(trying(lambda: open("/proc/self/oom_score_adj", "w")))
    """
    assert got(server, attack).splitlines() == ["ValueError"] * 6 + ["False 1000", READ_ONLY]


def test_files_processes_and_scratch_are_limited(server: ForkServer) -> None:
    attack = """
    def fill(folder):
        for number in range(100):
            with open(f"{folder}/{number}", "wb") as file:
                file.write(bytes(2**19))
    for folder in (".", "/dev/shm"):
        print(trying(lambda: fill(folder)), len(os.listdir(folder)))
    os.unlink("0")
    print(trying(lambda: [open(f"/dev/shm/empty{n}", "w").close() for n in range(20000)]))
    print(trying(lambda: open("1", "wb").write(bytes(2**21))))
    print(trying(lambda: [open("/dev/null") for _ in range(100)]))
    print(trying(lambda: [os.fork() or time.sleep(60) for _ in range(100)]))
    """
    assert got(server, attack).splitlines() == [
        "OSError 28 9",
        "OSError 28 9",
        "OSError 28",
        "OSError 27",
        "OSError 24",
        "BlockingIOError 11",
    ]


def test_memory_of_all_its_processes_counts(server: ForkServer) -> None:
    attack = "for _ in range(3): os.fork()\nkept = os.urandom(90 * 2**20)\ntime.sleep(60)"
    with Conversation(server) as talk:
        talk.send(attack)
        assert talk.hangs_up()
        assert talk.process.kill_reason() == f"it used more than {SMALL_WITH_TORCH.memory // MIB} MiB of memory"
        assert ("memory", "seen") in [(kind, source) for kind, _, source in talk.evidence()]


def test_writing_to_what_was_shared_counts_too(server: ForkServer) -> None:
    """A fork that only reads costs nothing. One that writes to what it got from the parent has a copy of its own."""
    share = "for _ in range(3):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(0.3); print('fine')"
    with Conversation(server) as talk:
        assert talk.got(share) == "fine"
        assert talk.process.kill_reason() == ""
    mapped = "import mmap\nkept = mmap.mmap(-1, 100 * 2**20)\nkept.write(bytes(100 * 2**20))\n"
    with Conversation(server) as talk:
        assert talk.got(f"{mapped}{share}") == "fine"  # once, not four times
        assert talk.process.kill_reason() == ""


def test_processor_time_is_limited(server: ForkServer) -> None:
    with Conversation(server) as talk:
        talk.send("while True: pass")
        begin = time.monotonic()
        assert talk.hangs_up()
        talk.process.kill()
        assert talk.process.kill_reason() == f"it used more than {SMALL_WITH_TORCH.cpu_seconds} s of processor time"
        assert time.monotonic() - begin < 25


def test_asking_for_too_much_memory_is_an_error_of_python(server: ForkServer) -> None:
    with Conversation(server) as talk:
        assert talk.got("print(trying(lambda: bytearray(700 * 2**20)))") == "MemoryError"
        assert talk.got("print('here')") == "here"
