"""Parts for another notebook are the learner's if they exist and run, otherwise the course's, with the reason."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import torch

from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import find_exercise
from lmcourse.models.parity.difference import COMPARED, find_difference
from lmcourse.models.parity.parts import COURSE_PARTS
from lmcourse.own_package import load_parts
from lmcourse.own_package.modules import PARTS
from lmcourse.pretrained import load_pretrained

MINE = """def rms_norm(x, scale, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (helper(wide, eps) * scale).to(x.dtype)"""
HELPER = """def helper(x, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()"""
ANSWERS = {
    "rms_norm": MINE,
    "rope": "def rope(x, positions, speeds):\n    return 7 * x",
    "grouped_query_attention": "def grouped_query_attention(q, k, v):\n    return nowhere(q)",
    "glu_ffn": "def glu_ffn(x, w_gate, w_value, w_down, kind=1 / 0):\n    return x",
}


@pytest.fixture(scope="module")
def root(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder with four answers, without one to `block`, and a notebook 12 without `self_attention`."""
    root = tmp_path_factory.mktemp("own")
    (root / "nbgrader_config.py").touch()
    for number in ("08", "09", "10", "11", "12"):
        chapter = find_chapter(number)
        notebook = nbformat.read(course / "notebooks" / chapter.id / f"{chapter.topic}.ipynb", as_version=4)
        for index, cell in reversed(list(enumerate(notebook.cells))):
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name.endswith("self_attention"):
                del notebook.cells[index]
            if name in ANSWERS:
                cell.source = ANSWERS[name]
                if name == "rms_norm":
                    notebook.cells.insert(index, nbformat.v4.new_code_cell(HELPER))
        path = root / "notebooks" / chapter.id / f"{chapter.topic}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(notebook, path)
    return root


def test_each_part_is_labelled_as_the_learners_or_the_courses(root: Path) -> None:
    parts = load_parts([*ANSWERS, "block", "self_attention", "head_effect"], root)
    assert [str(part) for part in parts] == [
        "rms_norm: yours, from notebook 10",
        "rope: the course's version: yours does not pass its check yet",
        "grouped_query_attention: the course's version: it needs `nowhere`, which no cell above it defines",
        "glu_ffn: the course's version: yours does not run: ZeroDivisionError",
        "block: the course's version: you have not written it yet, in notebook 10",
        "self_attention: the course's version: it is not in this release of notebook 12",
        "head_effect: the course's version: you have not written it yet, in notebook 08",
    ]
    lent = {**COURSE_PARTS, "head_effect": find_exercise("head_effect").course_answer}
    assert [part.function for part in parts if part.reason] == [lent[part.name] for part in parts if part.reason]


def test_loaded_parts_run_as_the_course_model_does(root: Path) -> None:
    parts = {part.name: part.function for part in load_parts([*COURSE_PARTS], root)}
    assert parts["rms_norm"].__globals__["helper"]
    assert find_difference(parts, load_pretrained().model, torch.arange(10)[None]) is None


def test_notebook_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").touch()
    (tmp_path / "notebooks").mkdir()
    assert [str(part) for part in load_parts(["rope"], tmp_path)] == [
        "rope: the course's version: notebook 09 is not there"
    ]


def test_every_part_can_be_compared_and_all_but_the_ends_replaced() -> None:
    assert PARTS.keys() <= {*COMPARED}
    assert PARTS.keys() - COURSE_PARTS.keys() == {"decoder", "causal_lm_loss"}
