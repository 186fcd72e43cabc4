"""Pages that a teacher or a learner opens: what a notebook's texts, outputs and errors can do there."""

from __future__ import annotations

from nbformat import NotebookNode

from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_output
from tests.grading.attacks.attack import attack

SCRIPT = "<script>document.title='owned'</script>"
ONERROR = "<img src=x onerror=\"document.title='owned'\">"
TERMINAL = "\x1b]0;owned\x07\x1b[2J\x1b[31mowned\x1b]8;;https://owned.example\x07click\x1b]8;;\x07"


def _markdown(nb: NotebookNode) -> None:
    text = (
        f"# Notes\n{SCRIPT}\n{ONERROR}\n[a](javascript:document.title='owned')\n<svg onload=\"document.title='owned'\">"
    )
    nb.cells.insert(0, new_markdown_cell(text))
    raw = new_markdown_cell(SCRIPT + "<iframe src='javascript:1'></iframe>", metadata={"raw_mimetype": "text/html"})
    raw["cell_type"] = "raw"
    nb.cells.insert(0, raw)
    attached = new_markdown_cell("![a](attachment:a.svg)")
    attached["attachments"] = {"a.svg": {"image/svg+xml": SCRIPT, "text/html": SCRIPT}}
    nb.cells.insert(0, attached)


def _outputs(nb: NotebookNode) -> None:
    data = {"text/html": SCRIPT + ONERROR, "application/javascript": "document.title='owned'", "text/plain": "28"}
    shown = new_output("display_data", data=data | {"image/svg+xml": f"<svg>{SCRIPT}</svg>"})
    nb.cells.append(new_code_cell("7", outputs=[shown], execution_count=1))
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"x": SCRIPT}}}
    nb.metadata["title"] = SCRIPT
    nb.metadata["language_info"] = {"name": SCRIPT, "pygments_lexer": SCRIPT}
    nb.cells[0].metadata["tags"] = [f'"><script {ONERROR}>']


PAGES = [
    attack("script_in_text", "scripts in markdown, raw cells and attachments", edit=_markdown),
    attack("script_in_notebook", "scripts in stored outputs, widgets, tags and the title", edit=_outputs),
    attack(
        "script_shown",
        "displays HTML, SVG, JavaScript and LaTeX that run",
        f"""
        from IPython.display import publish_display_data
        for mime in ("text/html", "image/svg+xml", "text/markdown", "text/latex", "application/javascript"):
            publish_display_data({{mime: {SCRIPT + ONERROR!r}}})
        """,
    ),
    attack(
        "script_in_errors",
        "scripts in the name, the text and the traceback of an error, and in what is printed",
        f"""
        print({SCRIPT + ONERROR!r})
        Error = type({SCRIPT!r}, (Exception,), {{}})
        raise Error({SCRIPT + ONERROR!r})
        """,
        every=f"""
        print({SCRIPT + ONERROR!r})
        raise type({SCRIPT!r}, (Exception,), {{}})({SCRIPT + ONERROR!r})
        """,
    ),
    attack(
        "script_in_results",
        "scripts in the value, its type's name and the report that is shown",
        f"Odd = type({SCRIPT!r}, (), {{'__repr__': lambda self: {SCRIPT + ONERROR!r}}})",
        every=f"return {SCRIPT + ONERROR!r} if args else Odd()",
        value=repr(SCRIPT + ONERROR),
    ),
    attack(
        "terminal_codes",
        "control codes of terminals in errors, prints and values",
        f"print({TERMINAL!r})\nraise ValueError({TERMINAL!r})",
        every=f"raise ValueError({TERMINAL!r}) if args else ValueError",
        value=repr(TERMINAL),
    ),
    attack(
        "spreadsheet_formulas",
        "formulas of spreadsheets in everything that may end up in a table",
        every="return '=cmd|\\' /C calc\\'!A0'",
        value="'=1+1'",
    ),
]
"""All attacks of this file."""
