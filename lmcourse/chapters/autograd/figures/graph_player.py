"""Walk a computation graph forward and backward, one assignment at a time."""

from __future__ import annotations

import html

import ipywidgets

from lmcourse.autograd import Graph, example, steps_of
from lmcourse.chapters.autograd.figures.graph import computation_graph, graph_step
from lmcourse.widgets.live import LiveFigure, image_html

_STEP_MILLISECONDS = 1500
_VISUALLY_HIDDEN = "position: absolute; left: -9999px"
"""Style of the text for screen readers; in the picture this text is the title."""


class GraphPlayer(LiveFigure):
    """Previous, next, play and a slider over the steps of both passes of a graph.

    `back`, `forward`, `play`, `slider`, `said` and `picture` are its widgets; all can be reached with Tab, and the
    arrow keys move the slider. The still picture shows the graph after both passes. A name stands for one of
    `lmcourse.autograd.EXAMPLES`; ValueError for an unknown one.
    """

    def __init__(self, graph: Graph | str = "linear regression") -> None:
        self.graph = example(graph) if isinstance(graph, str) else graph
        self.steps = steps_of(self.graph)
        last = len(self.steps) - 1
        self.back = _button("◀ back", "one step back")
        self.forward = _button("next ▶", "one step on")
        self.play = ipywidgets.Play(min=0, max=last, interval=_STEP_MILLISECONDS)
        self.slider = ipywidgets.IntSlider(
            min=0,
            max=last,
            description="step",
            layout=ipywidgets.Layout(width="24em"),
            style={"description_width": "auto"},
        )
        self.said, self.picture = ipywidgets.HTML(), ipywidgets.HTML()
        ipywidgets.jslink((self.play, "value"), (self.slider, "value"))
        self.back.on_click(lambda _: self.move(-1))
        self.forward.on_click(lambda _: self.move(1))
        self.slider.observe(lambda _: self._show(), names="value")
        self._show()
        row = ipywidgets.HBox([self.back, self.forward, self.play, self.slider], layout={"flex_flow": "row wrap"})
        super().__init__([row, self.said, self.picture], computation_graph(self.graph))

    def move(self, steps: int) -> None:
        """Move forward by this many steps, or back if negative; the slider stops at both ends."""
        self.slider.value += steps

    def _show(self) -> None:
        step = self.slider.value
        self.back.disabled, self.forward.disabled = step == 0, step == self.slider.max
        self.said.value = f'<div role="status" style="{_VISUALLY_HIDDEN}">{html.escape(self.steps[step].text)}</div>'
        self.picture.value = image_html(graph_step(self.graph, step))


def _button(text: str, tooltip: str) -> ipywidgets.Button:
    return ipywidgets.Button(description=text, tooltip=tooltip, layout=ipywidgets.Layout(width="6em"))
