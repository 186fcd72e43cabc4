"""What notebook 12 says of a learner's own parts: each slip is named at the sub-layer where it first shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from torch import Tensor

from lmcourse.collect import load_parts
from lmcourse.course import find_chapter
from lmcourse.parity.first_difference import first_difference
from lmcourse.parity.parts import COURSE_PARTS

ATTENTION = """def grouped_query_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True{})"""
ROPE = """def rope(x, positions, base=10_000.0):
    d = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    first, second = {}
    turned = first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()
    return {}"""
NORM = """def rms_norm(x, scale, eps=1e-6):
    return {} * scale"""

NEIGHBOURS = ("x[..., ::2], x[..., 1::2]", "torch.stack(turned, dim=-1).flatten(-2)")
HALVES = ("x.chunk(2, dim=-1)", "torch.cat(turned, dim=-1)")
MEAN_SQUARE = "x.square().mean(-1, keepdim=True)"

RIGHT = {
    "grouped_query_attention": ATTENTION.format(", is_causal=True"),
    "rope": ROPE.format(*NEIGHBOURS),
    "rms_norm": NORM.format(f"x * ({MEAN_SQUARE} + eps).rsqrt()"),
}
NAMED = {"08": "grouped_query_attention", "09": "rope", "10": "rms_norm"}


@pytest.fixture(scope="module")
def model_and_text(course: Path) -> tuple[Any, Tensor]:
    """The small model that the notebook compares with, and its text: by the notebook's own cell."""
    notebook = nbformat.read(course / "solutions" / "12-transformer" / "transformer.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    names: dict[str, Any] = {}
    exec(next(cell for cell in cells if "\nstart(" in cell).partition("start(")[0], names)
    exec(next(cell for cell in cells if "small_config = " in cell).partition("def own_logits")[0], names)
    return names["small"], names["sample"]


@pytest.fixture
def say(tmp_path: Path, model_and_text: tuple[Any, Tensor]) -> Callable[[dict[str, str]], str]:
    """What the notebook says if somebody's notebooks 08 to 10 have these answers."""

    def said(answers: dict[str, str]) -> str:
        (tmp_path / "nbgrader_config.py").touch()
        for number, name in NAMED.items():
            chapter = find_chapter(number)
            text = f"import torch\nimport torch.nn.functional as F\n\n{answers[name]}"
            marks = {"grade_id": name, "grade": False, "solution": True, "locked": False, "schema_version": 3}
            cell = nbformat.v4.new_code_cell(text, metadata={"nbgrader": marks})
            path = tmp_path / "notebooks" / chapter.id / f"{chapter.topic}.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
        loaded = load_parts(list(NAMED.values()), tmp_path)
        assert not any(part.lent for part in loaded), [part.lent for part in loaded]
        return str(first_difference({**COURSE_PARTS, **{one.name: one.function for one in loaded}}, *model_and_text))

    return said


def test_right_parts_do_not_differ(say: Callable[[dict[str, str]], str]) -> None:
    assert say(RIGHT) == "None"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"grouped_query_attention": ATTENTION.format("")}, "block 0, attention: `grouped_query_attention` differs"),
        ({"rope": ROPE.format(*HALVES)}, "block 0, rotary embedding: `rope` differs"),
        ({"rms_norm": NORM.format(f"x * {MEAN_SQUARE}.rsqrt()")}, "block 0, norm before attention: `rms_norm` differs"),
        (
            {"rms_norm": NORM.format("(x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + eps).rsqrt()")},
            "block 0, norm before attention: `rms_norm` differs",
        ),
        (
            {"rms_norm": RIGHT["rms_norm"].replace(" * scale", "")},
            "block 0, norm before attention: `rms_norm` differs",
        ),
    ],
    ids=["no mask", "halves", "no eps", "with the mean", "no scale"],
)
def test_the_first_that_differs_is_named(
    wrong: dict[str, str], said: str, say: Callable[[dict[str, str]], str]
) -> None:
    assert say({**RIGHT, **wrong}).startswith(said)
