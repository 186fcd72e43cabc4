"""Lay a figure out faster: ticks are computed once, and not each time the layout asks.

Matplotlib's constrained layout asks for the ticks and the sizes of all labels about thirty times in a draw, though they
change only where it moves the axes. So here they are kept while nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure

_DIGITS = 6
"""Decimals of a pixel: a movement of less than a millionth of a pixel is ignored."""


@contextmanager
def kept_ticks(figure: Figure) -> Iterator[None]:
    """Let each axis recompute its ticks and label boxes only when its limits or position have changed.

    Inside the block the figure may be drawn, but nothing else of it changed.
    """
    with ExitStack() as at_the_end:
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                _keep(axis)
                at_the_end.callback(_restore, axis)
        yield


def _keep(axis: Any) -> None:
    update, measure = axis._update_ticks, axis._get_ticklabel_bboxes
    kept: dict[str, Any] = {}

    def state() -> tuple[float, ...]:
        return *axis.get_view_interval(), *(round(side, _DIGITS) for side in axis.axes.bbox.bounds)

    def kept_ticks() -> Any:
        if kept.get("state") != state():
            kept.clear()
            kept["ticks"] = update()
            kept["state"] = state()  # computing ticks may widen the view
        return kept["ticks"]

    def kept_boxes(ticks: Any, renderer: RendererAgg) -> Any:
        if ticks is not kept.get("ticks") or kept.get("state") != state():
            return measure(ticks, renderer)
        if "boxes" not in kept:
            kept["boxes"] = measure(ticks, renderer)
        return kept["boxes"]

    axis._update_ticks, axis._get_ticklabel_bboxes = kept_ticks, kept_boxes


def _restore(axis: Any) -> None:
    del axis._update_ticks, axis._get_ticklabel_bboxes  # those of the class are there again
