"""Blocks of HTML on a page: an exercise's card, a prediction, a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lmcourse.base.text import code_html, question_html
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.prediction import NumberPrediction, Prediction
from lmcourse.report.data import ReportData
from lmcourse.report.report import html, with_marks
from lmcourse.site.frames import Picture
from lmcourse.widgets.number_scale import CLOSE, NumberScale

FRAMES = "_frames"
"""The folder with all pictures, next to the pages."""

CARD_MARK = '<div class="exercise-tools">'
"""The beginning of a card's HTML, which is used to find cards in a page's tree."""

STILL_MARK = '<figure class="still"'
"""The beginning of a static picture's HTML."""


def card(exercise: Exercise, stub: str, answer: str, report: ReportData, link: str = "") -> str:
    """Return the lower part of an exercise's card: its stub, its hints, and an answer with the report of its check.

    The `link` leads to the cell of the notebook.
    """
    return (
        f'{CARD_MARK}<p class="card-label">You start from {link}</p>{_python(stub)}{_hints(exercise.hints)}'
        f'<details class="answer"><summary>Show an answer, and what its check says</summary>'
        f"{_python(answer)}{html(public(report))}</details></div>"
    )


def public(report: ReportData) -> ReportData:
    """Return the report of the notebook's own check, which only counts hidden cases, so that the card stays short."""
    cases = tuple(case for case in report.cases if not case.hidden)
    hidden = tuple(case.name for case in report.cases if case.hidden)
    return replace(report, hidden=False, cases=cases, to_come=(*report.to_come, *hidden))


def _hints(hints: Sequence[str]) -> str:
    """Put each hint inside the previous hint, so that readers open them one after the other."""
    nested = ""
    for number in range(len(hints), 0, -1):
        nested = (
            f'<details class="hint"><summary>Hint {number} of {len(hints)}</summary>'
            f"<p>{with_marks(hints[number - 1])}</p>{nested}</details>"
        )
    return nested


def _python(code: str) -> str:
    """Return highlighted Python code in the theme's style; its class makes the copy button work."""
    return f'<div class="highlight-python notranslate">{highlight(code, PythonLexer(), HtmlFormatter())}</div>'


def prediction_html(prediction: Prediction | NumberPrediction) -> str:
    """Return a question with a button per answer, or a slider and a field for a number.

    `site.js` shows the verdict; without scripts readers can unfold it.
    """
    if isinstance(prediction, NumberPrediction):
        answer, asked = prediction.text(prediction.answer), _guess(prediction)
    else:
        answer, asked = prediction.answer, _buttons(prediction)
    return (
        f'<div class="prediction" role="group" aria-label="Prediction"><p class="question"><b>Predict.</b> '
        f"{question_html(prediction.question)}</p>{asked}"
        f'<div class="verdict" role="status"></div><details><summary>The answer</summary><p class="because">'
        f"<b>The answer: {escape(answer)}.</b> {question_html(prediction.because)}</p></details></div>"
    )


def _buttons(prediction: Prediction) -> str:
    buttons = "".join(
        f'<button type="button" disabled{" data-right" * (option == prediction.answer)}>{escape(option)}</button>'
        for option in prediction.shuffled
    )
    return f'<div class="options">{buttons}</div>'


def _guess(scale: NumberScale) -> str:
    """Return a slider, a field and a button, with the words for each distance from the answer."""
    stops = scale.labels
    data = {
        **{name: getattr(scale, name) for name in ("answer", "low", "high", "unit", "help")},
        "stops": stops,
        "distances": [(*pair, pair[1].startswith(CLOSE)) for pair in scale.distances],
    }
    text = escape(json.dumps(data, ensure_ascii=False, separators=(",", ":")), quote=True)
    return (
        f'<form class="options" data-scale="{text}"><span class="slider">{stops[0]} <input type="range" min="0" '
        f'max="{len(stops) - 1}" value="{scale.start}" aria-label="Your guess, {escape(scale.ends, quote=True)}" '
        f'aria-valuetext="nothing yet" disabled> {stops[-1]}</span> <label>Your guess <input type="text" '
        f'inputmode="decimal" autocomplete="off" placeholder="?" disabled> {escape(scale.unit)}</label> '
        f'<button type="submit" disabled>This is my guess</button></form>'
    )


def image(picture: Picture) -> str:
    """Return a picture with alt text, which loads when readers scroll near it; on a phone it scrolls sideways."""
    return (
        f'<div class="picture"><img src="{FRAMES}/{picture.file}" alt="{escape(picture.alt, quote=True)}" '
        f'width="{picture.width}" height="{picture.height}" style="aspect-ratio:{picture.width}/{picture.height}" '
        'loading="lazy" decoding="async"></div>'
    )


def still(picture: Picture, name: str, note: str = "") -> str:
    """Return a static picture with its caption and a note below it. The `name` must be unique on the page."""
    words = " ".join(filter(None, (code_html(picture.caption), note and f"<i>{escape(note)}</i>")))
    return f'{STILL_MARK} id="{name}">{image(picture)}{words and f"<figcaption>{words}</figcaption>"}</figure>'
