"""A prediction as a form that answers by itself."""

from __future__ import annotations

from html import escape

from lmcourse.exercises.prediction import Prediction
from lmcourse.text import prose_html


def prediction_html(prediction: Prediction) -> str:
    """A question with a button per answer; the verdict is in the page, and told by `site.js`.

    Without a script the answer can be unfolded.
    """
    marks = (" data-right" if option == prediction.answer else "" for option in prediction.options)
    buttons = "".join(
        f'<button type="button" disabled{mark}>{escape(option)}</button>'
        for option, mark in zip(prediction.options, marks, strict=True)
    )
    return (
        f'<div class="prediction" role="group" aria-label="Prediction"><p class="question"><b>Predict.</b> '
        f'{prose_html(prediction.question)}</p><div class="options">{buttons}</div>'
        f'<div class="verdict" role="status"></div><details><summary>The answer</summary><p class="because">'
        f"<b>{escape(_sentence(prediction.answer))}</b> {prose_html(prediction.because)}</p></details></div>"
    )


def _sentence(answer: str) -> str:
    return f"It is {answer}."
