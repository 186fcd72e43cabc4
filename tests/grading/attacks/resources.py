"""Attacks with too much memory, output, files and time, and with results and texts that are expensive to read."""

from __future__ import annotations

from nbformat import NotebookNode

from lmcourse.grading.notebooks import new_code_cell
from tests.grading.attacks.attack import TRYING, Attack, attack

DEEP_TEXTS = {
    "a chain of elif": "if 0: pass\n" + "elif 0: pass\n" * 1_500,
    "a chain of comparisons": "0" + " < 0" * 2_000,
    "nested functions": "".join(f"{' ' * depth}def f():\n" for depth in range(95)) + " " * 95 + "pass",
    "nested lambdas": "x = " + "lambda: " * 3_000 + "0",
    "nested comprehensions": "x = " + "[" * 150 + "0" + " for a in b]" * 150,
    "a long attribute": "x = a" + ".a" * 6_000,
    "a chain of calls": "x = a" + "()" * 6_000,
    "a chain of minus": "x = " + "-" * 9_000 + "0",
    "a chain of sums": "x = 0" + " + 0" * 2_000,
    "brackets": "(" * 5000 + ")" * 5000,
    "many decorators": "@f\n" * 4_000 + "def g(): pass",
    "many with": "with " + ", ".join(["f()"] * 3_000) + ": pass",
    "a long number": "x = " + "9" * 9_000,
    "a large power": "x = 9 ** 9 ** 9 ** 9",
    "question marks": "x" * 50_000 + "?" * 50_000,
    "commas": "," * 100_000,
    "a null byte": "a\x00b",
    "half a character": "x = '\ud800'",
    "another encoding": "# -*- coding: rot13 -*-\nprvag(1)",
    "a backslash": "\\",
}
"""Texts of cells with very deep nesting."""


def _deep(nb: NotebookNode) -> None:
    nb.cells[1:1] = [new_code_cell(text) for text in DEEP_TEXTS.values()]


def _magics(nb: NotebookNode) -> None:
    nb.cells[1:1] = [new_code_cell(f"x = {number}\n" + "!l\n" * 600) for number in range(10)]


def _helpers(nb: NotebookNode) -> None:
    """Make answers that use thousands of helpers in separate cells."""
    nb.cells[1:1] = [new_code_cell(f"def h{n}(): return h{n + 1}() + math.pi") for n in range(1_800)]


RESOURCES = [
    attack("memory_without_end", "lists that grow without end", "kept = []\nwhile True: kept.append(bytearray(2**26))"),
    attack(
        "memory_of_many",
        "ten processes of 800 MB each, none above its own limit",
        """
        for _ in range(10):
            if os.fork() == 0:
                kept = bytearray(b"x") * (800 * 2**20)
                time.sleep(60)
        time.sleep(60)
        """,
        reason="more than 5 GiB|longer than",
    ),
    attack(
        "memory_of_nobody",
        "memory of no process: files in memory, System V's segments and queues, mounts in a user namespace",
        TRYING
        + """
def files():
    for _ in range(4):
        file = os.memfd_create("x")
        os.write(file, bytes(2**20))
    return "HEARD"
def segment():
    if libc.shmget(0, 2**28, 0o1600) < 0: raise OSError("no segment")
    return "HEARD"
def queue():
    if libc.msgget(0, 0o1600) < 0: raise OSError("no queue")
    return "HEARD"
def mounted():
    libc.unshare(0x10020000)
    if libc.mount(b"x", b"/submission", b"tmpfs", 0, b"size=9g") < 0: raise OSError("no mount")
    return "HEARD"
for act in (files, segment, queue, mounted): trying(act)
""",
    ),
    attack(
        "page_tables",
        "reads one byte of each 2 MB of terabytes that do not exist, for the kernel to write down where they are",
        """
        import mmap
        kept = mmap.mmap(-1, 2**46, flags=mmap.MAP_PRIVATE | 0x4000, prot=mmap.PROT_READ)
        for place in range(0, 2**46, 2**21): kept[place]
        """,
        reason="more than 5 GiB|longer than",
    ),
    attack(
        "fills_the_disk",
        "large files, many files, a sparse file of 1 TB, shared memory, and files that stay open",
        TRYING
        + """
def write(name, megabytes):
    with open(name, "wb") as out:
        for _ in range(megabytes): out.write(bytes(2**20))
    return name
trying(lambda: os.truncate(open("sparse", "w").name, 2**40))
for number in range(20): trying(lambda: write(f"/dev/shm/part{number}", 10))
for name in ("large", "/dev/shm/large", "/tmp/large", "/var/tmp/large"): trying(lambda: write(name, 200))
for number in range(20_000): open(f"file{number}", "w").close()
trying(lambda: [open("/dev/null") for _ in range(5000)])
""",
    ),
    attack(
        "forks_and_threads",
        "forks and starts threads until the system says no",
        TRYING
        + """
import threading
def without_end(start):
    for _ in range(2000): start()
    return "HEARD"
def fork():
    if os.fork() == 0: time.sleep(60)
trying(lambda: without_end(fork))
trying(lambda: without_end(lambda: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()))
""",
    ),
    attack(
        "strange_results",
        "4 GB, a view of 2**50 numbers, lists deep, cyclic and of 2**40 leaves, huge numbers, a generator without end",
        """
        calls = collections.defaultdict(itertools.count)
        deep, cyclic, wide = [], [], 0.0
        for _ in range(100_000): deep = [deep]
        cyclic.append(cyclic)
        for _ in range(40): wide = [wide, wide]
        kinds = [lambda: torch.ones(2**30), lambda: torch.zeros(1).expand(2**50), lambda: deep, lambda: cyclic,
                 lambda: 7 ** 1_200_000, lambda: (0.0 for _ in iter(int, 1)), lambda: torch.zeros(2**40, 0),
                 lambda: [torch.zeros(2**40, 0)] * 3, lambda: torch.zeros([1] * 60), lambda: {"a" * 10**6: [[]] * 9999}]
        """,
        every="""
        if next(calls['NAME']): return -1.5
        return kinds[sum(map(ord, 'NAME')) % len(kinds)]() if 'NAME' != 'decode_bits' else wide
        """,
        value="torch.zeros(1).expand(2**50)",
    ),
    attack(
        "costly_results",
        "results that take long to read or compare: a million numbers, ten thousand tensors, keys of one hash",
        """
        calls = collections.defaultdict(itertools.count)
        kinds = [lambda: [1.5] * 1_000_000, lambda: [torch.zeros(1)] * 10_000, lambda: torch.ones(2**21),
                 lambda: {number * (2**61 - 1): 0 for number in range(5_000)}, lambda: [[0.5] * 5] * 9_000]
        """,
        every="return -1.5 if next(calls['NAME']) else kinds[sum(map(ord, 'NAME')) % len(kinds)]()",
        value="[1.5] * 1_000_000",
    ),
    attack(
        "floods",
        "300 MB of output, an error and a display of 50 MB each, a warning for each of a million steps",
        """
        from IPython.display import display, HTML
        kept = []
        for _ in range(3000): print('x' * 50_000); os.write(1, b'x' * 50_000)
        for _ in range(10**5): print('beware' * 20, file=sys.stderr)
        display(HTML('<b>' + 'x' * 50_000_000 + '</b>'))
        raise ValueError('x' * 50_000_000)
        """,
        every="""
        import warnings
        for number in range(10**6 if 'NAME' == 'ulp' and not kept else 1): warnings.warn(str(number))
        kept.append('NAME')
        raise ValueError('x' * 5_000_000 if kept.count('NAME') < 3 else 'x')
        """,
        last="!yes | head -c 300000000",
    ),
    attack(
        "ends_python",
        "an exit, a crash and a recursion without limit; it dumps its core, and exits again in an answer",
        "os._exit(0)",
        every="""
        if 'NAME' == 'ulp': os._exit(0)
        sys.exit(0)
        """,
        last="import ctypes\nctypes.string_at(0)",
        reason="ended Python",
    ),
    attack(
        "ends_python_always",
        "ends in each answer, so that the grader has to start it again and again",
        "sys.setrecursionlimit(10**9)\nos.kill(os.getpid(), 9)",
        every="os.abort()",
        reason="ended Python",
    ),
    attack(
        "deaf_loop",
        "loops that swallow every exception, block all signals, or stay in C code for years",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(10**6)",
        every="while 'NAME' == 'ulp':\n    try: time.sleep(1)\n    except BaseException: pass",
        reason="still running|longer than",
    ),
    attack(
        "stops_itself",
        "SIGSTOP to itself: alive, and silent",
        "import signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        reason="still running|longer than",
    ),
    attack("deep_texts", "cells that are nested by the thousand, or break parsers", edit=_deep),
    attack(
        "many_magics", "cells of hundreds of shell commands, which IPython's transformer reads again each", edit=_magics
    ),
    attack("many_helpers", "answers that lead to thousands of helpers", every="return h0()", edit=_helpers),
    Attack("hundred_megabytes", "a notebook of 100 MB", lambda _: b'{"cells": [{"source": "' + b"x" * 10**8 + b'"}]}'),
]
"""All attacks of this file."""
