"""A question with buttons: the reader chooses an answer and then sees the explanation."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from lmcourse.base.text import prose_html, question_html
from lmcourse.widgets.live import WIDGET_MIME

RIGHT = "var(--jp-success-color1, #2e7d32)"
WRONG = "var(--jp-warn-color0, #b35c00)"


class Choice:
    """A question, a button per answer, and the text shown after the first press; later presses change nothing.

    `buttons`, `verdict` and `again` are its widgets. Without a kernel it is shown as a plain list. Raises ValueError if
    the answer is not among the options.

    Args:
        question, options, answer, because: the texts.
        earlier: the reader's earlier choice. If it is an option, it is shown with its verdict and the button `again`.
        keep: function that is called with each choice.
    """

    def __init__(
        self,
        question: str,
        options: Sequence[str],
        answer: str,
        because: str,
        *,
        earlier: str = "",
        keep: Callable[[str], None] = lambda choice: None,
    ) -> None:
        if answer not in options:
            raise ValueError(f"the answer {answer!r} is not among the options")
        self._question, self._options, self._answer, self._because = question, tuple(options), answer, because
        self._keep = keep
        self.buttons = [_button(option) for option in options]
        self.verdict, self.again = ipywidgets.HTML(), again_button(self._reset)
        for button in self.buttons:
            button.on_click(self._commit)
        row = ipywidgets.HBox(self.buttons, layout=ipywidgets.Layout(flex_flow="row wrap"))
        asked = ipywidgets.HTML(f"<b>Predict.</b> {question_html(question)}")
        self._box = ipywidgets.VBox([asked, row, self.verdict, self.again])
        if earlier in self._options:
            self._show(earlier)
            self.again.layout.display = None

    def _commit(self, pressed: ipywidgets.Button) -> None:
        if not self.verdict.value:  # a disabled button would lose the keyboard focus
            self._show(pressed.description)
            self._keep(pressed.description)

    def _show(self, own: str) -> None:
        answer = self._answer
        for button in self.buttons:
            if button.description == answer:
                button.button_style, button.icon = "success", "check"
            elif button.description == own:
                button.button_style, button.icon = "warning", "times"
        word, colour = ("Yes.", RIGHT) if own == answer else (f"You chose “{own}”. The answer: {answer}.", WRONG)
        text = f'<b style="color: {colour}">{html.escape(word)}</b> {question_html(self._because)}'
        self.verdict.value = f'<div role="status" style="max-width: 52em">{text}</div>'

    def _reset(self) -> None:
        self.verdict.value = ""
        for button in self.buttons:
            button.button_style = button.icon = ""
        self.buttons[0].focus()

    def __repr__(self) -> str:
        return f"Predict. {self._question}  [ {' | '.join(self._options)} ]"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        items = "".join(f"<li>{html.escape(option)}</li>" for option in self._options)
        return {
            WIDGET_MIME: self._box._repr_mimebundle_()[WIDGET_MIME],
            "text/html": f"<p><b>Predict.</b> {prose_html(self._question)}</p><ul>{items}</ul>",
            "text/plain": repr(self),
        }


def again_button(reset: Callable[[], None]) -> ipywidgets.Button:
    """Return a hidden button "Answer again" that calls `reset` and hides. `reset` moves the keyboard focus."""
    layout = ipywidgets.Layout(width="auto", align_self="flex-start", display="none")
    again = ipywidgets.Button(description="Answer again", layout=layout)

    def press(_: ipywidgets.Button) -> None:
        reset()
        again.layout.display = "none"

    again.on_click(press)
    return again


def _button(option: str) -> ipywidgets.Button:
    return ipywidgets.Button(description=option, layout=ipywidgets.Layout(width="auto", margin="2px 6px 2px 0"))
