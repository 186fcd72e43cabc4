"""Speed up the layout of a figure by computing its ticks once, not each time the layout needs them.

Matplotlib's constrained layout requests the ticks and the sizes of all labels about thirty times per draw, although
they change only when axes move. So they are cached while nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure

_DIGITS = 6
"""Decimals to which pixel positions are rounded: movements of less than a millionth of a pixel are ignored."""


@contextmanager
def kept_ticks(figure: Figure) -> Iterator[None]:
    """Let each axis recompute its ticks and label boxes only when its limits or position have changed.

    Inside the `with` block the figure may be drawn, but must not be changed in other ways.
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
    del axis._update_ticks, axis._get_ticklabel_bboxes  # the methods of the class are visible again
