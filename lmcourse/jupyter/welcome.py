"""Write the welcome page of the course: introduction, map with your progress, how a check works, help.

`lmcourse lab` writes it at every start from the learner's own notebooks. While the course is open, the extension of
JupyterLab updates the progress in its only code cell whenever the page is shown again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lmcourse.base.atomic import write_all
from lmcourse.course.chapters import BUILDS_ON, CHAPTERS, Chapter, routes_text
from lmcourse.course.parts import joined
from lmcourse.course.progress import CORE_DONE, ExerciseProgress, NotebookProgress, Progress, read_progress

NAME = "welcome.ipynb"

EXAMPLE = """\
tensor_bytes   1.5 / 2 points
→ Your results fit a known mistake. A bool would fit in one bit, but torch
  stores it in a whole byte.
✗ a dropout mask
    tensor_bytes([4, 8], 'bool')
    expected 32, yours 4
✓ passes: a (4, 8) matrix in fp32, the same in bf16, the same in fp8, the ids of
  eight tokens, half precision, double precision, one FFN matrix of GPT-2 in
  fp32, a scalar, and 1 more
· `hint()` gives a nudge.
· 9 of 10 groups of cases pass: 1.5 of 2 points.
· Grading adds 20 cases (every dtype, scalars and empty tensors, more than 4 GB,
  one axis, axes of one, sizes whose product float32 rounds, other shapes):
  `check(tensor_bytes, hidden=True)` shows them."""
"""A real report; a test compares it with the report of the course."""

GREETING = """\
# Welcome

In twenty-three notebooks you predict, implement, measure and plot every part of a transformer language model,
from the bits of a number through training on many GPUs to what comes after the loss. You write the code; a check
under each exercise tells you at once what is right, what differs, and often why. A laptop is enough.

Open a notebook, read from the top, and run each cell with **Shift + Enter**. Help is below the table."""

HOW_TO_TEXT = f"""\
<details><summary><b>How a check works</b></summary>

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
teaches more than a right answer that you only read. Predictions earn nothing and cost nothing. The notebook remembers
them: run the cell the next day, and it shows what you chose.

</details>

<details><summary><b>Stuck?</b></summary>

- Open **Hint 1** in the report, or type `hint()` in a new cell: it is about the exercise you checked last. Run it
  again for the next hint, up to nearly the answer.
- Work the call under the first ✗ out by hand. The smallest failing case is the quickest way to the mistake.
- Something strange? **Kernel → Restart Kernel**, then run the cells from the top.
- An exercise can wait. Later sections, and later notebooks, do not need your answer.

</details>

<details><summary><b>Your work</b></summary>

It is yours, in the notebooks: **Ctrl + S** (⌘ S) saves, and JupyterLab saves every two minutes by itself. When you come
back to this page, it saves your notebooks and reads your progress from them. To start a notebook afresh, give yours
another name; then start the course again, or, in a clone, type `git checkout 01-floating-point` in a terminal.

</details>"""

CELL = """\
from lmcourse.jupyter.welcome import progress_table

progress_table()  # JupyterLab updates the table when you come back; elsewhere, run this cell again"""

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
    hidden = {"jupyter": {"source_hidden": True}}
    code = {"cell_type": "code", "source": CELL, "execution_count": 1, "outputs": [output]}
    cells: list[dict[str, Any]] = [
        {"id": "greeting", "cell_type": "markdown", "metadata": {}, "source": GREETING},
        {"id": "progress-table", "metadata": hidden, **code},
        {"id": "how", "cell_type": "markdown", "metadata": {}, "source": HOW_TO_TEXT},
        {"id": "ways", "cell_type": "markdown", "metadata": {}, "source": ways_through(table.progress)},
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": cells}


def _sign(page: dict[str, Any]) -> None:
    """Mark the page as trusted for JupyterLab, which otherwise shows the table with fewer colours."""
    from nbformat import NotebookNode, sign

    try:
        notary: Any = sign.NotebookNotary  # nbformat has no type hints
        notary().sign(NotebookNode(page))
    except OSError:  # the home folder is not writable
        return


def ways_through(progress: Progress) -> str:
    """Return paths through the course as Markdown; the learner's notebooks are links."""
    here = {notebook.chapter: _address(notebook) for notebook in progress.notebooks}

    def link(chapter: Chapter) -> str:
        return f"[{chapter.title}]({here[chapter]})" if chapter in here else chapter.title

    minutes = [sum(notebook.minutes) for notebook in progress.notebooks if notebook.minutes]
    hours = f" its {round(sum(minutes) / 60)} hours" * (len(minutes) == len(CHAPTERS))
    return f"<details><summary><b>Ways through{hours}</b></summary>\n\n{routes_text(link)}\n\n</details>"


class ProgressTable:
    """The course with the learner's progress: a row per notebook, with its exercises folded, and as text."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for notebook in self.progress.notebooks:
            yield notebook.problem or f"{notebook.chapter.id}   {notebook.earned} points"
            yield from (f"  {item.name}   {_short(item)}" for part in notebook.parts for item in part)
        yield f"{self.progress.points:g} / {self.progress.max_points:g} points in all"
        if self.progress.core_done:
            yield CORE_DONE

    def _repr_html_(self) -> str:
        here = {notebook.chapter: notebook for notebook in self.progress.notebooks}
        bodies = [
            f'<tbody><tr><th colspan="6" scope="rowgroup">{escape(part)}</th></tr>'
            f"{''.join(_row(chapter, here.get(chapter)) for chapter in chapters)}</tbody>"
            for part, chapters in groupby(CHAPTERS, key=lambda chapter: chapter.part)
        ]
        done = f"<p>{CORE_DONE}</p>" * self.progress.core_done
        table = f"<table>{HEAD}{''.join(bodies)}</table>"
        return f'{STYLE}<div class="lmcourse-progress">{_summary(self.progress)}{done}{table}</div>'


def progress_table(notebooks: Path | None = None) -> ProgressTable:
    """Return your progress from the saved notebooks in the current folder or another folder."""
    return ProgressTable(read_progress(notebooks or Path.cwd()))


STYLE = """\
<style>
  .lmcourse-progress table { margin: 0; }
  .lmcourse-progress :is(th, td) { text-align: left !important; vertical-align: top; white-space: nowrap; }
  .lmcourse-progress td[role="alert"] { white-space: normal; }
  .lmcourse-progress tbody th { font-weight: normal; }
  .lmcourse-progress th[colspan] { font-weight: bold; }
  .lmcourse-progress .bar {
    display: inline-block; width: 6em; height: 0.7em; margin-right: 0.5em;
    border: 1px solid var(--jp-border-color1, #bdbdbd);
  }
  .lmcourse-progress .bar > span { display: block; height: 100%; background: var(--jp-success-color1, #2e7d32); }
  .lmcourse-progress ul { list-style: none; margin: 0.2em 0; padding: 0; }
  .lmcourse-progress li { padding: 1px 8px; border-left: 6px solid var(--jp-border-color2, #bdbdbd); }
  .lmcourse-progress li.done { border-color: var(--jp-success-color1, #2e7d32); }
  .lmcourse-progress li.in-progress { border-color: var(--jp-warn-color1, #b35c00); }
</style>"""

HEAD = "<thead><tr>{}</tr></thead>".format(
    "".join(
        f'<th scope="col">{name}</th>'
        for name in ("Notebook", "Minutes", "Builds on", "Points", "Points in <i>Further</i>", "Exercises")
    )
)


def _summary(progress: Progress) -> str:
    """Return the exercise to continue with, as a link, and the points of all notebooks."""
    found = progress.next_exercise
    if found:
        notebook, index = found
        if notebook.started:
            place = f"exercise {index + 1} of notebook {notebook.chapter.number}"
            line = f"Continue with {_link(notebook, place, notebook.exercises[index])}"
        else:
            verb = "Continue" if any(other.started for other in progress.notebooks) else "Begin"
            line = f"{verb} with {_link(notebook, f'notebook {notebook.chapter.number}')}"
    else:
        line = "You have done every exercise here" if progress.max_points else "There are no notebooks here yet"
    return f"<p><b>{line}.</b> &emsp; {_bar(progress.points, progress.max_points)} points in all</p>"


def _row(chapter: Chapter, notebook: NotebookProgress | None) -> str:
    """Return the row of a notebook, which may be missing from the learner's folder."""
    title = _link(notebook, chapter.title) if notebook else escape(chapter.title)
    minutes = joined(notebook.minutes) if notebook else ""
    before = BUILDS_ON[chapter.number].replace(" ", ", ")
    first = f'<th scope="row">{chapter.number} &nbsp; {title}</th><td>{minutes or "–"}</td><td>{before}</td>'
    if not notebook:
        return f"<tr>{first}<td></td><td></td><td></td></tr>"
    if notebook.problem:
        return f'<tr>{first}<td colspan="3" role="alert">{escape(notebook.problem)}</td></tr>'
    bars = [_bar(sum(item.points for item in part), sum(item.max_points for item in part)) for part in notebook.parts]
    return f"<tr>{first}<td>{bars[0]}</td><td>{''.join(bars[1:])}</td><td>{_exercises(notebook)}</td></tr>"


def _bar(points: float, most: float) -> str:
    """Return points as a bar and as text; a screen reader reads only the text."""
    width = f"{points / most:.0%}" if most else "0"
    return f'<span class="bar" aria-hidden="true"><span style="width: {width}"></span></span>{points:g} / {most:g}'


def _exercises(notebook: NotebookProgress) -> str:
    """Return the exercises, folded; the state of each is shown as text and colour."""
    items = [
        f'<li class="{item.state.replace(" ", "-")}">{_link(notebook, item.name, item)} {_short(item)}</li>'
        for part in notebook.parts
        for item in part
    ]
    done = sum(item.state == "done" for item in notebook.exercises)
    return f"<details><summary>{done} of {len(items)} done</summary><ul>{''.join(items)}</ul></details>"


def _link(notebook: NotebookProgress, text: str, exercise: ExerciseProgress | None = None) -> str:
    """Return a link to a notebook, or to the text of one of its exercises."""
    cell = f"#cell-id={quote(exercise.text)}" if exercise and exercise.text else ""
    return f'<a href="{escape(_address(notebook) + cell)}">{escape(text)}</a>'


def _address(notebook: NotebookProgress) -> str:
    return f"{notebook.chapter.id}/{notebook.path.name}"


def _short(item: ExerciseProgress) -> str:
    mark = {"done": "✓ ", "in progress": "", "not started": ""}[item.state]
    points = f"{item.points:g}" if item.started else "–"
    return f"{mark}{points}/{item.max_points:g}"
