"""Tries at a run: the MFU and the held-out loss of each."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure


def tries(found: Mapping[str, tuple[float, float]]) -> Figure:
    """Draw MFU (0 to 1) and held-out loss of each try, a dot each; the first is the given run.

    ValueError if there is no try, or an MFU is not from 0 to 1.
    """
    if not found or not all(0 <= mfu <= 1 for mfu, _ in found.values()):
        raise ValueError("there must be tries, each with an MFU from 0 to 1")
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "More FLOP/s, and what they are good for", "MFU (%)", "held-out loss (nats per byte)")
    for place, (name, (mfu, loss)) in enumerate(found.items()):
        axes.plot([100 * mfu], [loss], "o", color=PALETTE["vermilion" if place else "blue"], markersize=8)
        axes.annotate(name, (100 * mfu, loss), (8, 4), textcoords="offset points", fontsize=8)
    axes.set_xlim(0, 130 * max(mfu for mfu, _ in found.values()) + 30)
    axes.set_ylim(0, 1.2 * max(loss for _, loss in found.values()))
    parts = "; ".join(f"{name}: MFU {mfu:.1%}, loss {loss:.2f}" for name, (mfu, loss) in found.items())
    caption = "A dot for each try; the given run is blue. Good runs lie to the right, and low."
    return describe(figure, caption=caption, alt=f"MFU and held-out loss. {parts}")
