"""What an exercise rules out is refused from the first cell on, and honest cells beside an answer cost nothing."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmcourse.exercises import Exercise, case
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.grading.examination import PlainLauncher
from lmcourse.grading.examination.code_cells import cells_of
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.notebook_run import MAX_RUNS
from lmcourse.grading.examination.rule_runs import all_statements, needed_statements
from lmcourse.grading.examination_result import ExaminationResult
from tests.grading.examining import ForkedProcess, ForkLauncher, examined

FIRST = "import torch"
RIGHT = "def square(x):\n    return x * x"
TABLE = 'table = getattr(torch, "squ" + "are")(torch.arange(-9.0, 9.0))'
BY_TABLE = "def square(x):\n    return table[x.long() + 9]"
DOUBLE = "def double(x):\n    return 2 * x"


def squaring() -> Exercise:
    """The square of whole numbers, without torch's."""
    cases = [case("some", torch.tensor([1.0, 3.0])), case("a negative one", torch.tensor([-2.0]))]
    hidden = [case("others", torch.tensor([4.0, -5.0])), case("more", torch.tensor([[7.0], [-8.0]]))]
    reference = staticmethod(lambda x: x * x)
    return Exercise(
        "square", 2, 1, 1, reference=reference, cases=cases, hidden_cases=lambda _: hidden, forbid=[".square"]
    )


def doubling() -> Exercise:
    """Twice a number, by whatever means."""
    cases = [case("some", torch.tensor([1.0, 3.0])), case("one", torch.ones(1))]
    return Exercise("double", 2, 1, 1, reference=lambda x: 2 * x, cases=cases)


class CountingLauncher(ForkLauncher):
    """Counts the processes that it starts."""

    started = 0

    def start(self, connection: socket.socket) -> ForkedProcess:
        self.started += 1
        return super().start(connection)


def examination(*cells: str, exercises: Sequence[Exercise] = (), launcher: Launcher | None = None) -> ExaminationResult:
    return examined([FIRST, *cells], exercises or [squaring()], launcher=launcher or ForkLauncher())


def points(*cells: str) -> float:
    return examination(*cells).reports["square"].points


@pytest.mark.parametrize(
    "cell",
    [
        TABLE,
        f"try:\n    {TABLE}\nexcept Exception:\n    pass",
        f"for _ in range(1):\n    {TABLE}",
        f"class Kept:\n    {TABLE}\ntable = Kept.table",
        f"from __future__ import annotations\n{TABLE}",
        "async def later():\n    return" + TABLE.removeprefix("table =") + "\ntable = await later()",
    ],
)
def test_a_table_from_a_cell_earns_nothing(cell: str) -> None:
    report = examination(cell, BY_TABLE).reports["square"]
    assert report.points == 0
    assert "Code cell 2 uses `square`, which this exercise asks you to do without" in report.diagnosis


def test_a_table_that_no_name_leads_to_earns_nothing() -> None:
    assert points(f"def make():\n    exec({TABLE!r}, globals())\nmake()", BY_TABLE) == 0


def test_it_earns_nothing_in_plain_processes() -> None:
    """They load torch each time, so there are only more than one where a cell computes."""
    reports = examination(TABLE, BY_TABLE, DOUBLE, exercises=[squaring(), doubling()], launcher=PlainLauncher()).reports
    assert (reports["square"].points, reports["double"].points) == (0, 2)


def test_the_same_table_by_what_is_allowed_earns_everything() -> None:
    assert points("table = torch.arange(-9.0, 9.0) * torch.arange(-9.0, 9.0)", BY_TABLE) == 2
    assert points("table = torch.stack([n * n for n in torch.arange(-9.0, 9.0)])", BY_TABLE) == 2


def test_what_is_made_while_another_exercise_is_judged_earns_nothing() -> None:
    leaves = f"table = None\ndef double(x):\n    global table\n    {TABLE}\n    return 2 * x"
    reports = examination(leaves, BY_TABLE, exercises=[doubling(), squaring()]).reports
    assert (reports["double"].points, reports["square"].points) == (2, 0)


@pytest.mark.parametrize(
    "cells",
    [
        [RIGHT, "print(torch.allclose(square(torch.ones(2)), torch.square(torch.ones(2))))"],
        ["expected = torch.square(torch.ones(2))", RIGHT, "assert torch.equal(square(torch.ones(2)), expected)"],
        [f"expected = torch.square(torch.ones(2))\n{RIGHT}\nassert torch.equal(square(torch.ones(2)), expected)"],
        ["helper = torch.square\n" + RIGHT],
        ["def helper(x):\n    return torch.square(x)", RIGHT, "print(helper(torch.ones(1)) - square(torch.ones(1)))"],
        [f"from __future__ import annotations\n{RIGHT}"],
        ["import asyncio\nawait asyncio.sleep(0)", RIGHT],
        ["from functools import cache\n@cache\ndef one(): return torch.ones(1)", "def square(x): return one() * x * x"],
        ["square = lambda x: x ** 2"],
        ["%matplotlib inline\n" + RIGHT, "%%time\nsquare(torch.ones(3))"],
        ["if True:\n    def square(x):\n        return x * x"],
        ["1 / 0", RIGHT],
        [f"{RIGHT}\n1 / 0\nsquare = None"],
        ["torch.set_default_dtype(torch.float64)", "def square(x): return (x * torch.ones(1)[0] * x).to(x.dtype)"],
    ],
)
def test_honest_cells_beside_an_answer_cost_nothing(cells: list[str]) -> None:
    result = examination(*cells)
    assert (result.reports["square"].points, result.reports["square"].diagnosis) == (2, "")
    assert result.evidence == ()


@pytest.mark.parametrize(
    "answer",
    [
        "@torch.no_grad()\ndef square(x):\n    return x * x",
        "@torch.inference_mode()\ndef square(x):\n    return x * x",
        "def square(x):\n    with torch.no_grad():\n        return x * x",
        "def square(x):\n    with torch.set_grad_enabled(False):\n        return x * x",
    ],
)
def test_to_switch_autograd_off_is_no_use_of_it(answer: str) -> None:
    without_autograd = replace(squaring(), forbid=NO_AUTOGRAD)
    assert examination(answer, exercises=[without_autograd]).reports["square"].points == 2


def test_of_an_import_of_several_things_only_one_is_refused() -> None:
    without_graphs = replace(squaring(), forbid=["graphlib", ".square"])
    answer = "import graphlib, math\ndef square(x):\n    return x * x * math.cos(0)"
    result = examination(answer, exercises=[without_graphs])
    assert (result.reports["square"].points, result.reports["square"].diagnosis) == (2, "")


def test_a_setting_of_the_whole_notebook_holds_under_rules_too() -> None:
    """No name leads from the answer to it, so only the second run has it."""
    assert points("torch.set_default_dtype(torch.float64)", "def square(x): return (x * torch.ones(1)).to(x) * x") == 2
    needs = "def square(x):\n    assert torch.ones(1).dtype == torch.float64\n    return x * x"
    assert points("torch.set_default_dtype(torch.float64)", needs) == 2
    assert points(needs) == 0


def test_what_no_answer_needs_is_run_once(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    says = f"with open({str(heard)!r}, 'a') as file: print('here', file=file)"
    assert points(says, RIGHT) == 2
    assert heard.read_text().split() == ["here"]


def test_only_a_right_answer_takes_another_process() -> None:
    started = {}
    for answer in (RIGHT, "def square(x): raise NotImplementedError", "def square(x): return x", ""):
        launcher = CountingLauncher()
        examination(answer, launcher=launcher)
        started[answer[-9:]] = launcher.started
    assert [*started.values()] == [2, 1, 1, 1]


def test_below_the_line_that_fails_nothing_is_run() -> None:
    cells = cells_of(["a = 1\nb = 1 / 0\nc = 2", "d = 3"])
    assert all_statements(cells, {1: 2}) == {1: [0, 1], 2: [0]}


def test_statements_that_an_answer_may_need() -> None:
    cells = cells_of(
        [
            "import math\nscale = math.pi\nunrelated = print(scale)",
            "state = {}\nstate['a'] = scale\nother = [1]\nother.append(2)",
            "def helper(): return state\ndef square(x): return helper()",
            "for _ in range(3): square(2)\nhelper.count = 1",
        ]
    )
    needed = needed_statements(cells, all_statements(cells, {}), ["square"], ["square", "double"])
    assert needed == {1: [0, 1, 2], 2: [0, 1, 2], 3: [0, 1], 4: [1]}


def test_cells_that_run_into_a_rule_again_and_again_earn_nothing() -> None:
    each = ["if not made:\n    made.append(1)\n    torch.square(torch.ones(1))"] * (2 * MAX_RUNS)
    launcher = CountingLauncher()
    uses = "def square(x):\n    made\n    return x * x"
    report = examination("made = []", *each, uses, launcher=launcher).reports["square"]
    assert report.points == 0
    assert launcher.started <= MAX_RUNS + 1
