"""Test properties that need a real kernel: cells have no files, and learners see their output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from threading import Timer
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from lmcourse.course.chapters import find_chapter
from lmcourse.course.progress import read_notebook_progress
from lmcourse.jupyter import lab
from lmcourse.report import REPORT_MIME

pytestmark = pytest.mark.prove

SETUP = """
import math, torch
from lmcourse.notebook import check, explore, hint, predict, start
start("01-floating-point")
"""

NAIVE = """
def stable_softmax(logits):
    print("working")
    return logits.exp() / logits.exp().sum(dim=-1, keepdim=True)
"""


COUNTER = """
from lmcourse.exercises import Exercise, check_exercise, script
class Right:
    def add(self, x): return self
counter = Exercise("Counter", points=1, minutes=1, difficulty=1, reference=Right, forbid=["torch.softmax"],
                   cases=[script("adds", "c = Counter()\\nc.add(1)")])
"""


class Notebook:
    """A kernel that runs single cells."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str, seconds: float = 60) -> dict[str, str]:
        """Run a cell, and return its outputs: "result", "stdout", "stderr", "error"."""
        shown: dict[str, str] = {}

        def see(message: Any) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                shown[content["name"]] = shown.get(content["name"], "") + content["text"]
            elif kind == "execute_result":
                shown["result"] = content["data"]["text/plain"]
                shown["html"] = content["data"].get("text/html", "")
            elif kind == "display_data":
                shown["html"] = content["data"].get("text/html", "")
                shown["report"] = json.dumps(content["data"].get(REPORT_MIME))
            elif kind == "error":
                shown["error"] = "\n".join(content["traceback"])

        self.client.execute_interactive(code, output_hook=see, timeout=seconds)
        return shown


@pytest.fixture(scope="module")
def notebook() -> Iterator[Notebook]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        book = Notebook(manager, client)
        assert book.run(SETUP) == {}
        yield book
    except Empty:
        pytest.fail("the kernel does not answer")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_report_is_the_value_of_its_cell_and_nothing_else_is_shown(notebook: Notebook) -> None:
    notebook.run(NAIVE)
    shown = notebook.run("check(stable_softmax)")
    assert set(shown) == {"result", "html"}
    assert shown["result"] == "0"
    assert "softmax by the book" in shown["html"]
    assert "working" in shown["html"]


def test_an_error_is_shown_at_the_line_of_the_cell(notebook: Notebook) -> None:
    notebook.run("def ulp(x, exponent_bits, mantissa_bits):\n    y = x + 1\n    return y.foo\n")
    html = notebook.run("check(ulp)")["html"]
    assert "AttributeError: &#x27;float&#x27; object has no attribute &#x27;foo&#x27;, in line 3:" in html
    assert "return y.foo" in html


def test_an_overwritten_course_name_is_restored(notebook: Notebook) -> None:
    notebook.run("check = 3")
    shown = notebook.run("hint('ulp')")
    assert "stderr" not in shown
    assert "Pick another name" in shown["stdout"]
    assert notebook.run("check.__module__")["result"] == "'lmcourse.exercises.checking'"


def test_questions_and_figures_have_a_text_without_widgets(notebook: Notebook) -> None:
    assert notebook.run("predict('tiny_gradient')")["result"].startswith("Predict. A gradient of 1e-8")
    assert (
        len(notebook.run("from lmcourse.chapters.floating_point import figures\nexplore(figures.spacing)")["result"])
        > 40
    )


@pytest.mark.parametrize(
    ("shadow", "call", "restore", "told"),
    [("max = 3", "max(x, 1.0)", "del max", "del max"), ("torch = 3", "torch.exp(x)", "import torch", "is an int")],
)
def test_a_shadowed_name_is_reported(notebook: Notebook, shadow: str, call: str, restore: str, told: str) -> None:
    notebook.run(f"{shadow}\ndef ulp(x, exponent_bits, mantissa_bits):\n    return {call}\n")
    html = notebook.run("check(ulp)")["html"]
    notebook.run(restore)
    assert told in html


def test_a_loop_that_catches_everything_ends(notebook: Notebook) -> None:
    notebook.run("from lmcourse.exercises.registry import find_exercise; find_exercise('ulp').seconds = 0.5")
    notebook.run(
        "import time\ndef ulp(x, exponent_bits, mantissa_bits):\n    while True:\n        try:\n"
        "            time.sleep(1)\n        except:\n            pass\n"
    )
    shown = notebook.run("check(ulp)", seconds=20)
    assert "still running" in shown["html"]
    assert "stderr" not in shown
    assert notebook.run("sum(range(10**6))")["result"] == "499999500000"


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("check(ulp)", "The check of `ulp` was interrupted"),
        (
            "from lmcourse.exercises.later_cells import your\nwith your('ulp'):\n    pass",
            "The check of `ulp` was interrupted",
        ),
        ("explore(ulp, x=(1, 2), exponent_bits=(1, 2), mantissa_bits=(1, 2))", "This cell was interrupted"),
    ],
)
def test_interrupt_shows_one_line_and_the_kernel_continues(notebook: Notebook, cell: str, told: str) -> None:
    notebook.run("from lmcourse.exercises.registry import find_exercise; find_exercise('ulp').seconds = 60")
    notebook.run("import time\ndef ulp(x, exponent_bits, mantissa_bits):\n    time.sleep(60)\n")
    Timer(2.0, notebook.manager.interrupt_kernel).start()
    assert notebook.run(cell, seconds=20) == {"error": f"{told} in line 3: `time.sleep(60)`"}
    notebook.run("find_exercise('ulp').seconds = 0.5")
    assert notebook.run("import signal; signal.getitimer(signal.ITIMER_REAL)")["result"] == "(0.0, 0.0)"


def test_a_class_of_a_cell_is_read_and_its_errors_have_lines(notebook: Notebook) -> None:
    notebook.run(COUNTER)
    notebook.run("class Counter:\n    def add(self, x):\n        return self.count + x\n")
    shown = notebook.run("check_exercise(counter, Counter)")
    assert "has no attribute &#x27;count&#x27;, in line 3: <code" in shown["html"]
    assert "return self.count + x" in shown["html"]
    notebook.run("class Counter:\n    def add(self, x):\n        return torch.softmax(x, 0) if x > 5 else self\n")
    shown = notebook.run("check_exercise(counter, Counter)")
    assert shown["result"] == "0"
    assert "torch.softmax" in shown["html"]
    notebook.run("class Counter:\n    def add(self, x):\n        return self\n")
    assert notebook.run("check_exercise(counter, Counter)")["result"] == "1"


def test_names_redefined_in_a_cell_do_not_break_the_check(notebook: Notebook) -> None:
    notebook.run("def tensor_bytes(shape, dtype):\n    return math.prod(shape) * 4 if dtype == 'float32' else 1\n")
    before = notebook.run("check(tensor_bytes)")
    notebook.run("list = len = str = sorted = max = any = 3; check = hint = None")
    assert notebook.run("check(tensor_bytes)")["html"] == before["html"]
    notebook.run("del list, len, str, sorted, max, any")


def test_calling_start_twice_shows_messages_once(notebook: Notebook) -> None:
    listening = "len(get_ipython().events.callbacks['pre_run_cell'])"
    before = notebook.run(listening)["result"]
    notebook.run("start('01-floating-point'); start('01-floating-point')")
    assert notebook.run(listening)["result"] == before
    notebook.run("hint = 3")
    assert notebook.run("1")["stdout"].count("belongs to the course") == 1
    assert notebook.run("1").get("stdout") is None


BROKEN = "def stable_softmax(logits):\n    shifted = logits - (\n    return shifted\n"


@pytest.mark.parametrize(
    ("newer", "told"),
    [
        (BROKEN, "did not run (SyntaxError in line 2). This report"),
        (f"%%time\n{BROKEN}", "did not run (SyntaxError in line 3). This report"),
        (f"torch.nothing\n{NAIVE}", "did not run (AttributeError in line 1). This report"),
        (NAIVE, ""),
        (f"%%time\n{NAIVE}", ""),
        (f"{NAIVE}\ntorch.nothing", ""),
        (f"%%writefile /dev/null\n{BROKEN}", ""),
        ("stable_softmax(", ""),
    ],
)
def test_report_notes_a_version_that_did_not_run(notebook: Notebook, newer: str, told: str) -> None:
    notebook.run(NAIVE)
    notebook.run(newer)
    html = notebook.run("check(stable_softmax)")["html"]
    assert "softmax by the book" in html
    assert ("did not run" in html) == bool(told)
    assert told.split("(")[-1] in html
    notebook.run(NAIVE)
    assert "did not run" not in notebook.run("check(stable_softmax)")["html"]


@pytest.mark.parametrize(
    ("newer", "told"),
    [
        ("two_layer_backward_flops = 144 +", "(SyntaxError in line 1)"),
        ("two_layer_backward_flops: float = 1 / 0", "(ZeroDivisionError in line 1)"),
        ("two_layer_backward_flops = 144\n1 / 0", ""),
    ],
)
def test_report_on_a_value_notes_a_version_that_did_not_run(notebook: Notebook, newer: str, told: str) -> None:
    notebook.run("two_layer_backward_flops = 3")
    notebook.run(newer)
    html = notebook.run("check(two_layer_backward_flops=two_layer_backward_flops)")["html"]
    assert (told in html, "did not run" in html) == (True, bool(told))


def test_checking_an_undefined_answer_shows_one_line(notebook: Notebook) -> None:
    notebook.run(NAIVE)
    notebook.run("del stable_softmax")
    told = "is not defined in this kernel yet."
    error = notebook.run("check(stable_softmax)")
    assert error == {"error": f"Run the cell with your answer first: `stable_softmax` {told}"}
    notebook.run(BROKEN)
    error = notebook.run("check(stable_softmax)")
    assert error == {"error": f"Your answer did not run (SyntaxError in line 2), so `stable_softmax` {told}"}
    assert "Traceback" in notebook.run("print(stable_softmax)")["error"]


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Notebook]:
    """A new kernel of `lmcourse lab` in the folder of a notebook; no cell has run."""
    sources = (SETUP, "with open('x', 'w') as file:\n    total = 3\n", "print(total + later)", "later = 4")
    cells = [{"cell_type": "code", "source": source} for source in sources]
    (tmp_path / "own.ipynb").write_text(json.dumps({"cells": cells}))
    env = {**os.environ, **lab.environment(os.environ), "PYTHONPATH": str(Path(lab.__file__).parents[1])}
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path), env=env)
    yield Notebook(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_names_of_the_first_cell_need_the_first_cell(restarted: Notebook) -> None:
    assert "lmcourse.course.chapters" not in restarted.run("import os, sys; print(*sys.modules)")["stdout"].split()
    line = "Run the first cell (Run › Run All Above Selected Cell): `{}` is not defined in this kernel yet."
    for name in ("check", "predict", "hint", "explore", "start", "torch", "inputs", "your"):
        assert restarted.run(f"{name}(ulp)") == {"error": line.format(name)}
    assert "Traceback" in restarted.run("ulp(3)")["error"]
    restarted.run("from lmcourse.notebook import inputs")  # as in the code of a report
    assert restarted.run("check(ulp)") == {"error": line.format("check")}
    restarted.run("os.chdir('..')")
    assert "Traceback" in restarted.run("check(ulp)")["error"], "no notebook of the course is here"


def test_names_of_other_cells_need_the_cells_above(restarted: Notebook) -> None:
    line = "Run the cells above (Run › Run All Above Selected Cell): `total` is not defined in this kernel yet."
    for setup in ("import math", SETUP):
        restarted.run(setup)
        assert restarted.run("print(total + later)") == {"error": line}
    restarted.run("total = 3")
    assert "Traceback" in restarted.run("print(total + later)")["error"], "a cell below defines it"
    assert "Traceback" in restarted.run("def f():\n    total\n    total = 1\nf()")["error"]


def test_a_function_that_the_notebook_does_not_import_says_how(notebook: Notebook) -> None:
    error = "`inputs` is not imported yet: run `from lmcourse.notebook import inputs` first."
    assert notebook.run("inputs('ulp', 'one')") == {"error": error}
    assert "Traceback" in notebook.run("len(inputs)")["error"]


def test_saved_points_are_kept_if_the_answer_is_not_defined(notebook: Notebook, tmp_path: Path) -> None:
    report = {"exercise": "ulp", "points": 1.5, "max_points": 2, "answered": True}
    cell = {
        "cell_type": "code",
        "metadata": {"nbgrader": {"grade": True, "grade_id": "check_ulp", "points": 2}},
        "outputs": [{"data": {REPORT_MIME: report}}],
    }
    path = tmp_path / "01-floating-point" / "floating_point.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "metadata": {}}, cell]}))
    notebook.run(f"import os; before = os.getcwd(); os.chdir({str(path.parent)!r}); ulp = None; del ulp")
    shown = notebook.run("check(ulp)")
    notebook.run("os.chdir(before)")
    assert shown["error"].startswith("Run the cell with your answer first")
    assert json.loads(shown["report"]) == report
    assert shown["html"] == "<p>Your saved points stay: 1.5 of 2.</p>"
    cell["outputs"] = [{"data": {REPORT_MIME: json.loads(shown["report"])}}, {"output_type": "error"}]
    path.write_text(json.dumps({"cells": [cell]}))
    assert read_notebook_progress(find_chapter("01-floating-point"), path).points == 1.5


def test_hint_without_a_name_is_about_the_last_check(notebook: Notebook) -> None:
    notebook.run("check(ulp)")
    notebook.run("check(two_layer_backward_flops=3)")
    notebook.run("hint()")
    assert notebook.run("hint()")["result"] == notebook.run("hint('two_layer_backward_flops')")["result"]
