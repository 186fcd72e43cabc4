"""A notebook that is graded from outside earns what it earns in the notebook."""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lmcourse.course import available_chapters
from lmcourse.errors import CourseError
from lmcourse.exercises import Case, Exercise, Report, check_exercise, checking
from lmcourse.exercises.checking import SEED
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.examination import PlainLauncher, Timeouts
from tests.exercises.toy import answering, counting, doubling
from tests.grading.examining import ForkLauncher, code_cells, examined, reports_of

ROOT = Path(__file__).resolve().parents[2]


def sources(folder: str, number: str) -> list[str]:
    """The cells of a notebook that import or answer; not those that draw, and not the checks."""
    [path] = ROOT.glob(f"{folder}/{number}-*/*.ipynb")
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    marked = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")]
    return ["".join(cell["source"]) for cell in (cells[0], *marked)]


def checked(texts: Sequence[str], exercises: Sequence[Exercise], monkeypatch: pytest.MonkeyPatch) -> dict[str, Report]:
    """The reports of `check(hidden=True)` in this process."""
    notebook = ModuleType("__main__")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "__main__", notebook)
        patch.setenv(SEED, "7")
        for place, text in enumerate(texts, 1):
            file = f"<a cell {place}>"
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            exec(compile(text, file, "exec", dont_inherit=True), vars(notebook))
        return {each.name: check_exercise(each, _answer(each, vars(notebook)), hidden=True) for each in exercises}


def marks(reports: Mapping[str, Report]) -> dict[str, dict[str, Any]]:
    """Reports without what only the notebook says of public cases that failed: what the learner's code gave."""
    return {
        name: {**report.to_json(), "cases": [(case.name, case.passed, case.hidden) for case in report.cases]}
        for name, report in reports.items()
    }


def _answer(exercise: Exercise, names: dict[str, Any]) -> Any:
    return (lambda: names[exercise.name]) if exercise.value else names[exercise.name]


@pytest.mark.parametrize("number", ["01", "09"])
def test_a_solution_and_a_stub_earn_what_they_earn_in_the_notebook(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [chapter] = [chapter for chapter in available_chapters() if chapter.number == number]
    exercises = exercises_of(chapter)
    for folder in ("solutions", "notebooks"):
        texts, released = code_cells(folder, number), code_cells("notebooks", number)
        reports = examined(texts, exercises, seed=7, launcher=ForkLauncher(), provided_cells=released).reports
        assert marks(reports) == marks(checked(sources(folder, number), exercises, monkeypatch))
        assert all(report.points == (report.max_points if folder == "solutions" else 0) for report in reports.values())


WRONG = {
    "a misconception": "def double(x):\n    return x * x",
    "another": "def double(x):\n    return 2 * x.abs()",
    "half right": "def double(x):\n    return 2 * x if len(x) < 4 else x",
    "a crash": "def double(x):\n    y = x + 1\n    return y / '2'",
    "no return": "def double(x):\n    print('hello')\n    2 * x",
    "in place": "def double(x):\n    x *= 2\n    return x",
    "an object": "def double(x):\n    return object()",
    "a stub": "def double(x):\n    raise NotImplementedError",
    "too slow": "def double(x):\n    while True:\n        pass",
    "an exit": "def double(x):\n    raise SystemExit",
    "a rule broken": "import torch\n\ndef double(x):\n    return torch.mul(x, 2)",
    "through a helper": "from torch import mul as m\ndef h(x):\n    return m(x, 2)\n\ndef double(x):\n    return h(x)",
}


def test_wrong_answers_earn_what_they_earn_in_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text.replace("double", f"double{place}") for place, text in enumerate(WRONG.values())]
    exercises = [doubling(seconds=0.5, forbid=["torch.mul"]) for _ in texts]
    for place, exercise in enumerate(exercises):
        exercise.name = f"double{place}"
    here = marks(checked(texts, exercises, monkeypatch))
    there = marks(reports_of(texts, exercises, seed=7, launcher=ForkLauncher()))
    assert there == here
    assert [report["points"] for report in there.values()] == [0, 1.0, *[0] * 10]


TALKS = """
class PACKED(ValueError):
    pass

def double(x):
    if len(x) == 1:
        raise PACKED("PACKED") from None
    return ["PACKED"] if len(x) == 2 else {"PACKED": 0}
"""


def test_a_graded_report_says_nothing_in_the_words_of_the_learner() -> None:
    report = reports_of([TALKS], [doubling()], seed=1, launcher=ForkLauncher())["double"]
    assert "PACKED" not in json.dumps(report.to_json()) + report._repr_html_() + str(report)
    assert [case.message.partition(" (")[0] for case in report.cases if not case.hidden] == [
        "expected tensor([2., 4.]): it returns something else",
        "expected tensor([-6.]): it raises ValueError with a message",
    ]


def test_classes_values_magics_and_await() -> None:
    texts = [
        "%matplotlib inline\n!ls\nimport asyncio\nawait asyncio.sleep(0)\nanswer = await asyncio.sleep(0, 42)",
        "%%time\nclass Counter:\n    def __init__(self, start=0):\n        self.count = start\n"
        "    def add(self, amount):\n        if amount < 0:\n            raise ValueError\n"
        "        self.count += amount\n        return self",
        "1 / 0",
        "this is not Python!",
        "def double(x):\n    return x + x",
    ]
    reports = reports_of(texts, [doubling(), counting(), answering()], seed=1, launcher=ForkLauncher())
    assert [report.points for report in reports.values()] == [2, 2, 1]


def test_what_is_not_there_earns_nothing() -> None:
    reports = reports_of([], [doubling(), counting(), answering()], seed=1, launcher=ForkLauncher())
    assert [report.points for report in reports.values()] == [0, 0, 0]
    assert "name 'double' is not defined" in str(reports["double"])


def test_a_cell_that_ends_python_is_named_and_what_was_above_it_counts() -> None:
    texts = ["def double(x):\n    return x + x", "import os\nos._exit(0)", "answer = 42"]
    reports = reports_of(texts, [answering(), doubling()], seed=1, launcher=ForkLauncher())
    assert [report.points for report in reports.values()] == [0, 2]
    assert reports["answer"].diagnosis == (
        "Code cell 2 broke off the run: it ended Python itself: an exit, a crash, or no memory left. "
        "What came after was not run."
    )


def test_a_cell_without_end_is_named() -> None:
    reports = reports_of(
        ["answer = 42\nwhile True: pass"], [answering()], seed=1, launcher=ForkLauncher(), timeouts=Timeouts(cell=0.5)
    )
    assert reports["answer"].points == 0
    assert "Code cell 1 broke off the run: still running after 0.5 s" in str(reports["answer"])


def test_a_notebook_without_end_stops_after_its_time() -> None:
    texts = ["import time, signal", "def double(x):\n    signal.setitimer(signal.ITIMER_REAL, 0)\n    time.sleep(60)"]
    reports = reports_of(texts, [doubling(), counting()], seed=1, launcher=ForkLauncher(), timeouts=Timeouts(total=4.0))
    assert [report.points for report in reports.values()] == [0, 0]
    assert "the notebook ran longer than 4 s in all" in str(reports["double"])


def test_a_case_out_of_time_costs_no_other(tmp_path: Path) -> None:
    """In whichever order they come: here the one that is slow, in the notebook the last of all, comes early or late."""
    slow = "import time\ndef double(x):\n    while x.numel() == 1:\n        time.sleep(9)\n    return x + x"
    for seed in range(4):
        report = reports_of([slow], [doubling(seconds=0.3)], seed, launcher=ForkLauncher())["double"]
        assert [case.passed for case in report.cases] == [True, False, True, True]
        assert "still running when its time is up" in report.cases[1].message
        assert report.points == 1.0


def test_after_a_case_out_of_time_the_others_get_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "SECONDS_AFTER_TIMEOUT", 0.1)
    text = "def double(x):\n    while True: pass"
    report = reports_of([text], [doubling(seconds=0.3)], seed=1, launcher=ForkLauncher())["double"]
    assert not any(case.passed for case in report.cases)
    assert "still running when its time is up" in report.cases[0].message


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python"])
def test_a_process_that_does_not_start_is_not_the_learners_fault(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(CourseError, match="does not start"):
        reports_of(["answer = 42"], [answering()], seed=1, launcher=PlainLauncher())


def test_the_cases_come_in_an_order_that_tells_nothing(tmp_path: Path) -> None:
    def many(random: Any) -> list[Case]:
        return [Case("large", (random.random(),)) for _ in range(6)]

    exercise = Exercise(
        "f", 1, 1, 1, reference=lambda x: x, cases=[Case("small", (float(n),)) for n in (2, 3, 4)], hidden_cases=many
    )
    orders = []
    for seed in (1, 2):
        seen = tmp_path / str(seed)
        text = f"def f(x):\n    print(x, file=open({str(seen)!r}, 'a'))\n    return x"
        assert reports_of([text], [exercise], seed, launcher=ForkLauncher())["f"].points == 1
        orders.append([float(line) >= 1 for line in seen.read_text().split()])
    assert [sum(order) for order in orders] == [3, 3]
    assert all(order != [True] * 3 + [False] * 6 for order in orders)
