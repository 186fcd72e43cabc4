"""Write the welcome page of the course: introduction, map with your progress, how a check works, help.

`lmcourse lab` writes it at every start from the learner's own notebooks. Its only cell updates the progress while the
course is open.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from lmcourse.atomic import write_all
from lmcourse.course import BUILDS_ON, CHAPTERS, Chapter, routes_text
from lmcourse.parts import joined
from lmcourse.progress import CORE_DONE, ExerciseProgress, NotebookProgress, Progress, read_progress

NAME = "welcome.ipynb"

EXAMPLE = """\
tensor_bytes   1.5 / 2 points
→ Your results fit a known mistake. A bool would fit in one bit, but torch
  stores it in a whole byte.
✗ a dropout mask
    tensor_bytes([4, 8], 'bool')
    expected 32, yours 4
✓ passes: a (4, 8) matrix in fp32, the same in bf16, the same in fp8, the ids of
  eight tokens, one FFN matrix of GPT-2 in fp32, a scalar, axes of odd sizes
· `hint()` gives a nudge.
· 7 of 8 groups of cases pass: 1.5 of 2 points.
· Grading adds 20 cases (every dtype, scalars and empty tensors, more than 4 GB,
  one axis, axes of one, sizes whose product float32 rounds, other shapes):
  `check(tensor_bytes, hidden=True)` shows them."""
"""A real report; a test compares it with the report of the course."""

GREETING = """\
# Welcome

In twenty notebooks you predict, implement, measure and plot every part of a transformer language model,
from the bits of a number to training on many GPUs. You write the code; a check under each exercise tells
you at once what is right, what differs, and often why. A laptop is enough.

Open a notebook below, read from the top, and run each cell with **Shift + Enter**."""

HOW_TO_TEXT = f"""\
## How a check works

Each exercise has a cell for your answer and a check below it. Write your answer, run it, run the check. Here the
answer counts a `bool` as one bit:

```text
{EXAMPLE}
```

The arrow says what is wrong, if the check can tell; here the results are those of a mistake that it knows. Then come
the first cases that fail, with the call, and the names of those that pass. Points are the fraction of the groups of
cases that pass, rounded down to half a point. Each case above is one group; in grading, the hidden cases of one name
are another.

- The dots in an exercise's heading are its difficulty: ● a few minutes, ●● some thought, ●●● hard.
- *Differentiable* in a heading: autograd has to be able to follow your answer from the result back to its inputs.
- Leave the inputs as they are: work on a copy.
- A number may be Python's, NumPy's or a tensor of one number without axes; a whole number must be exact; a list may be
  a tuple; where a tensor is asked for, an array must be converted.

To grade a whole notebook yourself, open a terminal (**File → New → Terminal**) and type
`lmcourse grade 01-floating-point`.

**Predictions.** Before some results you are asked what you expect. Press a button first: a wrong guess
teaches more than a right answer that you only read. Predictions earn nothing and cost nothing.

## Stuck?

- Open **Hint 1** in the report, or type `hint()` in a new cell: it is about the exercise you checked last. Run it
  again for the next hint, up to nearly the answer.
- Work the call under the first ✗ out by hand. The smallest failing case is the quickest way to the mistake.
- Something strange? **Kernel → Restart Kernel**, then run the cells from the top.
- An exercise can wait. Later sections, and later notebooks, do not need your answer.

## Your work

It is yours, in the notebooks: **Ctrl + S** (⌘ S) saves, and JupyterLab saves every two minutes by itself.
Progress is read from what is saved. To start a notebook afresh, give yours another name; then start the course
again, or, in a clone, type `git checkout 01-floating-point` in a terminal."""

CELL = """\
from lmcourse.welcome import progress_table

progress_table()  # run this cell again to see your latest points"""

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # The kernel's information. Without it, JupyterLab would add it and then ask whether to save the page.
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": platform.python_version(),
    },
}


def write_welcome(notebooks: Path) -> Path:
    """Write the welcome page for a learner whose work is in the folder `notebooks`, and return its path.

    The page is written completely or not at all. It is signed, so that JupyterLab shows its table unchanged.
    """
    page = welcome(notebooks)
    _sign(page)
    path = notebooks / NAME
    write_all({path: json.dumps(page, indent=1, ensure_ascii=False)})
    return path


def welcome(notebooks: Path) -> dict[str, Any]:
    """Return the welcome page as a notebook document."""
    table = progress_table(notebooks)
    shown = {"text/html": table._repr_html_(), "text/plain": repr(table)}
    output = {"output_type": "execute_result", "execution_count": 1, "data": shown, "metadata": {}}
    code = {"cell_type": "code", "source": CELL, "execution_count": 1, "outputs": [output]}
    cells: list[dict[str, Any]] = [
        {"id": "greeting", "cell_type": "markdown", "source": GREETING},
        {"id": "map", "cell_type": "markdown", "source": f"## The course\n\n{course_map(table.progress)}"},
        {"id": "progress", "cell_type": "markdown", "source": "## Your progress"},
        {"id": "progress-table", **code},
        {"id": "how", "cell_type": "markdown", "source": HOW_TO_TEXT},
    ]
    cells = [{**cell, "metadata": {}} for cell in cells]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": cells}


def _sign(page: dict[str, Any]) -> None:
    """Mark the page as trusted for JupyterLab, which otherwise shows the table with fewer colours."""
    from nbformat import NotebookNode, sign

    try:
        notary: Any = sign.NotebookNotary  # nbformat has no type hints
        notary().sign(NotebookNode(page))
    except OSError:  # the home folder is not writable
        return


def course_map(progress: Progress) -> str:
    """Return the twenty notebooks as a Markdown table, and paths through them; the learner's notebooks are links."""
    here = {notebook.chapter.id: notebook for notebook in progress.notebooks}

    def link(chapter: Chapter) -> str:
        notebook = here.get(chapter.id)
        return f"[{chapter.title}]({chapter.id}/{notebook.path.name})" if notebook else chapter.title

    minutes = {notebook.chapter: notebook.minutes for notebook in progress.notebooks if notebook.minutes}
    lines = ["| | Notebook | Minutes | Builds on |", "| --- | :--- | ---: | :--- |"]
    part = ""
    for chapter in CHAPTERS:
        if chapter.part != part:
            part = chapter.part
            lines.append(f"| | **{part}** | | |")
        before = BUILDS_ON[chapter.number].replace(" ", ", ")
        lines.append(f"| {chapter.number} | {link(chapter)} | {joined(minutes.get(chapter, ())) or '–'} | {before} |")
    hours = f" its {round(sum(map(sum, minutes.values())) / 60)} hours" * (len(minutes) == len(CHAPTERS))
    if any(len(parts) > 1 for parts in minutes.values()):
        lines += ["", "`88 + 70` are the minutes of the core and of *Further*, for those who have time."]
    return "\n".join([*lines, "", f"### Ways through{hours}", "", routes_text(link)])


class ProgressTable:
    """The learner's progress, notebook by notebook and exercise by exercise, as a table and as text."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for notebook in self.progress.notebooks:
            yield notebook.problem or f"{notebook.chapter.id}   {notebook.earned} points"
            yield from (f"  {item.name}   {_short(item)}" for part in notebook.parts for item in part)
        yield f"{_points(self.progress)} points in all"
        if self.progress.core_done:
            yield CORE_DONE

    def _repr_html_(self) -> str:
        blocks = "".join(_block(notebook) for notebook in self.progress.notebooks)
        done = f"<p>{CORE_DONE}</p>" * self.progress.core_done
        return f"<div>{blocks}<p><b>{_points(self.progress)}</b> points in all</p>{done}</div>"


def progress_table(notebooks: Path | None = None) -> ProgressTable:
    """Return your progress from the saved notebooks in the current folder or another folder."""
    return ProgressTable(read_progress(notebooks or Path.cwd()))


COLOURS = {
    "done": "var(--jp-success-color1, #2e7d32)",
    "in progress": "var(--jp-warn-color1, #b35c00)",
    "not started": "var(--jp-border-color2, #bdbdbd)",
}


def _block(notebook: NotebookProgress) -> str:
    if notebook.problem:
        return f'<p role="alert">{escape(notebook.problem)}</p>'
    items = "<b>Further</b>".join("".join(map(_item, part)) for part in notebook.parts)
    link = f'<a href="{escape(notebook.chapter.id)}/{escape(notebook.path.name)}">{escape(notebook.chapter.title)}</a>'
    title = f"<b>{link}</b> &nbsp; {notebook.earned} points"
    return (
        f"<p style='margin: 0.8em 0 0.2em 0;'>{title}</p>"
        f"<div style='display: flex; flex-wrap: wrap; gap: 6px; max-width: 56em;'>{items}</div>"
    )


def _item(item: ExerciseProgress) -> str:
    """Return one exercise; its state is shown as text and colour."""
    return (
        f"<span title='{item.state}' style='border-left: 6px solid {COLOURS[item.state]}; padding: 1px 8px; "
        f"background: var(--jp-layout-color2, #eeeeee);'>{escape(item.name)} {_short(item)}</span>"
    )


def _short(item: ExerciseProgress) -> str:
    mark = {"done": "✓ ", "in progress": "", "not started": ""}[item.state]
    points = f"{item.points:g}" if item.started else "–"
    return f"{mark}{points}/{item.max_points:g}"


def _points(part: Progress) -> str:
    return f"{part.points:g} / {part.max_points:g}"
