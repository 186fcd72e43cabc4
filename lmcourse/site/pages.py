"""Convert an executed notebook to the notebook that Sphinx reads, with cells in the form of the site."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from PIL import Image

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.prediction import find_prediction
from lmcourse.exercises.registry import exercises_of
from lmcourse.report.data import REPORT_MIME, ReportData, check_id
from lmcourse.site.blocks import card, prediction_html, still
from lmcourse.site.explorables import Explorable, anchors
from lmcourse.site.figure_calls import find_figure, imports_of
from lmcourse.site.frames import CSS_PIXELS_PER_INCH, LEVEL, STORED, Frame, Picture, keep_picture, read_picture
from lmcourse.site.links import Links
from lmcourse.site.papers import link_papers, link_sources
from lmcourse.widgets.live import WIDGET_MIME

NEEDS_THE_NOTEBOOK = "In the notebook this figure has controls: it is drawn from what the cells above compute."
CLOCKS = re.compile(r"^because .*\b(clock|times?|rates)\b")
MEASURED = "(Measured times: run the notebook to see those of your machine.)\n"

FOR_MAINTAINERS = re.compile(
    r"(?:^|\n\n)(?:Th\w+ folded cell checks|The numbers (?:in|of)[^.]*\bchecked\s+here)(?:(?!\n\n).)*", re.DOTALL
)
"""A paragraph above a folded cell that checks the numbers in the notebook's text."""

Cell = dict[str, Any]
"""A cell of the notebook that Sphinx reads."""

_MARKERS = re.compile(r"^\s*### (BEGIN|END) SOLUTION\n?", re.MULTILINE)
_HEADING = re.compile(r"^### ((Exercise \d+) · .*?)  \((.*)\)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((\.\./[^)\s]+)\)")
_PREDICT = re.compile(r'^predict\("(\w+)"\)$', re.MULTILINE)


@dataclass
class Page:
    """A chapter of the site: its cells, and the figures with controls in them."""

    chapter: Chapter
    files: ChapterFiles
    pictures: Path
    explorables: dict[int, Explorable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.notebook = nbformat.read(self.files.solution, as_version=4)
        self.released = {cell.id: cell.source for cell in nbformat.read(self.files.release, as_version=4).cells}
        sources = [cell.source for cell in self.notebook.cells if cell.cell_type == "code"]
        imports = imports_of(sources)
        for place, cell in enumerate(self.notebook.cells):
            call = find_figure(cell.source, imports) if cell.cell_type == "code" else None
            if call is not None and call.controls:
                self.explorables[place] = Explorable(call)
        texts = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        self.names = anchors(self.explorables, re.findall(r"^#+ (.*)$", "\n".join(texts), re.MULTILINE))

    @property
    def frames(self) -> Iterator[Frame]:
        """The frames of all figures of the chapter."""
        for explorable in self.explorables.values():
            yield from explorable.frames.values()

    def for_sphinx(self, drawn: dict[Frame, Picture], pages: frozenset[str], links: Links) -> str:
        """Return the notebook that Sphinx reads, as text.

        Args:
            drawn: the pictures for all `frames`.
            pages: the ids of the chapters on the site; other links become plain text.
            links: the chapter's links.
        """
        cells: list[Cell] = []
        for place, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "markdown":
                if text := FOR_MAINTAINERS.sub("", self.released[cell.id]).strip():
                    cells.append(_markdown(link_sources(link_papers(_link_pages(text, pages)), links.repository)))
            elif cell.cell_type == "code":
                cells += self._code(place, cell, drawn, links)
        cells.insert(1, _raw(links.top()))
        cells.append(_raw(links.about()))
        metadata = {"kernelspec": self.notebook.metadata.kernelspec, "language_info": {"name": "python"}}
        return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": cells})

    def _code(self, place: int, cell: NotebookNode, drawn: dict[Frame, Picture], links: Links) -> Iterator[Cell]:
        grading = cell.metadata.get("nbgrader", {})
        if "hide-input" in cell.metadata.get("tags", []):
            return  # this cell is for maintainers
        elif grading.get("solution"):
            yield _raw(self._card(cell, links.cell(cell.id, self._title(place))))
        elif grading.get("grade"):
            return  # the card already contains the report of a check
        elif predicted := _PREDICT.search(cell.source):
            yield _raw(prediction_html(find_prediction(predicted[1])))
        elif place in self.explorables:
            *before, _ = ast.parse(cell.source).body
            if any(not isinstance(node, ast.Assign) for node in before):
                yield _code_cell(cell, [])
            yield _raw(self.explorables[place].html(drawn, self.names[place]))
        else:
            yield from self._plain(place, cell)

    def _plain(self, place: int, cell: NotebookNode) -> Iterator[Cell]:
        """Yield an ungraded cell: its code (unless it only shows a figure), its printed text, and its pictures."""
        tags = cell.metadata.get("tags", [])
        outputs: list[Any] = []
        pictures: list[Any] = []
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                note = NEEDS_THE_NOTEBOOK if WIDGET_MIME in data and "explore(" in cell.source else ""
                pictures.append(_raw(still(self._stored(output), f"figure-{place}-{len(pictures)}", note)))
            elif output.output_type == "stream" and any(map(CLOCKS.match, tags)):
                if not outputs:
                    outputs.append(nbformat.v4.new_output("stream", text=MEASURED))
            else:
                outputs.append(output)
        body = ast.parse(cell.source).body
        only_a_figure = len(body) == 1 and isinstance(body[0], ast.Expr) and pictures and not outputs
        if not only_a_figure:
            yield _code_cell(cell, outputs, ["hide-input"] if "\nstart(" in cell.source else [])
        yield from pictures

    def _stored(self, output: NotebookNode) -> Picture:
        """Store a picture from the notebook in the same way as a frame."""
        data = base64.b64decode(output.data["image/png"])
        said = output.metadata.get("image/png", {})
        key = hashlib.sha256(data + repr((said, LEVEL, STORED)).encode()).hexdigest()[:20]
        if not (self.pictures / f"{key}.json").exists():
            image = Image.open(io.BytesIO(data))
            width = said.get("width", round(image.width * CSS_PIXELS_PER_INCH / 120))
            caption = said.get("caption", "")
            keep_picture(self.pictures, key, above_caption(image, said), said.get("alt", ""), width, caption)
        return read_picture(self.pictures, key)

    def _title(self, place: int) -> str:
        """Return the number of the exercise at this place, such as "Exercise 3"."""
        headings = (_HEADING.search(cell.source) for cell in reversed(self.notebook.cells[:place]))
        return next((heading[2] for heading in headings if heading), "This exercise")

    def _card(self, cell: NotebookNode, link: str) -> str:
        name = cell.metadata.nbgrader.grade_id
        (exercise,) = (one for one in exercises_of(self.chapter) if one.name == name)
        (check,) = (other for other in self.notebook.cells if other.id == check_id(name))
        data: Any = next(output.data[REPORT_MIME] for output in check.outputs if REPORT_MIME in output.get("data", {}))
        return card(exercise, self.released[cell.id], _MARKERS.sub("", cell.source), ReportData.from_json(data), link)


def above_caption(image: Image.Image, said: dict[str, Any]) -> Image.Image:
    """Return the part of a stored picture above the caption that is drawn in it, which the page shows as text."""
    if "caption_top" not in said:
        return image
    return image.crop((0, 0, image.width, int(said["caption_top"] * image.width / said["width"])))


def _markdown(text: str) -> Cell:
    source = _HEADING.sub(r"### \1\n\n{.exercise-facts}\n\3", text)
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def _link_pages(text: str, pages: frozenset[str]) -> str:
    def replaced(link: re.Match[str]) -> str:
        words, address = link.groups()
        folder = address.split("/")[-2]
        return f"[{words}]({folder}.ipynb)" if folder in pages and address.endswith(".ipynb") else words

    return _LINK.sub(replaced, text)


def _raw(text: str) -> Cell:
    return {"cell_type": "raw", "source": text, "metadata": {"format": "text/html"}}


def _code_cell(cell: NotebookNode, outputs: list[Any], tags: Sequence[str] = ()) -> Cell:
    ran = {"outputs": outputs, "execution_count": cell.execution_count}
    return {"cell_type": "code", "source": cell.source, "metadata": {"tags": [*tags]}, **ran}
