"""Records of a run as curves, the final loss against the learning rate, and patients with their twins."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from lmcourse.chapters.stability.stored import PAIRS, Signs, shown_signs, stored, unknown_signs
from lmcourse.chapters.stability.ward import Visit
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

UNKNOWN = "patient X"
_PANELS = (
    ("loss", "loss (nats)", False),
    ("norm", "norm of the gradient (log axis)", True),
    ("score", "largest |score| (log axis)", True),
    ("log_z", "mean |log Z|", False),
)
_TREATMENT_COLOURS = ((GREY, "o"), (PALETTE["blue"], "^"))


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
    """The loss against the learning rate, for AdamW with QK-norm and for SGD with clipping, each beside no treatment.

    A dot is a run, a line connects the means of three seeds.
    """
    figure = new_figure(8.0, 3.6)
    grid = figure.add_gridspec(1, 2)
    alt_parts = []
    for place, (optimizer, rows) in enumerate(stored()["rates"].items()):
        axes = new_axes(figure, optimizer, "learning rate (log axis)", "" if place else "last loss (nats)")
        axes.set_subplotspec(grid[0, place])
        for (name, losses), (colour, marker) in zip(rows.items(), _TREATMENT_COLOURS, strict=True):
            rates, label = [float(rate) for rate in losses], "untreated" if name == "none" else name
            means = [fmean(seeds) for seeds in losses.values()]
            axes.plot(rates, means, marker + "-", color=colour, linewidth=1.8, label=label)
            for rate, seeds in zip(rates, losses.values(), strict=True):
                axes.plot([rate] * len(seeds), seeds, marker, color=colour, markersize=4, alpha=0.6)
            said = ", ".join(f"{mean:.2f} at {rate:g}" for rate, mean in zip(rates, means, strict=True))
            alt_parts.append(f"{optimizer}, {label}: {said}")
        axes.axhline(PAIRS, color="black", linestyle=":", linewidth=1.4, label=f"byte pairs: {PAIRS}")
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0, 3.3)
        axes.legend(frameon=False, fontsize=9, loc="lower right")
    caption = (
        "Left: the model of A after 150 steps; right: that of B after 80. A dot is a run, a line connects the means of "
        "three seeds. Dotted: a table of byte pairs. Untreated SGD explodes at 0.5."
    )
    return describe(figure, caption=caption, alt=f"Mean losses. {'; '.join(alt_parts)}")


def round_of(visits: Sequence[Visit]) -> Figure:
    """The loss of each patient over the steps, its untreated twin in grey, and a mark where something was changed."""
    figure = new_figure(8.0, 4.6)
    grid = figure.add_gridspec(2, 2)
    said = []
    for place, visit in enumerate(visits):
        title = f"{visit.patient}: {visit.word or 'no change'}, {visit.end:.2f} (untreated {visit.twin_end:.2f})"
        panel = new_axes(figure, title, "step" if place > 1 else "", "loss (nats)" if place % 2 == 0 else "")
        panel.set_subplotspec(grid[place // 2, place % 2])
        panel.set_title(title, loc="left", fontsize=9, fontweight="bold")
        panel.plot(visit.untreated["loss"], color=GREY, linewidth=1.6, label="untreated")
        panel.plot(visit.treated["loss"], color=PALETTE["blue"], linewidth=1.2, label="yours")
        if visit.word:
            panel.axvline(
                visit.step, color=PALETTE["vermilion"], linewidth=1.4, label=f"changed after {visit.step} steps"
            )
        panel.set_ylim(0, 8)
        panel.legend(frameon=False, fontsize=8, loc="upper right")
        said.append(title)
    return describe(
        figure,
        caption="Grey: the same run untreated. Orange: where it was changed. Losses above 8 are cut off.",
        alt="; ".join(said),
    )
