"""What is told of a notebook beside its marks."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import pytest

from lmcourse.exercises.registry import all_exercises
from lmcourse.grading.examination import Timeouts
from lmcourse.grading.examination.code_cells import Cell, cells_of
from lmcourse.grading.examination.suspicious_code import suspicious_code
from lmcourse.grading.examination_result import Evidence, EvidenceKind
from tests.exercises.toy import answering, doubling
from tests.grading.examining import ForkedProcess, ForkLauncher, examined

ROOT = Path(__file__).resolve().parents[2]

CHANNEL = """
import sys
frame = sys._getframe()
while "channel" not in frame.f_locals:
    frame = frame.f_back
channel = frame.f_locals["channel"]
"""
"""A cell's way to the connection of the program that runs it."""


def seen(*cells: str, timeouts: Timeouts | None = None) -> list[tuple[str, str]]:
    evidence = examined(cells, [doubling(seconds=0.3)], launcher=ForkLauncher(), timeouts=timeouts).evidence
    return [(one.kind, one.what) for one in evidence if one.source == "seen"]


def test_what_the_grader_sees_of_a_notebook_is_told() -> None:
    assert seen("import os\nos._exit(0)") == [("crash", "Code cell 1 ended Python itself.")]
    assert seen("import os\ndef double(x):\n    os._exit(0)") == [("crash", "`double` ended Python itself.")]
    [(kind, what)] = seen(CHANNEL, "channel.send({'nonce': '0', 'result': None})")
    assert (kind, what.startswith("Code cell 2: what came back is no answer")) == ("protocol", True)
    [(kind, what)] = seen(CHANNEL + "def double(x):\n    channel.connection.sendall(b'\\0' * 64)")
    assert (kind, what.startswith("`double`: what came back is no answer")) == ("protocol", True)


def test_neither_failures_nor_slow_answers_are_evidence() -> None:
    assert seen("1 / 0", "import sys\nsys.exit()", "def double(x):\n    while True: pass") == []
    assert seen("while True: pass", timeouts=Timeouts(cell=0.5)) == []


class Large(ForkedProcess):
    """A process that its launcher killed, and tells why."""

    def kill_reason(self) -> str:
        return "it used more than 3 MiB of memory"

    def evidence(self) -> list[Evidence]:
        return [Evidence("memory", "It was too large.", "seen")]


def test_what_a_launcher_says_of_its_process_counts() -> None:
    found = examined(["import os\nos._exit(0)"], [answering(), doubling()], launcher=ForkLauncher(Large))
    assert found.problem.startswith("Code cell 1 broke off the run: it used more than 3 MiB of memory.")
    assert found.reports["answer"].diagnosis == found.problem
    assert [one.kind for one in found.evidence if one.source == "seen"] == ["memory"]


HONEST = """
import math, os, random, torch
import numpy as np
from torch import Tensor, nn
from lmcourse.exercises import check, hint
from lmcourse.notebook import check, hint
torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
os.environ["OMP_NUM_THREADS"] = "1"
model = nn.Linear(2, 2)
model.weight.data[0] = 3
model.eval()
step = torch.compile(model)
class Value:
    def __eq__(self, other):
        return self.data == other.data
    def __bool__(self):
        return bool(self.data)
sum = 3
text = open("corpus.txt").read()
half = 1 / 2
"""

FOUND: dict[str, tuple[EvidenceKind, str]] = {
    "import sqlite3": ("file", "uses sqlite3"),
    "open('../../gradebook.db')": ("file", "names '../../gradebook.db'"),
    "open('/etc/passwd')": ("file", "names '/etc/passwd'"),
    "import os\nos.environ['LMCOURSE_SEED']": ("file", "names 'LMCOURSE_SEED'"),
    "from urllib.request import urlopen": ("network", "uses urllib"),
    "import subprocess as s\ns.run('ls')": ("process", "uses subprocess"),
    "from os import system\nsystem('ls')": ("process", "uses os.system"),
    "import os\nos.fork()": ("process", "uses os.fork"),
    "import ctypes": ("interpreter", "uses ctypes"),
    "import gc\ngc.get_objects()": ("interpreter", "uses gc.get_objects"),
    "import sys as s\ns._getframe(1)": ("interpreter", "uses sys._getframe"),
    "f.__globals__['x']": ("interpreter", "uses .__globals__"),
    "get_ipython().ast_transformers.append(t)": ("interpreter", "uses .ast_transformers"),
    "ip = get_ipython()\nip.events.register('pre_run_cell', f)": ("interpreter", "uses .events.register"),
    "get_ipython().kernel.do_execute = f": ("interpreter", "uses .do_execute"),
    "import builtins\nbuiltins.len = f": ("builtins", "assigns to builtins.len"),
    "from torch import Tensor as T\nT.__eq__ = f": ("builtins", "assigns to torch.Tensor.__eq__"),
    "import torch\nx, torch.equal = f, g": ("builtins", "assigns to torch.equal"),
    "from lmcourse import plots\ndel plots.bars": ("builtins", "assigns to lmcourse.plots.bars"),
    "import sys\nsys.modules['torch'] = f": ("builtins", "assigns to sys.modules"),
    "import torch\nsetattr(torch, 'equal', f)": ("builtins", "assigns to torch by setattr"),
    "class A:\n    def __torch_function__(*a): pass": ("builtins", "defines __torch_function__"),
    "class A:\n    def __eq__(self, other): return True": ("text", "has __eq__ always say True"),
    "class A:\n    __ne__ = lambda self, other: False": ("text", "has __ne__ always say False"),
    "class A:\n    def __reduce__(self): return f, ()": ("text", "defines __reduce__"),
    "from lmcourse.exercises.registry import find_exercise": ("text", "uses lmcourse.exercises.registry.find_exercise"),
    "import lmcourse.grading": ("text", "uses lmcourse.grading"),
    "exec('x = 1')": ("text", "uses exec"),
    "import builtins as b\nb.eval('1')": ("text", "uses eval"),
    "__import__('o' + 's')": ("text", "uses __import__"),
}


@pytest.mark.parametrize("text", FOUND)
def test_what_honest_work_never_mentions_is_found_in_the_text(text: str) -> None:
    kind, what = FOUND[text]
    assert Evidence(kind, f"Code cell 7 {what}.", "read") in suspicious_code([Cell(7, text, ast.parse(text))])


def test_nothing_is_found_in_honest_work() -> None:
    assert suspicious_code(cells_of([HONEST])) == []
    for path in sorted(ROOT.glob("*/[0-9][0-9]-*/*.ipynb")):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        assert suspicious_code(cells_of(["".join(cell["source"]) for cell in cells])) == [], path
    for exercise in all_exercises().values():
        for wrong in exercise.misconceptions:
            text = inspect.cleandoc(f"\n{inspect.getsource(wrong.answer)}")
            assert exercise.value or suspicious_code(cells_of([text])) == [], text


def test_what_is_found_changes_no_mark() -> None:
    found = examined(["import ctypes, sqlite3", "answer = 42"], [answering()], launcher=ForkLauncher())
    assert found.reports["answer"].points == 1
    assert [one.what for one in found.evidence] == ["Code cell 1 uses ctypes.", "Code cell 1 uses sqlite3."]
