"""Test a document's cells: stable ids, nbgrader's metadata, collapsed cells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from lmcourse.authoring.document import RUN_FIRST, SKIPPED, WITHOUT_THE_PACKAGE, document, dumps, load_notebook
from tests.authoring.tiny import SOURCE, TINY, source_of


def made(text: str, folder: Path) -> NotebookNode:
    return document(source_of(text, folder), TINY)


def ids(notebook: NotebookNode) -> list[str]:
    return [cell.id for cell in notebook.cells]


def test_the_document_is_a_valid_notebook_and_always_the_same(tmp_path: Path) -> None:
    notebook = made(SOURCE, tmp_path)
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells][:4] == ["markdown", "code", "markdown", "code"]
    assert dumps(notebook) == dumps(made(SOURCE, tmp_path))
    assert len(set(ids(notebook))) == len(notebook.cells)


def test_inserting_a_cell_changes_no_other_id(tmp_path: Path) -> None:
    before = ids(made(SOURCE, tmp_path))
    for place in ("# %%\nimport", '# %% exercise="double"', '# %% tags=["hide-input"]'):
        after = ids(made(SOURCE.replace(place, f"# %%\n'a new cell'\n\n{place}"), tmp_path))
        assert [name for name in after if name in before] == before
        assert len(after) == len(before) + 1


def test_rewriting_an_answer_changes_no_id(tmp_path: Path) -> None:
    assert ids(made(SOURCE.replace("x + x", "2 * x"), tmp_path)) == ids(made(SOURCE, tmp_path))


def test_two_equal_cells_have_different_ids(tmp_path: Path) -> None:
    names = ids(made("# %%\n1\n# %%\n1\n# %% [markdown]\n# 1\n# %%\n1", tmp_path))
    assert len(set(names)) == 4
    assert names[1:] == [f"{names[0]}-2", names[2], f"{names[0]}-3"]


def test_cells_have_nbgraders_metadata(tmp_path: Path) -> None:
    cells = {cell.id: cell.metadata.get("nbgrader") for cell in made(SOURCE, tmp_path).cells}
    marks = {"schema_version": 3, "task": False}
    assert cells["double"] == marks | {"grade_id": "double", "grade": False, "solution": True, "locked": False}
    checked = marks | {"grade": True, "solution": False, "locked": True}
    assert cells["check_double"] == checked | {"grade_id": "check_double", "points": 2}
    assert cells["check_half"] == checked | {"grade_id": "check_half", "points": 1}
    assert sum(said is not None for said in cells.values()) == 4


def test_a_folded_cell_is_collapsed_and_keeps_its_tag(tmp_path: Path) -> None:
    *others, folded = made(SOURCE, tmp_path).cells
    assert folded.metadata == {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "lmcourse": SKIPPED}
    assert all("jupyter" not in cell.metadata and "tags" not in cell.metadata for cell in others)


def test_metadata_has_no_traces_of_machine_or_jupytext(tmp_path: Path) -> None:
    metadata = made(SOURCE, tmp_path).metadata
    assert metadata.lmcourse == {"chapter": TINY.id}
    assert set(metadata) == {"kernelspec", "language_info", "lmcourse"}
    assert "version" not in metadata.language_info


def test_a_file_that_is_not_a_notebook_loads_as_none(tmp_path: Path) -> None:
    path = tmp_path / "some.ipynb"
    assert load_notebook(path) is None
    empty = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    without_source = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
    half = [json.dumps(empty | {"cells": [cell]}) for cell in ({}, without_source)]
    for text in ("", "no json", "[]", "null", "{}", *half):
        path.write_text(text)
        assert load_notebook(path) is None, text
    path.write_bytes(b"\xff")
    assert load_notebook(path) is None
    path.write_text(dumps(made(SOURCE, tmp_path)))
    assert load_notebook(path) == made(SOURCE, tmp_path)


def test_only_the_cell_that_starts_a_notebook_looks_for_the_package(tmp_path: Path) -> None:
    """If the package is missing, the cell says what to run, before it imports from the package or its dependencies."""
    started = made(SOURCE.replace("# %%\nimport", '# %%\nstart("00-tiny")\nimport', 1), tmp_path)
    places = [n for n, cell in enumerate(started.cells) if cell.source.startswith(RUN_FIRST + WITHOUT_THE_PACKAGE)]
    assert places == [1]
    assert started.cells[1].metadata["jupyter"] == {"source_hidden": True}
    assert ids(started)[2:] == ids(made(SOURCE, tmp_path))[2:]


@pytest.mark.prove
def test_a_notebook_without_the_package_names_the_install_command(tmp_path: Path) -> None:
    found = partial(subprocess.run, [sys.executable, "-S", "-c", WITHOUT_THE_PACKAGE], cwd=tmp_path)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = found(env=alone, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1].endswith("%pip install 'lmcourse[course]'")
    (tmp_path / "lmcourse.py").touch()
    found(env=alone, check=True)
