"""The audit hook in a notebook's process: it reports what honest work does not do, and is hard to silence."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from lmcourse.course import find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.batch.job import imported_modules
from lmcourse.grading.fork_server import ForkServer, audit
from lmcourse.grading.fork_server.sandboxed_process import (
    CUT_OFF,
    FORGED,
    MAX_LINE_BYTES,
    MAX_REPORT_BYTES,
    AuditReports,
)
from tests.exercises.toy import doubling
from tests.grading.examining import examined
from tests.grading.forked import Conversation
from tests.grading.sandboxed import needs_bubblewrap

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


def reported(server: ForkServer, code: str) -> list[tuple[str, str]]:
    """What is reported of a process that ran a piece of Python to its end: kinds and sentences."""
    with Conversation(server) as talk:
        talk.got(code)
        return [(kind, what) for kind, what, source in talk.evidence() if source == "told"]


SUSPICIOUS = {
    "frames of callers": ("import sys\ngetattr(sys, '_get' + 'frame')()", "interpreter", "frames of its callers"),
    "a traceback's frame": (
        "try: 1 / 0\nexcept ZeroDivisionError as error: getattr(error.__traceback__, 'tb_' + 'frame')",
        "interpreter",
        "frames of its callers",
    ),
    "another function's code": (
        "import types\ntypes.FunctionType((lambda: 1).__code__, {})",
        "interpreter",
        "another one's code",
    ),
    "a class that restricts": (
        "import sys\n"
        "sys.modules['lm' + 'course.grading.restrictions.restrictions'].Restrictions.enforce = lambda *_: None",
        "builtins",
        "replaced enforce",
    ),
    "reads": ("trying(lambda: open('/etc/passwd'))", "file", "it opened /etc/passwd"),
    "reads bytes": ("trying(lambda: open(b'/etc/passwd'))", "file", "it opened /etc/passwd"),
    "writes": ("trying(lambda: open('/var/x', 'w'))", "file", "it opened /var/x to write"),
    "goes up": ("trying(lambda: open('a/../../etc/passwd'))", "file", "it opened /etc/passwd"),
    "goes up from python": ("trying(lambda: open('/usr/../etc/passwd'))", "file", "it opened /etc/passwd"),
    "lists": ("trying(lambda: os.listdir('/home'))", "file", "it listed /home"),
    "links": ("os.symlink('/etc', 'here')", "file", "it made a link to /etc"),
    "reads oddly": (
        "trying(lambda: open('/etc/\\x01\\udc80\U0001f600\"' * 99))",
        "file",
        "it opened /etc/????/etc/????",
    ),
    "looks at others": ("trying(lambda: open('/proc/1/mem'))", "file", "it opened /proc/1/mem"),
    "connects": ("trying(lambda: socket.create_connection(('192.0.2.1', 80)))", "network", "it made a socket"),
    "asks for a name": ("trying(lambda: socket.getaddrinfo('example.org', 80))", "network", "example.org"),
    "runs": ("import subprocess; trying(lambda: subprocess.run(['/bin/true']))", "process", "/bin/true"),
    "runs a shell": ("os.system('true')", "process", "os.system"),
    "forks": ("os.fork() or os._exit(0)", "process", "os.fork"),
    "kills": ("trying(lambda: os.kill(1, 15))", "process", "os.kill"),
    "loads C": ("import ctypes; ctypes.CDLL(None)", "interpreter", "loaded a library of C"),
    "finds C": ("import ctypes; ctypes.pythonapi.Py_IncRef", "interpreter", "Py_IncRef"),
    "pokes": ("import ctypes; ctypes.c_int.from_address(id(5))", "interpreter", "ctypes"),
    "collects": ("import gc; gc.get_objects()", "interpreter", "gc.get_objects"),
    "refers": ("import gc; gc.get_referrers(print)", "interpreter", "gc.get_referrers"),
    "traces": ("sys.settrace(None)", "interpreter", "sys.settrace"),
    "profiles": ("sys.setprofile(lambda *_: None)", "interpreter", "sys.setprofile"),
    "profiles for a moment": ("sys.setprofile(lambda *_: None); sys.setprofile(None)", "interpreter", "sys.setprofile"),
    "profiles in a thread": (
        "import threading; t = threading.Thread(target=lambda: sys.setprofile(id)); t.start(); t.join()",
        "interpreter",
        "sys.setprofile",
    ),
    "rewires": (
        "import lmcourse.errors\n(lambda: 0).__code__ = (lambda: 1).__code__",
        "interpreter",
        "code of a function",
    ),
    "builds code": ("(lambda: 0).__code__.replace(co_name='x')", "interpreter", "code that is no text"),
    "escapes": ("import _xxsubinterpreters", "interpreter", "_xxsubinterpreters"),
    "patches print": ("import builtins; builtins.print = lambda *_: None", "builtins", "it replaced print of builtins"),
    "patches equal": ("import torch; torch.equal = lambda *_: True", "builtins", "it replaced equal of torch"),
    "patches item": ("import torch; torch.Tensor.item = lambda _: 0", "builtins", "it replaced item of torch.Tensor"),
    "patches us": (
        "import lmcourse.exercises.outcome as one; one.run_case = None",
        "builtins",
        "it replaced run_case of lmcourse.exercises.outcome",
    ),
    "stands in": ("sys.modules['lmcourse.errors'] = sys", "builtins", "it replaced lmcourse.errors of sys.modules"),
}


@needs_bubblewrap
@pytest.mark.parametrize(("code", "kind", "what"), SUSPICIOUS.values(), ids=SUSPICIOUS)
def test_it_tells(server: ForkServer, code: str, kind: str, what: str) -> None:
    assert any(one == kind and what in sentence for one, sentence in reported(server, code)), reported(server, code)


USUAL = """
import asyncio, concurrent.futures, dataclasses, linecache, tempfile, threading
import matplotlib.pyplot as plt, numpy, torch
open("mine", "w").write("x"); open("/dev/null").close(); os.listdir(); os.remove("mine")
with tempfile.TemporaryFile() as file: file.write(b"x")
async def nothing(): return 1
async def wait(): return await asyncio.gather(nothing(), asyncio.to_thread(time.sleep, 0))
asyncio.run(wait())
threading.Thread(target=print).start()
plt.plot([1, 2]); plt.title("a"); plt.savefig("figure.png")
x = torch.randn(3, requires_grad=True); x.sum().backward()
torch.save({"x": x}, "x.pt"); torch.load("x.pt")
@dataclasses.dataclass
class Point: x: int = 0
import cProfile; cProfile.run("sorted([2, 1])")
with cProfile.Profile() as profile: sorted([2, 1])
left_on = cProfile.Profile(); left_on.enable()
print(Point(), torch.equal(x, x), numpy.random.default_rng(0).random())
def endless(n): return endless(n + 1)
print(trying(lambda: endless(0)), trying(lambda: open("nowhere")))
"""


@needs_bubblewrap
def test_it_is_silent_about_what_is_usual(server: ForkServer) -> None:
    assert reported(server, USUAL) == []


@needs_bubblewrap
def test_it_is_silent_about_an_honest_notebook() -> None:
    chapter = find_chapter("09")
    [path] = (ROOT / "solutions" / chapter.id).glob("*.ipynb")
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    with ForkServer(modules=imported_modules(path)) as server:
        found = examined(cells, exercises_of(chapter), 5, server)
    assert found.evidence == ()
    assert all(report.points == report.max_points for report in found.reports.values())


HONEST_ANSWERS = {
    "helper": "def guarded(x):\n    try:\n        return x + 1\n    except:\n        return x\n"
    "def double(x):\n    while True:\n        x = guarded(x)",
    "sleep": "import time\ndef double(x):\n    while True:\n        try:\n            time.sleep(1)\n"
    "        except:\n            pass",
    "generator": "def endless():\n    while True:\n        try:\n            yield 1\n        except:\n"
    "            pass\ndef double(x):\n    for one in endless():\n        pass",
    "torch": "def double(x):\n    while True:\n        try:\n            x = x + x\n        except BaseException:\n"
    "            continue",
    "profile": "import cProfile\ndef double(x):\n    with cProfile.Profile() as profile:\n        return x + x",
    "profile left on": "import cProfile\nprofile = cProfile.Profile()\nprofile.enable()\n"
    "def double(x):\n    return x + x",
}


@needs_bubblewrap
@pytest.mark.parametrize("name", HONEST_ANSWERS)
def test_loops_and_profiles_are_no_evidence(server: ForkServer, name: str) -> None:
    found = examined([HONEST_ANSWERS[name]], [doubling(seconds=0.3)], launcher=server)
    assert found.evidence == ()
    assert found.reports["double"].points == (2 if name == "profile left on" else 0)
    assert ("switches on a profiler" in str(found.reports["double"])) == (name == "profile")


DISHONEST_ANSWERS = {
    "none": "import sys\ndef double(x):\n    sys.setprofile(None)\n    return x + x",
    "put back": "import sys\ndef double(x):\n    watch = sys.getprofile()\n    sys.setprofile(None)\n"
    "    sys.setprofile(watch)\n    return x + x",
    "put back after cProfile": "import sys, cProfile\ndef double(x):\n    watch = sys.getprofile()\n"
    "    with cProfile.Profile():\n        pass\n    sys.setprofile(watch)\n    return x + x",
}


@needs_bubblewrap
@pytest.mark.parametrize("name", DISHONEST_ANSWERS)
def test_who_ends_the_watch_over_calls_is_reported(server: ForkServer, name: str) -> None:
    found = examined([DISHONEST_ANSWERS[name]], [doubling(seconds=0.3)], launcher=server)
    told = [one.what for one in found.evidence if one.source == "told"]
    assert told == ["it set a function that Python calls at each step (sys.settrace or sys.setprofile)"]


SILENCERS = {
    "json": "import json, _json; json.dumps = _json.encode_basestring_ascii = lambda *_: ''",
    "os": "os.write = os.fstat = os.getcwd = lambda *_: 0",
    "builtins": """
    import builtins
    for name in ("issubclass", "type", "str", "bytes", "len", "set", "list", "getattr", "isinstance"):
        setattr(builtins, name, None)
    """,
    "what prepared it": """
    from lmcourse.grading.fork_server import audit
    audit._install.pop
    for name in ("READABLE_FOLDERS", "READABLE_FILES", "COMPARISON_FUNCTIONS", "HOOK_SOURCE", "_install"):
        setattr(audit, name, None)
    """,
    "audit": "sys.audit = sys.addaudithook = lambda *_: None",
    "another file in place of the pipe": """
    nowhere = os.open("/dev/null", 1)
    pipe = [n for n in range(3, 60) if "pipe" in trying(lambda: os.readlink(f"/proc/self/fd/{n}"))][0]
    os.dup(pipe); os.dup2(nowhere, pipe)
    """,
    "more than it will say": "for n in range(99): trying(lambda: os.listdir(f'/home/{n}'))",
}


@needs_bubblewrap
@pytest.mark.parametrize("silencer", SILENCERS.values(), ids=SILENCERS)
def test_it_is_not_silenced(server: ForkServer, silencer: str) -> None:
    with Conversation(server) as talk:
        talk.send(f"{textwrap.dedent(silencer)}\nos.system('true')")
        with suppress(OSError):  # it may have made itself mute on the way
            talk.channel.receive(30)
        assert any("os.system" in what for _, what, _ in talk.evidence())


@needs_bubblewrap
def test_a_path_that_lies_about_itself_is_reported(server: ForkServer) -> None:
    liar = """
    class Liar(str):
        startswith = split = __eq__ = __hash__ = __str__ = __format__ = lambda *_: 1 / 0
    trying(lambda: open(Liar("/etc/passwd")))
    sys.audit("open", Liar("/etc/shadow"), None, Liar("1")); sys.audit("open"); sys.audit("socket.__new__", 1, Liar())
    """
    kinds = reported(server, liar)
    assert ("file", "it opened /etc/passwd") in kinds
    assert ("file", "it opened /etc/shadow") in kinds
    assert ("interpreter", "it did something (open) in a way that hides what it was") in kinds


@needs_bubblewrap
def test_reading_numbers_as_compiled_modules_hold_them_is_reported(server: ForkServer) -> None:
    loads = 'import sys, fractions\nprint([*map(vars(sys.modules["mar" + "shal"])["loads"], [b"g" + bytes(8)])])'
    assert reported(server, loads) == [("interpreter", "it read what is written as compiled modules are")]


DEEP = """
def dive(n, place):
    return dive(n - 1, place) if n else os.listdir(place)
n = sys.getrecursionlimit() - 100
while trying(lambda: dive(n, ".")).startswith("DONE"):
    n += 1
for back in range(1, 9):
    print(trying(lambda: dive(n - back, "/proc/self/fd"))[:4])
"""


@needs_bubblewrap
def test_at_the_end_of_the_stack_it_is_reported_too(server: ForkServer) -> None:
    with Conversation(server) as talk:
        assert "DONE" in talk.got(DEEP).split()
        assert ("interpreter", "it did something (os.listdir) in a way that hides what it was") in reported(
            server, DEEP
        )


@needs_bubblewrap
def test_no_frame_leads_to_it(server: ForkServer) -> None:
    search = """
    frame, found = sys._getframe(), []
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            names = getattr(value, "__globals__", None) or getattr(value, "__dict__", None) or {}
            found += ["describers"] if hasattr(names, "__contains__") and "describers" in names else []
        found += ["describers"] if "describers" in frame.f_globals else []
        frame = frame.f_back
    print(found, [name for name in sys.modules if name.endswith("audit_hook")])
    """
    with Conversation(server) as talk:
        assert talk.got(search) == "[] []"


FIND = 'pipe = [n for n in range(3, 60) if "pipe" in trying(lambda: os.readlink(f"/proc/self/fd/{n}"))][0]\n'


@needs_bubblewrap
@pytest.mark.parametrize(
    ("code", "noticed"),
    [
        ("os.close(pipe)", CUT_OFF),
        ("os.dup2(0, pipe)", CUT_OFF),
        ("os.write(pipe, b'{}\\n')", FORGED),
        ("os.write(pipe, b'x' * 1000)", FORGED),
        ("trying(lambda: [os.write(pipe, b' ' * 299 + b'\\n') for _ in range(9999)])", FORGED),
    ],
    ids=["closed", "replaced", "no sentence", "no line", "flooded"],
)
def test_whoever_handles_its_pipe_is_noticed(server: ForkServer, code: str, noticed: object) -> None:
    with Conversation(server) as talk:
        assert talk.got(f"{FIND}{code}\nprint('fine')") == "fine"
        talk.process.kill()
        assert noticed in talk.process.evidence()


def line(**said: object) -> bytes:
    return json.dumps(said).encode() + b"\n"


GOOD = line(kind="file", what="it opened /etc/passwd")


def test_well_formed_lines_are_believed_once() -> None:
    reports = AuditReports()
    for piece in (GOOD[:7], GOOD[7:] + GOOD, b""):
        reports.add(piece)
    assert reports.closed
    assert [(one.kind, one.what, one.source) for one in reports.evidence()] == [
        ("file", "it opened /etc/passwd", "told")
    ]


@pytest.mark.parametrize(
    "piece",
    [
        b"\n", b"[]\n", b"1\n", b"null\n", b"{}\n", b"\xff\n", b"[" * 290 + b"\n", GOOD[:-1],
        b" " * MAX_LINE_BYTES + GOOD,
        line(kind="memory", what="x"), line(kind="file", what=1), line(kind=[], what="x"), line(kind="file"),
        line(kind="file", what="x", source="seen"), b"x" * (MAX_REPORT_BYTES + 1),
    ],
)  # fmt: skip
def test_anything_else_is_evidence_of_its_own(piece: bytes) -> None:
    reports = AuditReports()
    reports.add(piece)
    reports.add(b"")
    assert reports.evidence() == [FORGED]


def test_no_more_is_kept_than_the_limit() -> None:
    reports = AuditReports()
    for _ in range(1000):
        reports.add(b"x" * 4096)
    reports.add(GOOD)
    assert reports.evidence() == [FORGED]
    assert len(reports._rest) <= MAX_REPORT_BYTES


def test_a_namespace_tells_by_its_version_that_a_name_was_replaced() -> None:
    """That of a module, and that of a class. Where Python has no versions, all names are looked at each time."""
    assert audit._has_version_tags() or sys.version_info >= (3, 12)
    owners = (ModuleType("made_up"), type("MadeUp", (), {})) if audit._has_version_tags() else ()
    for owner in owners:
        vars(owner).get("one")
        tag = audit._version_tag(vars(owner))
        seen = [tag.value]
        for value in (1, 2):
            setattr(owner, "one", value)  # noqa: B010 - neither has it
            seen += [tag.value, tag.value]
        assert seen[1:] == [seen[1], seen[1], seen[3], seen[3]]
        assert len({*seen}) == 3


def test_a_name_that_is_replaced_late_is_reported(server: ForkServer) -> None:
    """After many messages in which nothing was."""
    with Conversation(server) as talk:
        for _ in range(20):
            talk.got("x = 1")
        talk.got("import lmcourse.exercises.compare as c\nc.difference = len")
        told = [(kind, what) for kind, what, source in talk.evidence() if source == "told"]
    assert told == [("builtins", "it replaced difference of lmcourse.exercises.compare")]
