"""The report as one HTML page: no script, nothing from elsewhere, and every text that somebody wrote is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lmcourse.grading.classroom.advice import what_to_explain
from lmcourse.grading.classroom.doubts import KINDS, SOURCES
from lmcourse.grading.classroom.section import Section
from lmcourse.grading.classroom.texts import one_line, shown_name
from lmcourse.report.html import with_code

SENTENCE = 240
"""Characters of a sentence that a learner may have written."""

_TEMPLATES = Path(__file__).parent / "templates"


def page(sections: Sequence[Section], written: date) -> str:
    """The page.

    Args:
        sections: one for each assignment.
        written: the date it bears.
    """
    day = f"{written.day} {written:%B %Y}"
    return _environment().get_template("report.html").render(sections=sections, day=day)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        name=shown_name,
        sentence=lambda text: one_line(text, SENTENCE),
        code=_code,
        points=lambda points: f"{round(points, 2):g}",
        percent=lambda share: f"{100 * share:.0f} %",
        to_explain=what_to_explain,
    )
    environment.globals.update(KINDS=KINDS, SOURCES=SOURCES)
    return environment


def _code(text: str) -> Markup:
    return Markup(with_code(text))
