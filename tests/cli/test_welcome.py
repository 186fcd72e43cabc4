"""The welcome page has a correct map, example and progress, and JupyterLab trusts it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from lmcourse.course.chapters import CHAPTERS
from lmcourse.exercises import check_exercise
from lmcourse.exercises.registry import find_exercise
from lmcourse.jupyter import welcome


@pytest.fixture
def notebooks(course: Path, tmp_path: Path) -> Path:
    """A learner's copy of the first notebook."""
    shutil.copytree(course / "notebooks" / CHAPTERS[0].id, tmp_path / "notebooks" / CHAPTERS[0].id)
    return tmp_path / "notebooks"


def test_the_welcome_page_is_a_valid_trusted_notebook(notebooks: Path) -> None:
    path = welcome.write_welcome(notebooks)
    assert path == notebooks / "welcome.ipynb"
    page = nbformat.read(path, as_version=4)
    nbformat.validate(page)
    assert NotebookNotary().check_signature(page)
    assert [item.name for item in notebooks.iterdir() if item.name.startswith(".welcome")] == []


def test_the_table_shows_every_notebook_and_each_link_leads_somewhere(course: Path) -> None:
    notebooks = course / "notebooks"
    table = welcome.progress_table(notebooks)
    for chapter in CHAPTERS:
        assert re.search(rf">{chapter.number} &nbsp; <a [^>]*>{re.escape(chapter.title)}</a>", table._repr_html_())
    ids = {path: path.read_text(encoding="utf-8") for path in notebooks.glob("*/*.ipynb")}
    links = re.findall(r'href="(.+?)"', table._repr_html_())
    links += re.findall(r"\]\((.+?)\)", welcome.ways_through(table.progress))
    assert len(links) > len(CHAPTERS) + sum(len(notebook.exercises) for notebook in table.progress.notebooks)
    for file, _, cell in (link.partition("#cell-id=") for link in links):
        assert f'"id": "{cell}"' in ids[notebooks / file] if cell else notebooks / file in ids


def test_the_table_says_where_to_begin(notebooks: Path, tmp_path: Path) -> None:
    shown = welcome.progress_table(notebooks)._repr_html_()
    assert 'Begin with <a href="01-floating-point/floating_point.ipynb">notebook 01</a>.' in shown
    assert "There are no notebooks here yet." in welcome.progress_table(tmp_path / "empty")._repr_html_()


def test_the_example_is_a_report_of_the_course() -> None:
    exercise = find_exercise("tensor_bytes")
    [wrong] = [item for item in exercise.misconceptions if item.sentence in " ".join(welcome.EXAMPLE.split())]
    assert str(check_exercise(exercise, wrong.answer, enforce=False)) == welcome.EXAMPLE


def test_the_progress_cell_prints_the_shown_table(notebooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = welcome.welcome(notebooks)
    [cell] = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(notebooks)  # JupyterLab runs the page in this folder
    names: dict[str, object] = {}
    exec(cell["source"].replace("progress_table()", "shown = progress_table()"), names)
    assert cell["outputs"][0]["data"]["text/plain"] == repr(names["shown"])
    assert cell["outputs"][0]["data"]["text/html"] == names["shown"]._repr_html_()  # type: ignore[attr-defined]


def test_a_broken_notebook_is_named_and_its_name_is_harmless(tmp_path: Path) -> None:
    folder = tmp_path / "<b>" / CHAPTERS[0].id
    folder.mkdir(parents=True)
    (folder / f"{CHAPTERS[0].topic}.ipynb").write_text("{")
    shown = welcome.progress_table(tmp_path / "<b>")
    assert "cannot be read" in repr(shown)
    assert "<b>/" not in shown._repr_html_()


def test_an_old_page_stays_when_the_new_one_cannot_be_written(notebooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = welcome.write_welcome(notebooks)
    before = path.read_bytes()
    monkeypatch.setattr(welcome, "welcome", lambda folder: {"cells": object()})
    monkeypatch.setattr(welcome, "_sign", lambda page: None)
    with pytest.raises(TypeError):
        welcome.write_welcome(notebooks)
    assert path.read_bytes() == before
    assert [item.name for item in notebooks.iterdir() if item.name.startswith(".welcome")] == []
