"""Texts of cells that take a reader of Python long, or deep; and notebooks whose fields are not what they should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.cells import new_code_cell
from tests.grading.attacks.attack import attack, is_answer

DEEP_TEXTS = {
    "a chain of elif": "if 0: pass\n" + "elif 0: pass\n" * 1_500,
    "a chain of comparisons": "0" + " < 0" * 2_000,
    "texts side by side": "x = (" + "'a' " * 2_000 + ")",
    "nested functions": "".join(f"{' ' * depth}def f():\n" for depth in range(95)) + " " * 95 + "pass",
    "nested lambdas": "x = " + "lambda: " * 3_000 + "0",
    "nested comprehensions": "x = " + "[" * 150 + "0" + " for a in b]" * 150,
    "a long attribute": "x = a" + ".a" * 6_000,
    "a chain of calls": "x = a" + "()" * 6_000,
    "a chain of not": "x = " + "not " * 2_000 + "0",
    "a chain of minus": "x = " + "-" * 9_000 + "0",
    "a chain of sums": "x = 0" + " + 0" * 2_000,
    "nested texts": "x = " + "f'{" * 2 + "0" + "}'" * 2,
    "decorators": "@f\n" * 4_000 + "def g(): pass",
    "many cases": "match 0:\n" + "    case 0: pass\n" * 1_000,
    "many with": "with " + ", ".join(["f()"] * 3_000) + ": pass",
    "a long number": "x = " + "9" * 9_000,
    "a large power": "x = 9 ** 9 ** 9 ** 9",
    "many names": "\n".join(f"x{number} = {number}" for number in range(2_000)),
    "a wide line": "x = [" + "0, " * 6_000 + "]",
    "blanks": " " * 9_000 + "x",
    "question marks": "\n".join(["x" * 5_000 + "?" * 5_000]),
    "global statements": "def f():\n" + "    global x\n" * 1_000,
}
"""Each is a cell of its own."""


def _deep(nb: NotebookNode) -> None:
    nb.cells[1:1] = [new_code_cell(text) for text in DEEP_TEXTS.values()]


def _one_deep(name: str) -> Callable[[NotebookNode], None]:
    return lambda nb: nb.cells.insert(1, new_code_cell(DEEP_TEXTS[name]))


def _helpers(nb: NotebookNode) -> None:
    """Answers that lead to thousands of helpers, each by names that are imported in hundreds of ways."""
    text = "".join(f"def h{number}(): return h{number + 1}() + math.pi\n" for number in range(1500))
    imports = "".join(f"from m{number} import math\n" for number in range(300))
    nb.cells[1:1] = [new_code_cell(text), new_code_cell(f"try:\n    pass\nexcept: pass\nif 0:\n    {imports.strip()}")]
    nb.cells.insert(1, new_code_cell(imports))


STRANGE_VALUES: tuple[Any, ...] = (None, -1, 1e308, True, "", "x" * 100_000, [], {}, [[]], {"": None})


def _strange_fields(nb: NotebookNode) -> None:
    """Metadata, ids and outputs that no notebook has."""
    for number, cell in enumerate(nb.cells):
        value = STRANGE_VALUES[number % len(STRANGE_VALUES)]
        cell["id"] = "../" * 20 if number % 2 else "same"
        cell["execution_count"] = value
        cell.metadata["tags"], cell.metadata["name"], cell.metadata["lmcourse"] = value, value, value
        cell.metadata["__class__"] = cell.metadata["constructor"] = value
        if "nbgrader" in cell.metadata and not is_answer(cell):
            cell.metadata.nbgrader |= {"points": value, "schema_version": value, "checksum": value}
        cell["attachments"] = value
        if cell.cell_type == "code":
            cell["outputs"] = [{"output_type": value, "data": value, "text": value, "metadata": value}]
    nb.metadata["kernelspec"] = nb.metadata["language_info"] = nb.metadata["widgets"] = [[[]]]
    nb.metadata["title"] = nb.metadata["authors"] = {"": {"": STRANGE_VALUES}}


PARSERS = [
    attack("deep_texts", "cells nested by the thousand: elif, calls, attributes, lambdas, minus signs", edit=_deep),
    attack("long_elif", "a single chain of thousands of elif", edit=_one_deep("a chain of elif")),
    attack("long_call", "a single chain of thousands of calls", edit=_one_deep("a chain of calls")),
    attack("many_helpers", "answers that lead to thousands of helpers and imports", every="return h0()", edit=_helpers),
    attack("strange_fields", "numbers, lists and paths where texts should be, in all fields", edit=_strange_fields),
]
"""All attacks of this file."""
