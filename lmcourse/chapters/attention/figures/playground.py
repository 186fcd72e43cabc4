"""Set queries, keys and values by hand and see which token looks at which."""

from __future__ import annotations

from dataclasses import replace

import ipywidgets
from matplotlib.figure import Figure

from lmcourse.chapters.attention.figures.look import PRESETS, SENTENCE, HandmadeHead, Pair, attention_playground
from lmcourse.plots import mimebundle
from lmcourse.widgets.live import LiveFigure, image_html

_ROLES = {"queries": "query", "keys": "key", "values": "value"}


class AttentionPlayground(LiveFigure):
    """A head on a sentence of six tokens: buttons with starting points, a choice of token, and its six numbers.

    `presets`, `token` and `sliders["keys"][0]` are the controls, `picture` the figure; `hand` holds all vectors.

    Args:
        preset: the starting point.
        token: the token whose numbers are shown first.
    """

    def __init__(self, preset: str = "he finds Tom", token: str = "he") -> None:
        self.hand: HandmadeHead = PRESETS[preset]
        self.presets = ipywidgets.ToggleButtons(options=list(PRESETS), value=preset, description="start with")
        self.presets.style.button_width = "auto"
        self.token = ipywidgets.ToggleButtons(options=list(SENTENCE), value=token, description="token")
        self.token.style.button_width = "auto"
        self.sliders = {role: (_slider(f"{name} 1"), _slider(f"{name} 2")) for role, name in _ROLES.items()}
        still = mimebundle(self._draw())
        self.picture = ipywidgets.HTML(image_html(still))
        self._following = False
        self._follow()
        self.presets.observe(self._start_again, names="value")
        self.token.observe(self._show, names="value")
        for pair in self.sliders.values():
            for slider in pair:
                slider.observe(self._read, names="value")
        columns = ipywidgets.HBox([ipywidgets.VBox(pair) for pair in self.sliders.values()])
        super().__init__([self.presets, self.token, columns, self.picture], still)

    @property
    def query_index(self) -> int:
        """The index of the token whose numbers are shown and whose query is drawn."""
        return SENTENCE.index(self.token.value)

    def _draw(self) -> Figure:
        return attention_playground(self.hand, self.query_index)

    def _redraw(self, change: object = None) -> None:
        self.picture.value = image_html(self._draw())

    def _follow(self) -> None:
        """Move the sliders to the token's numbers."""
        self._following = True
        for role, pair in self.sliders.items():
            for slider, number in zip(pair, getattr(self.hand, role)[self.query_index], strict=True):
                slider.value = number
        self._following = False

    def _show(self, change: object = None) -> None:
        self._follow()
        self._redraw()

    def _start_again(self, change: object) -> None:
        self.hand = PRESETS[self.presets.value]
        self._show()

    def _read(self, change: object) -> None:
        if self._following:
            return
        for role, (first, second) in self.sliders.items():
            point: Pair = (first.value, second.value)
            points = getattr(self.hand, role)
            moved = (*points[: self.query_index], point, *points[self.query_index + 1 :])
            self.hand = replace(self.hand, **{role: moved})
        self._redraw()


def _slider(description: str) -> ipywidgets.FloatSlider:
    return ipywidgets.FloatSlider(
        min=-4.0,
        max=4.0,
        step=0.1,
        description=description,
        readout_format=".1f",
        style={"description_width": "4em"},
        layout=ipywidgets.Layout(width="20em"),
    )
