"""A notebook's process: forked from one that has torch loaded, alone, and gone without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.fork_server import ForkServer, sandboxed_process, server_handle
from lmcourse.grading.sandbox import WORK_DIR, Sandbox
from lmcourse.grading.sandbox.sandbox import USER_IDS
from tests.grading.forked import SMALL_WITH_TORCH, Conversation, children, got, parent_of
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "text.txt").write_text("some words")
    (folder / "tables").mkdir()
    (folder / "tables" / "one.csv").write_text("1,2")
    with ForkServer(
        Sandbox((folder / "text.txt", folder / "tables"), SMALL_WITH_TORCH),
        ["fractions", "numpy.random", "no_such_module"],
    ) as server:
        yield server


def test_a_process_answers_with_torch_at_hand(server: ForkServer) -> None:
    with Conversation(server) as talk:
        assert talk.got("print('torch' in sys.modules, 'fractions' in sys.modules)") == "True True"
        talk.got("import torch\nx = torch.ones(2, requires_grad=True)")
        assert talk.got("(x * x).sum().backward()\nprint(x.grad.tolist(), os.getcwd(), __name__)") == (
            f"[2.0, 2.0] {WORK_DIR} __main__"
        )
        assert talk.evidence() == []
        assert talk.process.kill_reason() == ""


def test_each_process_has_its_own_random_seed(server: ForkServer) -> None:
    draw = "import torch, random, numpy; print(torch.rand(1).item(), random.random(), numpy.random.rand())"
    assert not {*got(server, draw).split()} & {*got(server, draw).split()}


def test_the_data_files_are_there_read_only(server: ForkServer) -> None:
    look = "print(sorted(os.listdir()), open('text.txt').read(), open('tables/one.csv').read())"
    assert got(server, look) == "['tables', 'text.txt'] some words 1,2"
    spoil = "print(*[trying(act) for act in (lambda: open('text.txt', 'w'), lambda: os.unlink('text.txt'))])"
    assert got(server, spoil) in ("OSError 30 PermissionError 1", "OSError 30 OSError 16")  # it is a mount
    assert got(server, "print(os.listdir('/assignment'))") == "[]"


def test_nothing_of_a_process_is_left_for_the_next(server: ForkServer) -> None:
    leave = """
    from multiprocessing.shared_memory import SharedMemory
    for folder in (".", "/dev/shm"):
        open(f"{folder}/note", "w").write("to my friend")
    kept = SharedMemory("letter", create=True, size=10)
    server = socket.socket(socket.AF_UNIX); server.bind("\\0letter"); server.listen()
    port = socket.create_server(("127.0.0.1", 4321))
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"to my friend", ("127.0.0.1", 4321))
    import torch, lmcourse
    torch.note = lmcourse.note = os.environ["NOTE"] = "to my friend"
    if os.fork() == 0:
        time.sleep(60)
    """
    look = """
    from multiprocessing.shared_memory import SharedMemory
    import torch, lmcourse
    print(os.listdir("/dev/shm"), os.path.exists("note"), trying(lambda: SharedMemory("letter")))
    print(trying(lambda: socket.socket(socket.AF_UNIX).connect("\\0letter")))
    print(trying(lambda: socket.create_connection(("127.0.0.1", 4321))))
    print([n for n in os.listdir("/proc") if n.isdigit()], "NOTE" in os.environ)
    print([line.split()[4] for line in open("/proc/self/net/snmp") if line.startswith("Udp:")])
    print(hasattr(torch, "note"), hasattr(lmcourse, "note"), trying(lambda: kept))
    """
    with Conversation(server) as talk:
        talk.got(leave)
    assert got(server, look).splitlines() == [
        "[] False FileNotFoundError 2",
        "ConnectionRefusedError 111",
        "ConnectionRefusedError 111",
        "['1', '2'] False",
        "['OutDatagrams', '0']",
        "False False NameError",
    ]


STUBBORN = {
    "spinning": "while True: pass",
    "spinning in C": "'a' * 10**9 in 'b' * 10**9\nsum(range(10**12))",
    "deaf": "import signal\nfor n in range(1, 32): trying(lambda: signal.signal(n, lambda *_: 0))\nwhile True: pass",
    "stopped": "os.kill(os.getpid(), 19)",
    "forking": "while True:\n    trying(os.fork)",
    "run away": "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)",
    "hung up": "os.closerange(0, 1000)\ntime.sleep(60)",
    "ended": "os._exit(3)",
    "crashed": "os.abort()",
    "ended by itself": "os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("code", STUBBORN.values(), ids=STUBBORN)
def test_a_process_is_ended_whatever_it_does(server: ForkServer, code: str) -> None:
    parent = server._running_server().pid
    with Conversation(server) as talk:
        talk.send(code)
        time.sleep(0.2)
        talk.process.kill()
        talk.process.kill()
        assert children(parent) == []
    assert got(server, "print('here')") == "here"
    assert server._running_server().pid == parent


def test_a_new_process_ends_the_one_before(server: ForkServer) -> None:
    with Conversation(server) as first, Conversation(server) as second:
        assert first.hangs_up()
        assert second.got("print('here')") == "here"


def test_a_crash_is_evidence(server: ForkServer) -> None:
    with Conversation(server) as talk:
        talk.send("os.abort()")
        assert talk.hangs_up()
        assert [(kind, source) for kind, _, source in talk.evidence()] == [("crash", "seen")]


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_parent_that_is_gone_or_hangs_is_replaced(
    server: ForkServer, ended_by: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxed_process, "KILL_SECONDS", 0.5)
    parent = server._running_server().pid
    with Conversation(server) as talk:
        [init] = children(parent)
        os.kill(parent, ended_by)
        talk.process.kill()
        assert not Path(f"/proc/{init}").exists()
    assert got(server, "print('here')") == "here"
    assert server._running_server().pid != parent


@pytest.fixture(scope="module")
def switched() -> Iterator[ForkServer]:
    """A server that goes on from one assignment to another: each test begins with another one."""
    with ForkServer(Sandbox(limits=SMALL_WITH_TORCH)) as server:
        yield server


def test_another_assignment_finds_torch_and_nothing_of_the_last(switched: ForkServer) -> None:
    switched.switch(["mailbox"], [("struct",)])
    handle = switched._running_server()
    zygote, parent = parent_of(handle.pid), handle.pid
    look = "import sys; print(*[name in sys.modules for name in ('torch', 'mailbox', 'sched')])"
    with Conversation(switched) as talk:
        assert talk.got(look) == "True True False"
        talk.got("if os.fork() == 0: time.sleep(60)")
        switched.switch(["sched"], [("math",)])
        assert talk.hangs_up()
    assert got(switched, look) == "True False True"
    assert switched._running_server() is handle
    assert children(zygote) == [handle.pid]
    assert not Path(f"/proc/{parent}").exists()


@pytest.mark.parametrize(("who", "module"), [("zygote", "colorsys"), ("parent", "sched")])
def test_what_is_gone_before_another_assignment_is_replaced(switched: ForkServer, who: str, module: str) -> None:
    parent = switched._running_server().pid
    zygote = parent_of(parent)
    os.kill({"zygote": zygote, "parent": parent}[who], signal.SIGKILL)
    switched.switch([module], [])
    assert got(switched, f"import sys; print({module!r} in sys.modules)") == "True"
    assert not Path(f"/proc/{zygote}").exists()


def test_a_second_server_is_isolated_from_the_first_and_leaves_nothing(server: ForkServer) -> None:
    mounts = Path("/proc/self/mounts").read_text()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    processes = {*children(os.getpid()), server._running_server().pid}
    shout = "server = socket.socket(socket.AF_UNIX); server.bind('\\0here'); server.listen()\nprint(os.getuid())"
    listen = "print(trying(lambda: socket.socket(socket.AF_UNIX).connect('\\0here')), os.getuid())"
    with Conversation(server) as first, ForkServer(Sandbox(limits=SMALL_WITH_TORCH)) as neighbour:
        second = Conversation(neighbour)
        user, (heard, other) = first.got(shout), second.got(listen).rsplit(maxsplit=1)
        assert heard == "ConnectionRefusedError 111"
        assert os.geteuid() != 0 or (user != other and {int(user), int(other)} <= set(USER_IDS))
        second.got("if os.fork() == 0: time.sleep(60)")
        second.channel.close()
        parent = neighbour._running_server().pid
    assert not Path(f"/proc/{parent}").exists()
    assert {*children(os.getpid()), server._running_server().pid} == processes
    assert Path("/proc/self/mounts").read_text() == mounts
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


GRADER = """
import time
from lmcourse.grading.fork_server import ForkServer
from tests.grading.forked import Conversation, children
with ForkServer() as server, Conversation(server) as talk:
    talk.got("if os.fork() == 0: time.sleep(60)")
    parent = server._running_server().pid
    print(parent, *children(parent), flush=True)
    time.sleep(60)
"""


def test_a_grader_that_is_killed_leaves_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", GRADER], stdout=subprocess.PIPE, text=True) as grader:
        assert grader.stdout is not None
        processes = grader.stdout.readline().split()
        assert len(processes) == 2
        grader.kill()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_does_not_start_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_handle, "CAPABILITIES", ())
    monkeypatch.setattr(server_handle, "ROOT_CAPABILITIES", ())
    with ForkServer() as server, pytest.raises(CourseError, match="clone: Operation not permitted"):
        Conversation(server)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CourseError, match="--isolation=process"):
        ForkServer()
