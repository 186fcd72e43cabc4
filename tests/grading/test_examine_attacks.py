"""Nothing that code can do inside its own process earns a point."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from lmcourse.exercises.checking import SEED
from lmcourse.grading.examination import Timeouts
from tests.exercises.toy import answering, doubling
from tests.grading.examining import ForkLauncher, reports_of

WRONG = "def double(x):\n    return x * 0\n"

CHANNEL = """
import os, sys, time, torch
from lmcourse.grading.examination.channel import Channel
frame = sys._getframe()
while "channel" not in frame.f_locals:
    frame = frame.f_back
child, channel = frame.f_globals, frame.f_locals["channel"]
right = {"value": torch.tensor([2.0, 4.0]), "failure": None, "printed": ""}
right |= {"warned": [], "changed": [], "forbidden": []}
"""
"""What a notebook can get at: the program that runs it, its end of the connection, what a public case asks for."""

PATCHES = """
import torch
from lmcourse.exercises import checking, compare, judge, report, trial
compare.difference = trial.difference = trial.verdict = judge.verdict = lambda *_, **__: None
judge.earned = checking.judge = lambda *_, **__: 2.0
trial.Trial.verdict = lambda *_: None
checking.check_exercise = lambda *_, **__: report.Report("double", 2.0, 2, True, ())
torch.equal = torch.allclose = lambda *_, **__: True
torch.isclose = lambda a, b, **_: torch.ones(a.shape, dtype=torch.bool)
torch.Tensor.__eq__ = lambda *_: True
torch.Tensor.__ne__ = lambda *_: False
"""

CONNECTION = {
    "says more": ('child["outcome_to_plain"] = lambda outcome: right | {"points": 2}', "is no answer"),
    "is an error of every kind": (
        'kinds = ["ValueError", "TypeError", "IndexError", "KeyError", "RuntimeError", "Exception"]\n'
        'failure = {"kinds": kinds, "number": 0, "message": "", "line": "", "cause": ""}\n'
        'child["_evaluate"] = lambda *_: right | {"value": None, "failure": failure}',
        "",
    ),
    "writes garbage to every file": (
        'def double(x):\n    for file in range(3, 64):\n        try: os.write(file, b"\\xff" * 100)\n'
        "        except OSError: pass\n    return x",
        "a message of 4294967295 bytes",
    ),
    "floods the connection": (
        "def double(x):\n    channel.connection.settimeout(None)\n"
        '    while True: channel.connection.sendall(b"\\0" * 2**20)',
        "the text is cut short",
    ),
    "sends a message without end": (
        'def double(x):\n    channel.connection.sendall((2**26).to_bytes(4, "little"))\n    time.sleep(60)',
        "still running after 1 s",
    ),
    "sends a pickle": (
        "import pickle\ndef double(x):\n    body = pickle.dumps(right)\n"
        '    channel.connection.sendall(len(body).to_bytes(4, "little") + body)',
        "is no answer",
    ),
    "answers in advance": (
        'for _ in range(50):\n    channel.send({"nonce": "0" * 32, "result": right})',
        "did not give",
    ),
    "answers twice": (
        "put = Channel.put\ndef twice(self, *message):\n    put(self, *message)\n    put(self, *message)\n"
        "Channel.put = twice",
        "did not give",
    ),
    "repeats an old answer": (
        "encoded, first = Channel.encoded, []\ndef again(self, value):\n"
        "    first.append(encoded(self, value))\n    return first[0]\nChannel.encoded = again",
        "an answer to another question",
    ),
    "has a grandchild speak": (
        "if os.fork() == 0:\n    for _ in range(200):\n"
        '        try: channel.send({"nonce": "0" * 32, "result": right})\n        except OSError: break\n'
        "        time.sleep(0.02)\n    os._exit(0)\ntime.sleep(0.3)",
        "is no answer",
    ),
    "hangs up": ("def double(x):\n    channel.connection.close()", "ended Python itself"),
}
"""What a notebook may do to the connection, and what the learner is told of it."""


@pytest.mark.parametrize("name", CONNECTION)
def test_a_notebook_that_meddles_with_the_connection_earns_nothing(name: str) -> None:
    text, says = CONNECTION[name]
    exercise = doubling(seconds=0.5)
    report = reports_of(
        [WRONG, CHANNEL + text], [exercise], seed=5, launcher=ForkLauncher(), timeouts=Timeouts(grace=0.5)
    )["double"]
    assert report.points == 0
    assert not any(case.passed for case in report.cases)
    assert re.search(says, report.diagnosis)
    assert "\n" not in report.diagnosis


ANSWERS = {
    "equal": """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __getattr__(self, name): return self
    def __call__(self, *_, **__): return self
def double(x): return Equal()
""",
    "agreeable": """
class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.ones((), dtype=torch.bool)
def double(x): return torch.zeros(x.shape).as_subclass(Agreeable)
""",
    "a number": """
class Number(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
def double(x): return Number(1)
""",
    "exit": "import sys\ndef double(x): sys.exit(0)\n",
    "prints": 'import os\ndef double(x):\n    while True:\n        print("x" * 9_999)\n        os.write(1, b"x")\n',
    "no end": "import signal\ndef double(x):\n    signal.setitimer(signal.ITIMER_REAL, 0)\n    while True: pass\n",
}


def test_no_patch_and_no_strange_answer_earns_a_point() -> None:
    exercises = [doubling(seconds=0.5) for _ in ANSWERS]
    texts = [PATCHES]
    for place, (exercise, text) in enumerate(zip(exercises, ANSWERS.values(), strict=True)):
        exercise.name = f"double{place}"
        texts.append(text.replace("double", exercise.name))
    reports = reports_of(texts, exercises, seed=5, launcher=ForkLauncher(), timeouts=Timeouts(grace=0.5))
    assert [report.points for report in reports.values()] == [0] * len(ANSWERS)
    assert not any(case.passed for report in reports.values() for case in report.cases)


def test_an_exercise_that_loses_its_process_costs_no_other() -> None:
    texts = ["answer = 42", "import os\ndef double(x):\n    os._exit(0)"]
    reports = reports_of(texts, [doubling(), answering()], seed=5, launcher=ForkLauncher())
    assert [report.points for report in reports.values()] == [0, 1]
    assert reports["double"].diagnosis == (
        "While `double` was checked: it ended Python itself: an exit, a crash, or no memory left."
    )


def test_answers_stored_from_another_run_are_worth_nothing_hidden() -> None:
    exercise = doubling()
    known = [case.args[0].tolist() for case in (*exercise.cases, *exercise.hidden(1))]
    knowing = f"def double(x):\n    return 2 * x if x.tolist() in {known} else x"
    report = reports_of([knowing], [exercise], seed=2, launcher=ForkLauncher())["double"]
    assert report.points == 0
    assert all(case.passed is not case.hidden for case in report.cases)


def test_the_process_is_told_nothing_but_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that reaches it, written down by itself: no name, no category, no expected value, no seed."""
    monkeypatch.setenv(SEED, "123456789")
    monkeypatch.setenv("A_KEY_OF_THE_GRADER", "123456789")
    spy = f"""
import os
from lmcourse.grading.examination.channel import Channel
read = Channel._read
def spying(self, count, deadline):
    part = read(self, count, deadline)
    with open({str(tmp_path / "heard")!r}, "ab") as book:
        book.write(part)
    return part
Channel._read = spying
with open({str(tmp_path / "environment")!r}, "w") as book:
    print(dict(os.environ), os.listdir(), file=book)
def double(x):
    return 2 * x
"""
    exercise = doubling(seconds=2.0)
    assert reports_of([spy], [exercise], seed=123456789)["double"].points == 2
    heard = (tmp_path / "heard").read_bytes()
    assert heard.count(b'"case"') == len(exercise.cases) + 2
    names = [case.name for case in (*exercise.cases, *exercise.hidden(0))]
    for secret in (*names, "123456789", "hidden", "expected", "points", "square", *exercise.hints[:1]):
        assert secret.encode() not in heard
    assert "123456789" not in (tmp_path / "environment").read_text()


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_what_a_notebook_leaves_running_is_ended(tmp_path: Path) -> None:
    text = f"""
import os, time
if os.fork() == 0:
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists({str(tmp_path / "pid")!r}) or not open({str(tmp_path / "pid")!r}).read(): pass
answer = 42
"""
    assert reports_of([text], [answering()], seed=1)["answer"].points == 1
    left = int((tmp_path / "pid").read_text())
    while is_running(left):  # it was killed, or this test would run into its time limit
        time.sleep(0.01)
