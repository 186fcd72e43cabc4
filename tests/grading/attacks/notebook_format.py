"""Attacks with the file: copied, deleted, swapped or relabelled cells, files that are not notebooks, and pages."""

from __future__ import annotations

import copy
import json
from typing import Any

from nbformat import NotebookNode

from lmcourse.grading.notebooks import new_code_cell, new_markdown_cell, new_output
from tests.grading.attacks.attack import Attack, attack, bare, is_answer, is_check

NO_NOTEBOOK = "cannot be read as a notebook"
SCRIPT = "<script>document.title='owned'</script>"
ONERROR = "<img src=x onerror=\"document.title='owned'\">"
TERMINAL = "\x1b]0;owned\x07\x1b[2J\x1b[31mowned\x1b]8;;https://owned.example\x07click\x1b]8;;\x07"
STRANGE_VALUES: tuple[Any, ...] = (None, -1, 1e308, True, "", "x" * 100_000, [], {}, [[]], {"": None})


def _checks(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if is_check(cell)]


def _duplicated(nb: NotebookNode) -> None:
    for number, cell in enumerate(copy.deepcopy(_checks(nb))):
        cell.update(id=f"copy-{number}", source="1")
        nb.cells.append(cell)


def _edited(nb: NotebookNode) -> None:
    nb.cells.remove(_checks(nb)[0])
    for cell in _checks(nb):
        cell.source = f"{cell.metadata.nbgrader.points}"
        cell.metadata.nbgrader |= {"points": 1000, "locked": False}


def _relabelled(nb: NotebookNode) -> None:
    """Label all checks as the check of the cheapest exercise; the cell ids claim the other checks."""
    for number, cell in enumerate(_checks(nb)):
        name = cell.metadata.nbgrader["grade_id"]
        cell.metadata.nbgrader |= {"grade_id": "check_max_finite", "points": 1000}
        nb.cells.insert(number, new_code_cell("28", id=name))
        nb.cells.append(new_code_cell("28", id=name.removeprefix("check_")))


def _swapped(nb: NotebookNode) -> None:
    checks = _checks(nb)
    sources = [cell.source for cell in checks]
    for cell, other in zip(checks, [*sources[1:], sources[0]], strict=True):
        cell.source = other


def _filled(nb: NotebookNode) -> None:
    nb.metadata["lmcourse"] = {"problem": "", "broke_off": [], "digest": "x"}
    for cell in _checks(nb):
        points = str(cell.metadata.nbgrader.points)
        cell["outputs"] = [new_output("execute_result", data={"text/plain": points}, execution_count=1)]
        cell.metadata["tags"] = ["skip-execution"]
        cell.metadata.nbgrader["solution"] = True


def _retyped(nb: NotebookNode) -> None:
    for cell in _checks(nb):
        cell["cell_type"] = "markdown"
        del cell["outputs"], cell["execution_count"]
    for cell in nb.cells:
        if is_answer(cell):
            cell.metadata.nbgrader |= {"grade": True, "points": 28, "solution": False}
            cell.source += "\n28"


def _bonus(nb: NotebookNode) -> None:
    nb.metadata["kernelspec"] = {"name": "../../evil", "display_name": "x", "language": "bash"}
    extra = {"schema_version": 3, "grade": True, "grade_id": "bonus", "points": 500, "locked": False, "solution": True}
    nb.cells.append(new_code_cell("500", metadata={"nbgrader": extra | {"task": False}}))
    nb.cells.append(new_code_cell("500", metadata={"nbgrader": extra | {"schema_version": 99, "grade_id": 7}}))


def _strange_fields(nb: NotebookNode) -> None:
    """Add metadata, ids and outputs that do not occur in real notebooks."""
    for number, cell in enumerate(nb.cells):
        value = STRANGE_VALUES[number % len(STRANGE_VALUES)]
        cell["id"] = "../" * 20 if number % 2 else "same"
        cell["execution_count"] = cell["attachments"] = value
        cell.metadata["tags"], cell.metadata["name"], cell.metadata["lmcourse"] = value, value, value
        if "nbgrader" in cell.metadata and not is_answer(cell):
            cell.metadata.nbgrader |= {"points": value, "schema_version": value, "checksum": value}
        if cell.cell_type == "code":
            cell["outputs"] = [{"output_type": value, "data": value, "text": value, "metadata": value}]
    nb.metadata["kernelspec"] = nb.metadata["language_info"] = nb.metadata["widgets"] = [[[]]]
    nb.metadata["title"] = {"": {"": STRANGE_VALUES}}


def _huge(nb: NotebookNode) -> None:
    nb.cells += [new_code_cell(f"x{number} = '{'y' * 10_000}'") for number in range(600)]


def _file(name: str, what: str, content: bytes) -> Attack:
    """Return an attacker whose file is not a notebook."""
    return Attack(name, what, lambda release: content, NO_NOTEBOOK)


def _odd_json(release: NotebookNode) -> bytes:
    nb = bare(release)
    nb.metadata["kernelspec"]["name"] = "NUMBER"
    text = json.dumps(nb).replace('"NUMBER"', "1" * 5000)
    return text.replace('"nbformat": 4', '"nbformat": 4, "nbformat": NaN, "nbformat": 4').encode()


def _scripts(nb: NotebookNode) -> None:
    text = f"# Notes\n{SCRIPT}\n{ONERROR}\n[a](javascript:document.title='owned')\n<svg onload=\"title='owned'\">"
    raw = new_markdown_cell(SCRIPT + "<iframe src='javascript:1'></iframe>", metadata={"raw_mimetype": "text/html"})
    raw["cell_type"] = "raw"
    attached = new_markdown_cell("![a](attachment:a.svg)")
    attached["attachments"] = {"a.svg": {"image/svg+xml": SCRIPT, "text/html": SCRIPT, "image/png": SCRIPT}}
    data = {"text/html": SCRIPT + ONERROR, "application/javascript": "document.title='owned'", "text/plain": "28"}
    shown = new_output("display_data", data=data | {"image/svg+xml": f"<svg>{SCRIPT}</svg>"})
    nb.cells = [new_markdown_cell(text), raw, attached, *nb.cells]
    nb.cells.append(new_code_cell("7", outputs=[shown], execution_count=1))
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"x": SCRIPT}}}
    nb.metadata["title"] = SCRIPT
    nb.metadata["language_info"] = {"name": SCRIPT, "pygments_lexer": SCRIPT}
    nb.cells[3].metadata["tags"] = [f'"><script {ONERROR}>']


NESTED = b'{"cells":' + b"[" * 200_000 + b"]" * 200_000 + b',"metadata":{},"nbformat":4,"nbformat_minor":5}'

FORMAT = [
    attack("duplicated_checks", "every graded cell twice, the second a plain number", edit=_duplicated),
    attack("edited_checks", "graded cells of its own, worth 1000 points; one is gone", edit=_edited),
    attack(
        "relabelled_checks", "every graded cell is the cheapest one, and cell ids claim the others", edit=_relabelled
    ),
    attack("swapped_checks", "graded cells that judge other exercises", edit=_swapped),
    attack("filled_in", "stored results with all points, and cells that ask not to be run", edit=_filled),
    attack("retyped_checks", "graded cells turned into text, and answers into graded cells", edit=_retyped),
    attack("bonus_cells", "graded cells that the course does not have, and a kernel of its own choice", edit=_bonus),
    attack("strange_fields", "numbers, lists and paths where texts should be, in all fields", edit=_strange_fields),
    attack("huge_notebook", "6 MB of cells", edit=_huge, reason="more than 300,000 characters"),
    _file("nested_json", "JSON nested 200,000 deep", NESTED),
    Attack("odd_json", "JSON with a number of 5000 digits, NaN and a key twice", _odd_json),
    _file("binary", "no text at all", bytes(range(256)) * 100),
    Attack("--force", "a student whose name is an option", lambda _: b"{}"),
    Attack("$(touch left-behind.txt)", "a student whose name is a command", lambda _: b"{}"),
    Attack("<script>name", "a student whose name is a script", lambda _: b"{}"),
    Attack("every*", "a student whose name stands for many", lambda _: b"{}", reason="Rename"),
]
"""All attacks of this file except those on pages."""

PAGES = [
    attack(
        "scripts_handed_in",
        "scripts in markdown, raw cells, attachments, stored outputs, widgets, tags and the title",
        edit=_scripts,
    ),
    attack(
        "scripts_run",
        "scripts in the names, texts and tracebacks of errors, in what is printed, shown and returned",
        f"""
        from IPython.display import publish_display_data
        for mime in ("text/html", "image/svg+xml", "text/markdown", "text/latex", "application/javascript"):
            publish_display_data({{mime: {SCRIPT + ONERROR!r}}})
        print({SCRIPT + ONERROR!r})
        Odd = type({SCRIPT!r}, (Exception,), {{"__repr__": lambda self: {SCRIPT + ONERROR!r}}})
        raise Odd({SCRIPT + ONERROR!r})
        """,
        every=f"""
        print({SCRIPT + ONERROR!r})
        if len('NAME') % 3 == 0: raise Odd({SCRIPT + ONERROR!r})
        return {SCRIPT + ONERROR!r} if len('NAME') % 3 == 1 else Odd()
        """,
        value=repr(SCRIPT + ONERROR),
        last=f"Odd({SCRIPT!r})",
    ),
    attack(
        "terminal_codes",
        "control codes of terminals, and formulas of spreadsheets, in errors, prints and values",
        f"print({TERMINAL!r})\nraise ValueError({TERMINAL!r})",
        every=f"""
        if len('NAME') % 2: raise ValueError({TERMINAL!r})
        return '=cmd|\\' /C calc\\'!A0'
        """,
        value="'=1+1'",
    ),
]
"""Attacks on pages that a teacher or a learner opens."""
