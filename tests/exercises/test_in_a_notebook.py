"""What only shows in a real kernel: cells have no files, and their output goes to a learner."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

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


class Notebook:
    """A kernel, cell by cell."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, code: str, seconds: float = 60) -> dict[str, str]:
        """Run a cell; what it showed: "result", "stdout", "stderr", "error"."""
        shown: dict[str, str] = {}

        def see(message: Any) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                shown[content["name"]] = shown.get(content["name"], "") + content["text"]
            elif kind == "execute_result":
                shown["result"] = content["data"]["text/plain"]
                shown["html"] = content["data"].get("text/html", "")
            elif kind == "error":
                shown["error"] = "\n".join(content["traceback"])

        self.client.execute_interactive(code, output_hook=see, timeout=seconds)
        return shown


@pytest.fixture(scope="module")
def notebook() -> Iterator[Notebook]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        book = Notebook(client)
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
    assert shown["result"] == "0.5"
    assert "softmax by the book" in shown["html"]
    assert "working" in shown["html"]


def test_an_error_is_shown_at_the_line_of_the_cell(notebook: Notebook) -> None:
    notebook.run("def ulp(x, exponent_bits, mantissa_bits):\n    y = x + 1\n    return y.foo\n")
    html = notebook.run("check(ulp)")["html"]
    assert "AttributeError: &#x27;float&#x27; object has no attribute &#x27;foo&#x27;, in line 3:" in html
    assert "return y.foo" in html


def test_rules_read_the_source_of_a_cell(notebook: Notebook) -> None:
    notebook.run("def stable_softmax(logits):\n    return logits.softmax(dim=-1)\n")
    shown = notebook.run("check(stable_softmax)")
    assert shown["result"] == "0"
    assert "without <code" in shown["html"]


def test_an_endless_loop_ends_and_the_kernel_goes_on(notebook: Notebook) -> None:
    notebook.run("from lmcourse.exercises.registry import find_exercise; find_exercise('ulp').seconds = 0.5")
    notebook.run("def ulp(x, exponent_bits, mantissa_bits):\n    while True:\n        pass\n")
    assert "still running after 0.5 s" in notebook.run("check(ulp)")["html"]
    assert notebook.run("1 + 1")["result"] == "2"


def test_a_name_of_the_course_is_put_back(notebook: Notebook) -> None:
    notebook.run("check = 3")
    shown = notebook.run("hint('ulp')")
    assert "stderr" not in shown
    assert "Pick another name" in shown["stdout"]
    assert notebook.run("check.__module__")["result"] == "'lmcourse.exercises.checking'"


def test_a_slip_in_calling_shows_one_line(notebook: Notebook) -> None:
    assert notebook.run("check(ulpp=3)")["error"] == "There is no exercise called `ulpp`. Did you mean `ulp`?"


def test_a_shadowed_builtin_is_pointed_out(notebook: Notebook) -> None:
    notebook.run("max = 3\ndef ulp(x, exponent_bits, mantissa_bits):\n    return max(x, 1.0)\n")
    html = notebook.run("check(ulp)")["html"]
    notebook.run("del max")
    assert "del max" in html


def test_a_question_and_a_figure_have_a_text_for_those_who_see_no_widgets(notebook: Notebook) -> None:
    assert notebook.run("predict('tiny_gradient')")["result"].startswith("Predict. A gradient of 1e-8")
    assert len(notebook.run("from lmcourse import plots\nexplore(plots.spacing)")["result"]) > 40
