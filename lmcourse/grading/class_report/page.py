"""The report as one HTML page: no script, nothing from elsewhere, and every text that somebody wrote is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lmcourse.grading.class_report.dropoff import what_to_explain
from lmcourse.grading.class_report.flags import KIND_LABELS, SOURCE_LABELS
from lmcourse.grading.class_report.likeness import PRINTED
from lmcourse.grading.class_report.section import Section
from lmcourse.report.html import CODE
from lmcourse.text import code_html, collapse_whitespace, replace_surrogates, replace_unprintable, shorten

MAX_NAME_CHARS = 48
"""Characters of a name on the page."""

MAX_CELL_CHARS = 2_500
"""Characters of an answer on the page."""

MAX_SENTENCE_CHARS = 240
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
        name=_name,
        sentence=lambda text: shorten(_line(text), MAX_SENTENCE_CHARS),
        code=_code,
        points=lambda points: f"{round(points, 2):g}",
        cell=lambda text: shorten(replace_unprintable(replace_surrogates(text), keep="\n\t"), MAX_CELL_CHARS),
        percent=lambda share: f"{100 * share:.0f} %",
        to_explain=what_to_explain,
    )
    environment.globals.update(KIND_LABELS=KIND_LABELS, SOURCE_LABELS=SOURCE_LABELS, PRINTED=PRINTED)
    return environment


def _code(text: str) -> Markup:
    return Markup(code_html(text, CODE))


def _name(student: str) -> str:
    """A name for the page; the tables have all of it."""
    return shorten(_line(student), MAX_NAME_CHARS) or "(no name)"


def _line(text: str) -> str:
    return collapse_whitespace(replace_surrogates(text))
