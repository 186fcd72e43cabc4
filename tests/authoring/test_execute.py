"""Executed notebooks contain nothing that differs between runs, and failures are reported with their line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.authoring import execute as module
from lmcourse.authoring.document import document
from lmcourse.authoring.execute import WIDGET_MIME, execute
from lmcourse.base.errors import CourseError
from tests.authoring.tiny import TINY, source_of

pytestmark = pytest.mark.prove


def run(cells: Sequence[str], folder: Path, stored: NotebookNode | None = None) -> NotebookNode:
    """Return an executed notebook of these cells. Cell i starts at line 1 + 3 · i."""
    source = source_of("".join(f"# %%{cell}\n\n" for cell in cells), folder)
    notebook = document(source, TINY)
    execute(notebook, source, stored)
    return notebook


def complaints(cells: Sequence[str], folder: Path) -> list[str]:
    with pytest.raises(CourseError) as told:
        run(cells, folder)
    return str(told.value).split("\n")


def test_outputs_are_kept_without_traces_of_the_machine(tmp_path: Path) -> None:
    notebook = run(
        ["\nprint('a')\n'b'", "\nimport os; os.environ['PYTHONSAFEPATH']", "\nx = 0x3F800000; hex(x)"], tmp_path
    )
    stream, result = notebook.cells[0].outputs
    assert (stream.text, result.data["text/plain"]) == ("a\n", "'b'")
    assert notebook.cells[1].outputs[0].data["text/plain"] == "'1'"
    # a bit pattern does not count as an address
    assert notebook.cells[2].outputs[0].data["text/plain"] == "'0x3f800000'"
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3]
    assert notebook.metadata == document(source_of("", tmp_path), TINY).metadata
    assert all(not {**cell.metadata}.keys() - {"lmcourse"} for cell in notebook.cells)


def test_widgets_are_numbered_in_the_order_of_the_page(tmp_path: Path) -> None:
    notebook = run(["\nimport ipywidgets as w; s = w.IntSlider(); s", "\n'none'", "\nw.VBox([s])"], tmp_path)
    views = [output.data.get(WIDGET_MIME, {}) for cell in notebook.cells for output in cell.outputs]
    assert [view.get("model_id") for view in views] == ["widget-1", None, "widget-2"]
    assert "widgets" not in notebook.metadata


def test_slow_prints_become_one_output(tmp_path: Path) -> None:
    cell = "\nimport time\nfor word in 'one', 'two', 'three':\n    print(word, flush=True); time.sleep(0.3)"
    assert [output.text for output in run([cell], tmp_path).cells[0].outputs] == ["one\ntwo\nthree\n"]


def test_a_cell_that_raises_is_reported_with_its_line_and_ends_the_run(tmp_path: Path) -> None:
    cells = ["\n1", "\nraise ValueError('no')", "\nraise KeyError"]
    assert complaints(cells, tmp_path) == [f"{tmp_path / 'some.py'}:4: the cell raises ValueError: no"]


def test_a_cell_may_raise_on_purpose(tmp_path: Path) -> None:
    notebook = run([' tags=["raises-exception"]\n1 / 0', "\n2"], tmp_path)
    assert notebook.cells[0].outputs[0].ename == "ZeroDivisionError"
    assert notebook.cells[1].outputs[0].data["text/plain"] == "2"


def test_all_unstable_outputs_are_reported_together(tmp_path: Path) -> None:
    cells = [
        "\nobject()",
        "\nimport sys; print('careful', file=sys.stderr)",
        "\nimport os; os.getcwd()",
        "\nprint('see /home/ada/course')",
        "\nsys.prefix + '/lib'",
        "\nimport lmcourse; print(lmcourse.__file__)",
        "\nfrom IPython.display import HTML; HTML('<b>/Users/ada/x</b>')",
        "\nimport warnings; warnings.warn('old')",
        "\nprint('C:' + chr(92) + 'Users')",
        "\n'the root / and /usr are everywhere'",
    ]
    lines = complaints(cells, tmp_path)
    places = [line.split(": ")[0] for line in lines if line.startswith(str(tmp_path))]
    assert places == [f"{tmp_path / 'some.py'}:{1 + 3 * place}" for place in range(9)]
    told = [line.split(": the cell ")[1] for line in lines if ": the cell " in line]
    assert told[0].startswith("shows a memory address: at 0x")
    assert told[1] == "writes to stderr: careful"
    assert [
        text for place in (2, 3, 4, 5, 6, 8) for text in [told[place]] if "shows a path of this machine" not in text
    ] == []
    assert told[3] == "shows a path of this machine: /home/ada/course"
    assert "UserWarning: old" in "\n".join(lines)


def test_paths_of_the_course_folder_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ABSOLUTE_PATH", re.compile("(?!)"))
    cells = ["\nimport sys; sys.prefix", "\nimport os; os.getcwd()", "\nimport lmcourse; lmcourse.__file__"]
    assert [line.split(": ", 1)[1] for line in complaints(cells, tmp_path)] == [
        "the cell shows a path of this machine"
    ] * 3


@pytest.mark.parametrize(
    ("cell", "told"),
    [("import os; os._exit(1)", "the cell ended Python itself"), ("while True: pass", "the cell runs longer than 2 s")],
)
def test_a_cell_that_ends_or_hangs_is_reported(
    cell: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CELL_TIMEOUT_SECONDS", 2)
    assert complaints(["\n1", f"\n{cell}"], tmp_path) == [f"{tmp_path / 'some.py'}:4: {told}"]


def test_files_next_to_the_source_and_profiles_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('I shadow a module')")
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("print('hello'); started = True")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = run(["\nimport colorsys", "\n'started' in globals()"], tmp_path)
    assert notebook.cells[1].outputs[0].data["text/plain"] == "False"


CLOCK = ' tags=["nbval-ignore-output", "because it shows the time"]\nimport time; time.time_ns()'
CELLS = ["\nimport random; random.seed(3)", "\nprint(random.random())", CLOCK, "\nrandom.random()"]


def outputs(notebook: NotebookNode) -> list[Any]:
    return [(cell.outputs, cell.execution_count) for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    return run(CELLS, tmp_path_factory.mktemp("stored"))


def copied(notebook: NotebookNode) -> NotebookNode:
    return nbformat.reads(nbformat.writes(notebook), as_version=4)


def test_no_kernel_is_started_unless_code_changed(
    stored: NotebookNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_run", lambda notebook, source: pytest.fail("a kernel is started"))
    text = " [markdown]\n# Text"
    assert outputs(run([text, *CELLS[:2], text, *CELLS[2:]], tmp_path, stored)) == outputs(stored)
    assert outputs(run(CELLS[:3], tmp_path, stored)) == outputs(stored)[:3]


def test_cells_above_the_changed_code_keep_their_outputs(stored: NotebookNode, tmp_path: Path) -> None:
    found = run([*CELLS[:3], "\n[random.random()]"], tmp_path, copied(stored))
    assert outputs(found)[:3] == outputs(stored)[:3]
    # the cells above were run, so the random number is the second one
    assert found.cells[3].outputs[0].data["text/plain"] == f"[{stored.cells[3].outputs[0].data['text/plain']}]"
    found = run(["\nimport random; random.seed(4)", *CELLS[1:]], tmp_path, copied(stored))
    assert all(new != old for new, old in zip(outputs(found)[1:], outputs(stored)[1:], strict=True))


def test_if_the_package_changed_all_outputs_are_new(stored: NotebookNode, tmp_path: Path) -> None:
    old = copied(stored)
    old.cells[1].outputs[0].text = "what an earlier version printed\n"
    found = run([*CELLS[:3], "\n0"], tmp_path, old)
    assert outputs(found)[1] == outputs(stored)[1]
    assert outputs(found)[2] != outputs(stored)[2]


def test_a_cell_that_never_ran_is_run(stored: NotebookNode, tmp_path: Path) -> None:
    old = copied(stored)
    old.cells[1].update(outputs=[], execution_count=None)
    assert outputs(run(CELLS, tmp_path, old))[1] == outputs(stored)[1]
