"""Figures of learning rates at several widths: stored sweeps."""

from __future__ import annotations

from statistics import fmean

from matplotlib.figure import Figure

from lmcourse.chapters.training.figures.stored_sweeps import SCALED, STANDARD
from lmcourse.chapters.training.widths import RATES, WIDTHS
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure

_STYLES = {16: ("sky", "o--"), 32: ("blue", "s-"), 64: ("green", "^-."), 128: ("vermilion", "D-")}


def sweep(scaled: bool = False, widest: int = WIDTHS[-1]) -> Figure:
    """The final loss of short runs against the learning rate, a curve per width: the mean of three seeds.

    Args:
        scaled: show the runs whose rates follow the width.
        widest: leave wider models out.
    """
    stored = SCALED if scaled else STANDARD
    title = "The rate follows the width" if scaled else "One rate for all parameters"
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, title, "learning rate of width 32" if scaled else "learning rate", "loss (nats/byte)")
    told = []
    for width in [each for each in WIDTHS if each <= widest]:
        colour, style = _STYLES[width]
        means = [fmean(losses) for losses in stored[width]]
        best = min(range(len(RATES)), key=lambda place, means=means: means[place])  # type: ignore[misc]
        for place, losses in enumerate(stored[width]):
            axes.plot([RATES[place]] * len(losses), losses, ".", color=PALETTE[colour], markersize=4, alpha=0.6)
        axes.semilogx(RATES, means, style, color=PALETTE[colour], linewidth=1.6, markersize=4)
        axes.plot(RATES[best], means[best], "o", color=PALETTE[colour], markersize=11, fillstyle="none")
        axes.annotate(
            f"d = {width}",
            (RATES[0], means[0]),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=9,
            color=PALETTE[colour],
        )
        told.append(f"width {width}: lowest {means[best]:.2f} at {RATES[best]:g}")
    axes.set_xticks(RATES, [f"{rate:g}" for rate in RATES])
    axes.minorticks_off()
    axes.set_xlim(RATES[0] / 1.5, RATES[-1] * 1.15)
    caption = "A dot is a run, a line the mean of three seeds, a ring its lowest point."
    return describe(figure, caption=caption, alt=f"Loss over learning rate. {'; '.join(told)}")
