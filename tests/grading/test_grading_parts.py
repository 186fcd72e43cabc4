"""The parts of grading one by one, where a whole class would hide which of two locks holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode, v3
from nbformat.v4 import new_code_cell, new_notebook

from lmcourse.exercises import Exercise, case, check_exercise
from lmcourse.grading import environment
from lmcourse.grading.config import configure
from lmcourse.grading.environment import kernel_environment, run_seed
from lmcourse.grading.intake import files
from lmcourse.grading.intake.files import UnreadableError
from lmcourse.grading.intake.notebook import read_notebook
from lmcourse.grading.pages.hide_tests import without_hidden
from lmcourse.grading.pages.html import clean_html
from lmcourse.grading.preprocessors import run_notebook
from lmcourse.grading.preprocessors.run_notebook import RunNotebook
from lmcourse.grading.reports import read_report

DOUBLE = Exercise(
    "double",
    points=2,
    minutes=1,
    difficulty=1,
    reference=lambda x: 2 * x,
    cases=[case("two", 2)],
    hidden_cases=lambda random: [case("large", random.randrange(10**6, 10**7))],
)


def ran(folder: Path, *cells: str, **settings: Any) -> NotebookNode:
    """A notebook run in a folder, as grading runs it."""
    nb = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    about = {"nbgrader": {}, "metadata": {"path": str(folder)}}
    return RunNotebook(shutdown_kernel="immediate", **settings).preprocess(nb, about)[0]


def text(nb: NotebookNode) -> list[str]:
    return ["".join(output.get("text", output.get("evalue", "")) for output in cell.outputs) for cell in nb.cells]


def test_nothing_beside_the_notebook_or_at_home_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, home = tmp_path / "beside", tmp_path / "home"
    startup = home / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    beside.mkdir()
    stolen = "import builtins; builtins.STOLEN = __name__"
    for name in ("colorsys", "ipykernel_launcher", "pathlib", "sitecustomize", "usercustomize", "ipython_config"):
        (beside / f"{name}.py").write_text(stolen)
    (startup / "00.py").write_text(stolen)
    (home / "start.py").write_text(stolen)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONSTARTUP", str(home / "start.py"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", os.environ.get("PYTHONPATH", ""), ""]))
    monkeypatch.delenv("IPYTHONDIR", raising=False)
    show = "import builtins, colorsys, sys; print(getattr(builtins, 'STOLEN', None), '' in sys.path)"
    assert text(ran(beside, show)) == ["None False\n"]


def test_a_kernel_gets_absolute_paths_and_a_profile_of_its_own(tmp_path: Path) -> None:
    given = {"PYTHONPATH": os.pathsep.join(["", ".", "/opt/lib"]), "PYTHONSTARTUP": "x.py", "KEPT": "1"}
    made = kernel_environment(tmp_path, 5, given)
    assert made["PYTHONPATH"] == os.pathsep.join([str(Path.cwd()), "/opt/lib"])
    assert (made["IPYTHONDIR"], made[environment.SEED], made["KEPT"]) == (str(tmp_path), "5", "1")
    assert "PYTHONSTARTUP" not in made
    assert "PYTHONPATH" not in kernel_environment(tmp_path, base={})


def test_the_seed_is_given_or_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.SEED, "12")
    assert run_seed.__wrapped__() == 12
    monkeypatch.delenv(environment.SEED)
    assert len({run_seed.__wrapped__() for _ in range(5)}) == 5


def test_a_notebook_that_takes_too_long_in_all_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 0, 2])  # at the start, and before each cell
    monkeypatch.setattr(run_notebook, "monotonic", lambda: next(clock))
    nb = ran(tmp_path, "print('first')", "print('second')", total_timeout=1)
    assert text(nb) == ["first\n", ""]
    assert "longer than 1 s in all" in nb.metadata["lmcourse"]["problem"]


def test_a_real_report_is_read_as_it_is() -> None:
    for hidden in (False, True):
        report = check_exercise(DOUBLE, lambda x: x + 2, hidden=hidden)
        again = read_report(json.loads(json.dumps(report.to_json())))
        assert again == report


def test_a_report_on_hidden_cases_tells_only_their_categories() -> None:
    data = check_exercise(DOUBLE, lambda x: x + 2, hidden=True).to_json()
    data["notes"] = ["It printed: 1234567"]
    data["cases"][-1] |= {"call": "double(1234567)", "message": "expected 2469134"}
    report = read_report(data)
    assert report is not None
    assert "1234567" not in str(report)
    assert "2469134" not in report._repr_html_()


@pytest.mark.parametrize(
    "change",
    [
        {"points": "2"},
        {"points": float("nan")},
        {"points": True},
        {"max_points": 2.5},
        {"exercise": ["double"]},
        {"exercise": "x" * 5000},
        {"cases": [1]},
        {"cases": [{"name": "a"}]},
        {"notes": [{}]},
        {"to_come": "other"},
        {"answered": None},
        {"extra": 1},
        {"points": -1},
        {"points": 3},
        {"points": 10**400, "max_points": 10**400},
        {"diagnosis": "half a character: \ud800"},
        {"notes": ["x" * 1000] * 100},
    ],
)
def test_what_is_not_a_report_is_none(change: dict[str, Any]) -> None:
    data = check_exercise(DOUBLE, lambda x: x).to_json()
    assert read_report(data) is not None
    assert read_report(data | change) is None


@pytest.mark.parametrize("data", [None, [], "text", {}, {"cases": 3}])
def test_nor_is_anything_else(data: Any) -> None:
    assert read_report(data) is None


@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ("<b>bold</b>", "<b>bold</b>"),
        ("a<script>alert(1)</script>", "aalert(1)"),
        ("<img src=x onerror=alert(1)>", "<img>"),
        ("<img src='https://example.org/seen.png'>", "<img>"),
        ('<img src="data:image/png;base64,AAAA">', '<img src="data:image/png;base64,AAAA">'),
        ('<img src="data:image/svg+xml;base64,AAAA">', "<img>"),
        ("<a href='javascript:alert(1)'>x</a>", "<a>x</a>"),
        ("<a href='data:text/html,<b>'>x</a>", '<a href="#">x</a>'),
        ("<a href='https://example.org'>x</a>", '<a href="https://example.org">x</a>'),
        ('<div style="position: fixed; color: red">x</div>', '<div style="color: red;">x</div>'),
        ("<iframe srcdoc='x'></iframe><form action=x><input></form>x", "\nx"),
        ("<svg onload=alert(1)><style>*{}</style></svg>", "*{}"),
    ],
)
def test_html_keeps_what_is_harmless(html: str, clean: str) -> None:
    assert clean_html(html) == clean


def test_hidden_regions_go_even_if_they_never_end() -> None:
    source = "a\n### BEGIN HIDDEN TESTS\nb\n### END HIDDEN TESTS\nc\n# BEGIN HIDDEN TESTS\nd"
    assert without_hidden(source) == "a\nc"


def test_old_formats_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    old = v3.new_notebook(worksheets=[v3.new_worksheet(cells=[v3.new_code_cell("1 + 1")])])
    path = tmp_path / "old.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + v3.writes_json(old).encode())
    assert [cell.source for cell in read_notebook(path).cells] == ["1 + 1"]


def test_an_enormous_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    path = tmp_path / "big.ipynb"
    path.write_text("{" + " " * 20 + "}")
    with pytest.raises(UnreadableError, match="clear its outputs"):
        read_notebook(path)


def test_nested_too_deep_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "deep.ipynb"
    path.write_text("[" * 100_000)
    with pytest.raises(UnreadableError, match="open it in JupyterLab"):
        read_notebook(path)


def test_nbgrader_finds_alembic_where_no_environment_is_active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from traitlets.config import Config

    monkeypatch.setenv("PATH", str(tmp_path))
    configure(Config(), tmp_path)
    assert shutil.which("alembic")
