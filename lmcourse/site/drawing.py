"""Draw the frames of a figure one after the other, in less time than as many figures.

A frame starts from where the layout of the one before ended, which mostly is where its own ends, too. Then little moves
while it is laid out, and what `plots.kept_ticks` keeps is kept for long.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from lmcourse.plots.style import pixels


class FrameDrawing:
    """Draws figures that mostly differ in their data alone."""

    def __init__(self) -> None:
        self._shape: tuple[Any, ...] = ()
        self._places: list[Bbox] = []

    def pixels(self, figure: Figure) -> UInt8[np.ndarray, "height width rgba"]:
        """The figure as it is seen; valid until the next one of the same size is drawn in this process."""
        placed = [axes for axes in figure.axes if axes.get_in_layout() and axes.get_subplotspec() is not None]
        shape = (
            *figure.get_size_inches(),
            *(spec.get_geometry() for axes in placed if (spec := axes.get_subplotspec())),
        )
        if shape == self._shape:
            for axes, place in zip(placed, self._places, strict=True):
                axes.set_position(place)
                axes.set_in_layout(True)  # setting a position takes it out of the layout
        seen = pixels(figure, canvas=_Canvas)
        self._shape, self._places = shape, [axes.get_position(original=True) for axes in placed]
        return seen


class _Canvas(FigureCanvasAgg):
    """A canvas whose renderer is that of all figures of its size: it knows the sizes of the texts that it has drawn."""

    def get_renderer(self) -> RendererAgg:
        width, height = self.figure.bbox.size
        return _renderer(width, height, self.figure.dpi)


@cache
def _renderer(width: float, height: float, dpi: float) -> RendererAgg:
    return RendererAgg(width, height, dpi)  # type: ignore[no-untyped-call]
