"""A question with a slider and a number field: the reader guesses a number and then sees how far off it is."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from lmcourse.base.text import prose_html, question_html
from lmcourse.widgets.choice import RIGHT, WRONG, again_button
from lmcourse.widgets.live import WIDGET_MIME
from lmcourse.widgets.number_scale import NumberScale


class Guess:
    """A question, a slider and a field for the same number, and the text shown after the button is pressed.

    The first guess on the scale counts. `slider`, `field`, `button`, `verdict` and `again` are its widgets. Without a
    kernel it is shown as a plain list.

    Args:
        question, scale, because: the texts, and the scale with the answer.
        earlier: the reader's earlier guess. If it is on the scale, it is shown with its verdict and the button `again`.
        keep: function that is called with each guess as it was typed.
    """

    def __init__(
        self,
        question: str,
        scale: NumberScale,
        because: str,
        *,
        earlier: str = "",
        keep: Callable[[str], None] = lambda guess: None,
    ) -> None:
        self._question, self._scale, self._because, self._keep = question, scale, because, keep
        width = ipywidgets.Layout
        self.slider = ipywidgets.SelectionSlider(
            options=list(zip(scale.labels, scale.stops, strict=True)),
            index=scale.start,
            readout=False,
            tooltip=f"Your guess, {scale.ends}",
            layout=width(width="24em"),
        )
        self.field = ipywidgets.Text(
            description="Your guess", placeholder="?", continuous_update=False, tooltip="", layout=width(width="15em")
        )
        self.button = ipywidgets.Button(description="This is my guess", layout=width(width="auto", margin="2px 12px"))
        self.verdict, self.again = ipywidgets.HTML(), again_button(self._reset)
        self.slider.observe(self._follow_slider, "index")
        self.field.observe(self._follow_field, "value")
        self.button.on_click(lambda _: self._commit())
        low, high, unit = map(_label, (scale.labels[0], scale.labels[-1], scale.unit))
        row = [low, self.slider, high, self.field, unit, self.button]
        asked = ipywidgets.HTML(f"<b>Predict.</b> {question_html(question)}")
        line = ipywidgets.HBox(row, layout=width(flex_flow="row wrap", align_items="center"))
        self._box = ipywidgets.VBox([asked, line, self.verdict, self.again])
        guess = scale.read(earlier)
        if guess is not None:
            self.field.value = earlier
            self._show(guess)
            self.again.layout.display = None

    def _follow_slider(self, _: object) -> None:
        guess = self._scale.read(self.field.value)
        if guess is None or self._scale.nearest(guess) != self.slider.index:
            self.field.value = self.slider.label

    def _follow_field(self, _: object) -> None:
        guess = self._scale.read(self.field.value)
        if guess is not None:
            self.slider.index = self._scale.nearest(guess)
        if self.field.disabled:
            self._commit()  # while the kernel was busy, the press of the button overtook the number

    def _commit(self) -> None:
        guess = self._scale.read(self.field.value)
        if guess is None:
            self.verdict.value = f'<div role="status">{html.escape(self._scale.help)}</div>'
            return
        self._show(guess)
        self._keep(self.field.value)

    def _show(self, guess: float) -> None:
        scale = self._scale
        self.slider.disabled = self.field.disabled = True  # the button keeps the keyboard focus
        colour = RIGHT if scale.is_close(guess) else WRONG
        text = f'<b style="color: {colour}">{html.escape(scale.verdict(guess))}</b> {question_html(self._because)}'
        self.verdict.value = f'<div role="status" style="max-width: 52em">{text}</div>'

    def _reset(self) -> None:
        self.verdict.value = ""
        self.slider.disabled = self.field.disabled = False
        self.field.focus()

    def __repr__(self) -> str:
        return f"Predict. {self._question}  [ a number {self._scale.ends} ]"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        range_ = html.escape(self._scale.ends)
        return {
            WIDGET_MIME: self._box._repr_mimebundle_()[WIDGET_MIME],
            "text/html": f"<p><b>Predict.</b> {prose_html(self._question)}</p><ul><li>a number {range_}</li></ul>",
            "text/plain": repr(self),
        }


def _label(text: str) -> ipywidgets.HTML:
    return ipywidgets.HTML(html.escape(text))
