"""The front page: the course in two sentences, a first figure, a prediction, the map, and two commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import partial
from html import escape

from lmcourse.course.chapters import CHAPTERS, Chapter, routes_text
from lmcourse.course.parts import minutes_in
from lmcourse.exercises.prediction import find_prediction
from lmcourse.report.report import with_marks
from lmcourse.site.blocks import prediction_html
from lmcourse.site.explorables import Explorable
from lmcourse.site.frames import Frame, Picture
from lmcourse.site.pages import Page

FIGURE = "head_by_hand"
PREDICTION = "sum_of_hundredths"
MAX_TEASER = 190
"""Largest number of characters of a chapter's first sentences on the map; at least one whole sentence is shown."""

LEAD = (
    "Notebooks on transformer language models, from the bits of a number through attention to training and its cost in "
    "bytes, FLOPs and days. You predict, implement, measure and plot every part, and you write the code."
)
HOW = (
    "A check under each exercise shows what is right, what differs, and which mistake you made if it recognises it. "
    "Here you can read everything before you install anything: figures move, predictions answer, and hints and answers "
    "unfold."
)
COMMANDS = """```console
make lab     # installs the course the first time, then opens JupyterLab on a welcome page
make test    # for maintainers: lint, types, fast tests
```

Both work in a clone of {repository} and need Python 3.11, 3.12 or 3.13. Everything is installed into one
folder, `.venv`. You need no GPU. Your answers, your progress and your mistakes stay on your machine."""


def front_page(pages: list[Page], drawn: Mapping[Frame, Picture], repository: str = "") -> str:
    """Return the front page as MyST Markdown, with the table of contents of the site."""
    place = f"[the course's repository]({repository})" if repository else "the course's repository"
    first, figure = pages[0].chapter, front_figure(pages)
    begin = (
        f'<p class="lead">{LEAD}</p><p>{HOW}</p><p class="begin"><a class="button" href="{first.id}.html">Begin with '
        f'{escape(first.title)}</a> <a href="#two-commands">or run it yourself</a></p>'
    )
    parts = [
        "# Transformers, by hand",
        _raw(begin),
        "## Predict first",
        "Each idea begins with a question. Choose an answer, then read why.",
        _raw(prediction_html(find_prediction(PREDICTION))),
        *(["## Then move it", "Choose, and see what changes.", _raw(figure.html(drawn, "front"))] if figure else []),
        "## The map",
        _raw(_map({page.chapter: page for page in pages})),
        "## Ways through",
        routes_text(partial(_link, {page.chapter for page in pages})),
        "## Two commands",
        COMMANDS.format(repository=place),
        *_trees([page.chapter for page in pages]),
    ]
    return "\n\n".join(parts) + "\n"


def _link(here: Collection[Chapter], chapter: Chapter) -> str:
    return f"[{chapter.title}]({chapter.id}.ipynb)" if chapter in here else chapter.title


def front_figure(pages: list[Page]) -> Explorable | None:
    """Return the figure for the front page or, if its chapter is left out, the first one, if there is any."""
    figures = [explorable for page in pages for explorable in page.explorables.values()]
    return min(figures, key=lambda figure: figure.function != FIGURE, default=None)


def _map(pages: Mapping[Chapter, Page]) -> str:
    """Return all chapters by parts; chapters on the site are links with their first sentences."""
    parts = []
    for part in dict.fromkeys(chapter.part for chapter in CHAPTERS):
        items = "".join(_item(c, pages.get(c)) for c in CHAPTERS if c.part == part)
        parts.append(f'<h3>{escape(part)}</h3><ol class="map">{items}</ol>')
    return "".join(parts)


def _item(chapter: Chapter, page: Page | None) -> str:
    title = f'<span class="number">{chapter.number}</span> {escape(chapter.title)}'
    if page is None:
        return f'<li class="absent"><span class="title">{title}</span></li>'
    minutes = zip(("", "Further "), minutes_in(page.notebook.cells[0].source), strict=False)
    times = " · ".join(f"{name}{count} minutes" for name, count in minutes)
    return (
        f'<li><a class="title" href="{chapter.id}.html">{title}</a><p>{with_marks(teaser(page))}</p>'
        f'<p class="minutes">{times}</p></li>'
    )


def teaser(page: Page) -> str:
    """Return the first sentences of a chapter, without emphasis and formulas."""
    first = page.notebook.cells[0].source.split("\n\n")
    paragraph = next(part for part in first if not part.startswith(("#", "**")) and not part[0].islower())
    text = re.sub(r"[*_$]|\\[a-z]+", "", paragraph.replace("\n", " "))
    chosen = ""
    for sentence in re.split(r"(?<=[.?!]) ", text):
        if chosen and len(chosen) + len(sentence) > MAX_TEASER:
            break
        chosen = f"{chosen} {sentence}".strip()
    return chosen


def _trees(chapters: list[Chapter]) -> list[str]:
    """Return the table of contents, with one tree per part."""
    trees = []
    for part in dict.fromkeys(chapter.part for chapter in chapters):
        names = [chapter.id for chapter in chapters if chapter.part == part]
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {part}", "", *names, "```"]))
    trees.append("```{toctree}\n:hidden:\n:caption: Reference\n\nreference\n```")
    return trees


def _raw(html: str) -> str:
    return f"``````{{raw}} html\n{html}\n``````"
