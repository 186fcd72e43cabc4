"""Records of a run as curves, and the final loss against the learning rate."""

from __future__ import annotations

from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from lmcourse.chapters.stability.stored import PAIRS, Signs, shown_signs, stored, unknown_signs
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

UNKNOWN = "patient X"
_PANELS = (
    ("loss", "loss (nats)", False),
    ("norm", "norm of the gradient (log axis)", True),
    ("score", "largest |score| (log axis)", True),
    ("log_z", "mean |log Z|", False),
)
_TREATMENT_COLOURS = ((GREY, "o"), (PALETTE["orange"], "s"), (PALETTE["blue"], "^"), (PALETTE["green"], "D"))


def vital_signs(patient: str = "healthy") -> Figure:
    """Four panels over the steps of a stored run: loss, norm of the gradient, largest score, log Z.

    ValueError for a patient that is not shown.
    """
    if patient not in (UNKNOWN, *shown_signs()):
        raise ValueError(f"unknown patient {patient!r}; choose from {', '.join(shown_signs())}")
    signs = unknown_signs() if patient == UNKNOWN else shown_signs()[patient]
    figure = new_figure(8.0, 4.6)
    grid = figure.add_gridspec(2, 2)
    title = "Patient X: what is it?" if patient == UNKNOWN else f"Diagnosis: {patient}"
    for place, (name, label, logarithmic) in enumerate(_PANELS):
        panel = new_axes(figure, label, "step" if place > 1 else "")
        panel.set_subplotspec(grid[place // 2, place % 2])
        panel.set_title(label, loc="left", fontsize=9.5, fontweight="bold")
        panel.plot(signs[name], color=PALETTE["blue"], linewidth=1.4)
        if logarithmic:
            panel.set_yscale("log")
        if name == "loss":
            _draw_guessing(panel, signs)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    caption = f"The first {len(signs['loss'])} steps. Dashed: the loss of guessing; dotted: of a table of byte pairs."
    return describe(figure, caption=caption, alt=f"{title}. {_in_words(signs)}")


def _draw_guessing(panel: Axes, signs: Signs) -> None:
    panel.axhline(signs["guessing"], color=GREY, linestyle="--", linewidth=1.2)
    panel.axhline(PAIRS, color="black", linestyle=":", linewidth=1.2)
    panel.set_ylim(0, min(max(*signs["loss"], 6.0), 30.0))


def _in_words(signs: Signs) -> str:
    parts = []
    for name, label, _ in _PANELS:
        values = signs[name]
        parts.append(f"{label.split(' (')[0]}: largest {max(values):.3g}, last {fmean(values[-5:]):.3g}")
    return "; ".join(parts)


def loss_against_rate() -> Figure:
    """Patient A at three learning rates, untreated and with three treatments: a line per treatment, a dot per seed."""
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "Which learning rates does A survive?", "learning rate (log axis)", "last loss (nats)")
    alt_parts = []
    for (name, losses), (colour, marker) in zip(stored()["rates"].items(), _TREATMENT_COLOURS, strict=True):
        rates = [float(rate) for rate in losses]
        axes.plot(rates, [fmean(seeds) for seeds in losses.values()], "-", color=colour, linewidth=1.8)
        axes.plot([], [], marker + "-", color=colour, label=name)
        for rate, seeds in zip(rates, losses.values(), strict=True):
            axes.plot([rate] * len(seeds), seeds, marker, color=colour, markersize=5, alpha=0.8)
        below = [f"{rate:g}" for rate, seeds in zip(rates, losses.values(), strict=True) if max(seeds) < PAIRS]
        alt_parts.append(f"{name} at {', '.join(below) or 'no rate'}")
    axes.axhline(PAIRS, color="black", linestyle=":", linewidth=1.4, label=f"byte pairs: {PAIRS}")
    axes.set_xscale("log")
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1))
    caption = (
        "A dot is a run, a line connects the means of three seeds. Dotted: a table of byte pairs, which needs no "
        "attention. A run that ends above the dotted line is not saved."
    )
    alt = f"Loss against learning rate. Every seed is below the table of pairs: {'; '.join(alt_parts)}"
    return describe(figure, caption=caption, alt=alt)
