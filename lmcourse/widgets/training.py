"""A live plot of a training run in a notebook."""

from __future__ import annotations

import base64
import html
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import ipywidgets
from IPython.display import display
from matplotlib.figure import Figure

from lmcourse.plots import mimebundle
from lmcourse.plots.run_curves import SMOOTHING_STEPS, training_curves
from lmcourse.plots.style import PALETTE
from lmcourse.training.callbacks import ProgressLine
from lmcourse.training.metrics import Record, running_mean
from lmcourse.widgets.live import image_html

ALT_TEXT = "Curves of a training run"
"""The text for a terminal. Losses differ a little between machines, so only the picture's description contains them."""

WIDTH, HEIGHT, MARGIN = 640, 200, 16
"""Width, height and margin of the sketch in pixels; a line of text fits into the margin."""

MAX_POINTS = 320
"""Largest number of points of the curve in the sketch."""


class LivePlot:
    """A callback that shows a run inside a `with` block.

        with LivePlot(entropy=0.62) as plot:
            Trainer(model, config, tokens, folder, callbacks=[plot]).run()

    During the run it shows a sketch of the mean loss with a line of numbers, redrawn every second, because Matplotlib
    takes longer than ten steps of a small model. At the end, even if the run was stopped, it shows `training_curves`.
    All of this is one output: without widgets (GitHub, a PDF), only the final picture is shown.

    Args:
        entropy: the entropy of the text in nats per token, if it is known.
        seconds: least time between two sketches.
        clock: returns the time in seconds.
        unit, clipped: what a token is, and whether the norms are those after clipping (see `training_curves`).

    Attributes:
        view: the widget of the plot.
    """

    def __init__(
        self,
        *,
        entropy: float | None = None,
        seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        unit: str = "token",
        clipped: bool = False,
    ) -> None:
        self.view = ipywidgets.HTML("Waiting for the first step …")
        self._entropy, self._seconds, self._clock = entropy, seconds, clock
        self._unit, self._clipped = unit, clipped
        self._records: list[Record] = []
        self._progress_line = ProgressLine()
        self._drawn: float | None = None
        self._still: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self._display: Any = None

    @property
    def figure(self) -> Figure:
        """Return the curves so far; raise ValueError before the first step."""
        return training_curves(self._records, entropy=self._entropy, unit=self._unit, clipped=self._clipped)

    def __call__(self, record: Record) -> None:
        """Record a step, and redraw if enough time has passed."""
        self._records.append(record)
        self._progress_line.update(record)
        if self._drawn is None or self._clock() - self._drawn >= self._seconds:
            self.view.value = self._sketch()
            self._drawn = self._clock()

    def __enter__(self) -> LivePlot:
        self._display = display(self, display_id=True)  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._records:
            return
        self._still = mimebundle(self.figure)
        self.view.value = image_html(self._still)
        if self._display is not None:  # None in a plain Python process, which cannot display anything
            self._display.update(self)

    def __repr__(self) -> str:
        return ALT_TEXT

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (data, metadata) for Jupyter, with the widget and, at the end, `image/png`."""
        data, metadata = self._still
        return {**self.view._repr_mimebundle_(), **data, "text/plain": ALT_TEXT}, metadata

    def _sketch(self) -> str:
        """Return the mean loss as an <img>, with the numbers of the last step below it."""
        losses = [record["loss"] for record in self._records]
        numbers = f"step {self._records[-1]['step']:,} · {self._progress_line.format(self._records[-1])}"
        picture = base64.b64encode(
            sketch(running_mean(losses, SMOOTHING_STEPS).tolist(), self._entropy).encode()
        ).decode()
        alt = html.escape(f"Sketch of the loss. {numbers}", quote=True)
        return f'<img alt="{alt}" src="data:image/svg+xml;base64,{picture}"><div>{html.escape(numbers)}</div>'


def sketch(values: Sequence[float], baseline: float | None = None) -> str:
    """Return a curve as SVG, with equal steps from left to right and its highest and lowest values as numbers.

    Args:
        values: at least one value; if there are many, some are left out.
        baseline: a value that gets a dotted line.
    """
    shown = [*values[:: len(values) // MAX_POINTS + 1], values[-1]]
    known = [*shown] if baseline is None else [*shown, baseline]
    low, high = min(known), max(known)

    def height_of(value: float) -> float:
        return MARGIN + (HEIGHT - 2 * MARGIN) * (high - value) / ((high - low) or 1)

    points = " ".join(f"{WIDTH * i / (len(shown) - 1):.1f},{height_of(v):.1f}" for i, v in enumerate(shown))
    path = "" if baseline is None else f"M0 {height_of(baseline):.1f}H{WIDTH}"
    line = path and f'<path d="{path}" stroke="black" stroke-dasharray="2 4"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{line}'
        f'<polyline points="{points}" fill="none" stroke="{PALETTE["blue"]}" stroke-width="2"/>'
        f'<text x="{WIDTH}" y="12" font-size="12" text-anchor="end">{high:.3f}</text>'
        f'<text x="0" y="{HEIGHT - 3}" font-size="12">{low:.3f}</text></svg>'
    )
