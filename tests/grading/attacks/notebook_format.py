"""The file itself: cells copied, deleted, swapped, relabelled, filled in; texts that break parsers; no notebook."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

from nbformat import NotebookNode

from lmcourse.grading.cells import new_code_cell, new_output
from tests.grading.attacks.attack import Attack, attack, bare, find, is_check

NO_NOTEBOOK = "cannot be read as a notebook"


def _checks(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if is_check(cell)]


def _duplicated(nb: NotebookNode) -> None:
    for number, cell in enumerate(copy.deepcopy(_checks(nb))):
        cell.update(id=f"copy-{number}", source="1")
        nb.cells.append(cell)


def _deleted(nb: NotebookNode) -> None:
    nb.cells = [cell for cell in nb.cells if not is_check(cell)]


def _edited(nb: NotebookNode) -> None:
    for cell in _checks(nb):
        cell.source = f"{cell.metadata.nbgrader.points}"
        cell.metadata.nbgrader |= {"points": 1000, "locked": False}


def _relabelled(nb: NotebookNode) -> None:
    cheap = find(nb, "decimal_error")
    cheap.source = "def decimal_error(digits, exponent):\n    return -1.0"
    for cell in _checks(nb):
        cell.metadata.nbgrader["grade_id"] = "check_decimal_error"
        cell.metadata.nbgrader["points"] = 1000


def _swapped(nb: NotebookNode) -> None:
    checks = _checks(nb)
    for cell, other in zip(checks, [*checks[1:], checks[0]], strict=True):
        cell.source = other.source


def _filled(nb: NotebookNode) -> None:
    nb.metadata["lmcourse"] = {"problem": "", "seed": 1, "evidence": []}
    for cell in _checks(nb):
        points = str(cell.metadata.nbgrader.points)
        cell["outputs"] = [new_output("execute_result", data={"text/plain": points}, execution_count=1)]
        cell.metadata["tags"] = ["skip-execution"]
        cell.metadata.nbgrader["solution"] = True


def _retyped(nb: NotebookNode) -> None:
    for cell in _checks(nb):
        cell["cell_type"] = "markdown"
        del cell["outputs"], cell["execution_count"]


def _kernel(nb: NotebookNode) -> None:
    nb.metadata["kernelspec"] = {"name": "../../evil", "display_name": "x", "language": "bash"}


def _task(nb: NotebookNode) -> None:
    extra = {"schema_version": 3, "grade": True, "grade_id": "bonus", "points": 500, "locked": False, "solution": True}
    nb.cells.append(new_code_cell("500", metadata={"nbgrader": extra | {"task": False}}))
    nb.cells.append(new_code_cell("500", metadata={"nbgrader": {}}))
    nb.cells.append(new_code_cell("500", metadata={"nbgrader": extra | {"schema_version": 99, "grade_id": 7}}))


def _huge(nb: NotebookNode) -> None:
    nb.cells += [new_code_cell(f"x{number} = '{'y' * 10_000}'") for number in range(600)]


def _magics(nb: NotebookNode) -> None:
    for text in ("%%bash\necho DONE > ../../../left-behind.txt", "!echo DONE > ../../../left-behind.txt", "%quickref"):
        nb.cells.insert(1, new_code_cell(text))


def _parser(nb: NotebookNode) -> None:
    texts = ["(" * 5000 + ")" * 5000, "-" * 90_000 + "1", "x" + ".x" * 50_000, "[" * 150 + "]" * 150]
    texts += ["if 1:\n" + "".join(" " * depth + "if 1:\n" for depth in range(1, 98)) + " " * 98 + "pass"]
    texts += ["lambda: " * 3000 + "1", "f'" + "{x}" * 9999 + "'", "a\x00b", "\ufeffx = 1", "x = '\ud800'"]
    texts += ["# -*- coding: rot13 -*-\nprvag(1)", "def ulp(x): return 0.0\x0c\x1a", "\\"]
    for text in texts:
        nb.cells.insert(1, new_code_cell(text))


def _homoglyphs(nb: NotebookNode) -> None:
    twin = "\u217elp"  # a small Roman numeral that Python reads as another letter, and a Cyrillic name
    cells = [f"def {twin}(*a): return 0.0", "\u0441heck = lambda *a, **k: 1", "\U0001d42e\U0001d425\U0001d429 = 7"]
    nb.cells += [new_code_cell(text) for text in cells]


def file_of(name: str, what: str, content: bytes) -> Attack:
    """An attacker whose file is no notebook."""
    return Attack(name, what, lambda release: content, (), NO_NOTEBOOK)


NESTED = b'{"cells":' + b"[" * 200_000 + b"]" * 200_000 + b',"metadata":{},"nbformat":4,"nbformat_minor":5}'


def _odd_json(release: NotebookNode) -> bytes:
    nb = bare(release)
    nb.metadata["kernelspec"]["name"] = "NUMBER"
    text = json.dumps(nb).replace('"NUMBER"', "1" * 5000)
    return text.replace('"nbformat": 4', '"nbformat": 4, "nbformat": NaN, "nbformat": 4').encode()


FORMAT = [
    attack("duplicated_checks", "every graded cell twice, the second a plain number", edit=_duplicated),
    attack("deleted_checks", "no graded cell at all", edit=_deleted),
    attack("edited_checks", "graded cells of its own, worth 1000 points", edit=_edited),
    attack("relabelled_checks", "every graded cell is called the cheapest one", edit=_relabelled),
    attack("swapped_checks", "graded cells that judge other exercises", edit=_swapped),
    attack("filled_in", "stored results with all points, and cells that ask not to be run", edit=_filled),
    attack("retyped_checks", "graded cells turned into text", edit=_retyped),
    attack("bonus_cells", "graded cells that the course does not have", edit=_task),
    attack("own_kernel", "a kernel of its own choice", edit=_kernel),
    attack("huge_notebook", "6 MB of cells", edit=_huge),
    attack("shell_magics", "cells for the shell", edit=_magics),
    attack("breaks_the_parser", "nesting, null bytes, half characters and encodings that break parsers", edit=_parser),
    attack("homoglyphs", "names that look like others, and names that Python takes for others", edit=_homoglyphs),
    replace(
        attack("link_to_solution", "hands in a link to the solution", reason="link"),
        link=Path("../../../solutions/@ID@/@NAME@"),
    ),
    file_of("nested_json", "JSON nested 200,000 deep", NESTED),
    Attack("odd_json", "JSON with a number of 5000 digits, NaN and a key twice", _odd_json),
    file_of("binary", "no text at all", bytes(range(256)) * 100),
    file_of("empty", "an empty file", b""),
    attack("--force", "a student whose name is an option", edit=_edited),
    attack("$(touch left-behind.txt)", "a student whose name is a command", edit=_edited),
    attack("<script>name", "a student whose name is a script", edit=_edited),
    attack("every*", "a student whose name stands for many", edit=_edited, reason="rename"),
]
"""All attacks of this file."""
