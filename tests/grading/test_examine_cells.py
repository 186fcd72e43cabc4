"""Which cells are run, what they print, and what is said of an answer that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmcourse.course import Chapter, available_chapters
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.examination import PlainLauncher, Timeouts
from lmcourse.grading.examination.child import PrintedText, TooMuchPrintedError
from lmcourse.grading.examination.code_cells import cells_of
from lmcourse.grading.examination.encoding import ProtocolError
from lmcourse.grading.examination.messages import KEPT_CELL_PRINTED_CHARS, MAX_CELL_PRINTED_CHARS, cell_from_plain
from lmcourse.grading.examination.skipped_cells import display_names, only_displays, unneeded_cells
from tests.exercises.toy import answering, counting, doubling
from tests.grading.examining import ForkedProcess, ForkLauncher, code_cells, examined, reports_of

IMPORTS = (
    "import torch\nfrom lmcourse import plots, numerics\nfrom lmcourse.notebook import check, explore, hint, start"
)


def shows(cell: str, *others: str) -> bool:
    cells = cells_of((IMPORTS, *others, cell))
    return only_displays(cells[-1].tree, display_names(cells))


@pytest.mark.parametrize(
    "cell",
    [
        "check(ulp)",
        "check(ulp)\ncheck(ulp, hidden=True)",
        "explore(plots.code_grid, format=['e4m3', 'e5m2'], code=list(range(3)))",
        "plots.bars(3).show()",
        "hint('ulp')  # once more",
    ],
)
def test_a_cell_that_only_shows_is_not_run(cell: str) -> None:
    assert shows(cell)


@pytest.mark.parametrize(
    ("cell", "others"),
    [
        ("x = check(ulp)", []),
        ("check(ulp)\nx = 1", []),
        ("check(answer := 42)", []),
        ("check(await answer())", []),
        ("check(make_answer())", []),
        ("print(check(ulp))", []),
        ("list(range(3))", []),
        ("numerics.ulp(1.0)", []),
        ("start('01-floating-point')", []),
        ("torch.manual_seed(0)", []),
        ("answers[0](3)", []),
        ("", []),
        ("plots", []),
        ("explore(f)", ["def explore(f):\n    global answer\n    answer = f"]),
        ("explore(f)", ["from mine import explore"]),
        ("explore(f)", ["from mine import *"]),
        ("explore(f)", ["for explore in fs:\n    pass"]),
        ("explore(f)", ["def g():\n    global explore"]),
        ("explore(f)", ["try:\n    pass\nexcept E as explore:\n    pass"]),
        ("explore(f)", ["match x:\n    case {**explore}:\n        pass"]),
        ("plots.bars(f)", ["plots.bars = print"]),
        ("plots.bars(f)", ["import lmcourse.mine as plots"]),
        ("check(list(f))", ["list = print"]),
    ],
)
def test_everything_else_is_run(cell: str, others: list[str]) -> None:
    assert not shows(cell, *others)


@pytest.mark.parametrize("chapter", available_chapters(), ids=lambda chapter: chapter.number)
def test_of_the_courses_own_cells_only_the_imports_are_needed(chapter: Chapter) -> None:
    """What was measured of the others: 47 s of training and timing in three of the notebooks."""
    cells = cells_of(code_cells("solutions", chapter.number))
    answers = {exercise.name for exercise in exercises_of(chapter)}
    released = code_cells("notebooks", chapter.number)
    names = display_names(cells)
    skipped = {cell.number for cell in cells if only_displays(cell.tree, names)}
    skipped |= unneeded_cells([cell for cell in cells if cell.number not in skipped], released, answers, answers)
    run = [cell for cell in cells if cell.number not in skipped]
    assert [cell.number for cell in run if cell.text in released] == [1]
    assert len(run) == 1 + len(answers)


HANDED_OUT = [
    "import torch\nfrom time import time as now",
    "scale = 3.0\nslow = [scale] * 9",
    "scale = slow[0]",
    "print(2)",
    "rows = []",
    "rows.append(torch.ones(3))",
    "shown = double(3)",
]


@pytest.mark.parametrize(
    ("answer", "run"),
    [
        ("def double(x):\n    return 2 * x", set()),
        ("def double(x):\n    return torch.mul(x, 2)", {1}),
        ("def double(x):\n    return x * scale", {2, 3}),
        ("def double(scale):\n    return 2 * scale", set()),
        ("def double(x):\n    return x * rows[0]", {1, 5, 6}),
        ("def double(x):\n    return x * globals()['scale']", {1, 2, 3, 4, 5, 6, 7}),
        ("def double(x):\n    return 2 * x if shown else 0", {7}),
        ("begin = now()\ndouble = abs", {1}),
    ],
)
def test_a_cell_of_the_course_is_run_if_something_refers_to_it(answer: str, run: set[int]) -> None:
    assert unneeded_cells(cells_of([*HANDED_OUT, answer]), HANDED_OUT, *2 * [["double"]]) == {1, 2, 3, 4, 5, 6, 7} - run
    assert unneeded_cells(cells_of([*HANDED_OUT, answer]), [], ["double"]) == set()


def test_a_cell_tells_what_it_printed_and_how_it_failed() -> None:
    cells = [
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('\\x1b[31m\\ud800')\nanswer = 42",
        "x = 1\ny = x / 0",
        "check(answer)\nfrom lmcourse.notebook import check",
        "def f(:",
        "",
        f"print('a' * {KEPT_CELL_PRINTED_CHARS + 1})",
        "from lmcourse.notebook import check",
        "check(answer)",
    ]
    runs = examined(cells, [answering()], launcher=ForkLauncher()).cells
    assert [run.run for run in runs] == [True, True, True, False, False, True, True, False]
    assert runs[0].printed == "out\nerr\n [31m?\n"
    assert runs[1].failure == "ZeroDivisionError: division by zero, in line 2: `y = x / 0`"
    assert runs[3].failure.startswith("SyntaxError: ")
    assert [runs[4].failure, runs[5].printed, runs[7].failure] == ["", "a" * KEPT_CELL_PRINTED_CHARS, ""]


def test_a_cell_that_prints_without_end_is_ended() -> None:
    """And it costs neither memory nor the other cells."""
    found = examined(["while True:\n    print('x' * 100_000)", "answer = 42"], [answering()], launcher=ForkLauncher())
    assert found.reports["answer"].points == 1
    assert f"printed more than {MAX_CELL_PRINTED_CHARS:,} characters" in found.cells[0].failure
    assert [(one.kind, one.source) for one in found.evidence] == [("flood", "seen")]
    printed = PrintedText()
    for _ in range(100):
        printed.write("x" * (MAX_CELL_PRINTED_CHARS // 100))
    with pytest.raises(TooMuchPrintedError):
        printed.write("x")
    assert len(printed.getvalue()) == KEPT_CELL_PRINTED_CHARS


@pytest.mark.parametrize(
    "change",
    [{"printed": "x" * (KEPT_CELL_PRINTED_CHARS + 1)}, {"printed": 3}, {"flooded": 1}, {"failure": "x"}, {"points": 2}],
)
def test_what_is_said_of_a_cell_is_checked(change: dict[str, object]) -> None:
    with pytest.raises(ProtocolError):
        cell_from_plain({"printed": "", "flooded": False, "failure": None} | change)


def test_data_files_lie_in_the_working_folder_of_each_process(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("4")
    (tmp_path / "two.txt").write_text("2")
    text = "answer = int(open('corpus/a.txt').read() + open('two.txt').read())\nopen('two.txt', 'w').write('3')"
    launcher = PlainLauncher(data=(tmp_path / "corpus", tmp_path / "two.txt"))
    assert [reports_of([text], [answering()], launcher=launcher)["answer"].points for _ in range(2)] == [1, 1]
    assert (tmp_path / "two.txt").read_text() == "2"


MISSING = {
    "its cell fails": ("y = 1 / 0\ndef double(x):\n    return x", r"code cell 2 ended with ZeroDivisionError.*line 1"),
    "no Python": ("def double(x):\nreturn x", r"code cell 2 ended with (Indentation|Syntax)Error"),
    "renamed": ("def doubel(x):\n    return x", "is it the `doubel` of this notebook"),
    "another's name": ("def Counter(x):\n    return x", "is gone or empty"),
    "deleted": ("def double(x):\n    return x\ndel double", "is gone or empty"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_answer_has_a_reason_to_act_on(name: str) -> None:
    text, says = MISSING[name]
    report = reports_of(["import torch", text], [doubling(), counting()], launcher=ForkLauncher())["double"]
    assert report.points == 0
    assert report.diagnosis.startswith("name 'double' is not defined: ")
    assert re.search(says, report.diagnosis)


def test_a_name_that_an_answer_lacks_inside_is_told() -> None:
    report = reports_of(["def double(x):\n    return twice(x)"], [doubling()], launcher=ForkLauncher())["double"]
    assert "it raises NameError" in str(report)
    assert report.diagnosis == "`double` uses `twice`, which no cell defines any more."


def test_no_process_is_started_after_the_time_is_over() -> None:
    """Each of a hundred exercises would otherwise cost one."""
    started = []

    class Counted(ForkedProcess):
        def __init__(self, process: int) -> None:
            super().__init__(process)
            started.append(process)

    exercises = [doubling(), counting(), answering()]
    found = examined(["while True: pass"], exercises, launcher=ForkLauncher(Counted), timeouts=Timeouts(total=1.0))
    assert len(started) == 1
    assert all("the notebook ran longer than 1 s in all" in report.diagnosis for report in found.reports.values())
    assert "the notebook ran longer than 1 s in all" in found.problem
    assert found.evidence == ()
