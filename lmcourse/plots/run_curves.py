"""Draw the curves of a training run: loss, learning rate and gradient norm, against the number of tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, StrMethodFormatter

from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure
from lmcourse.training.metrics import Record, read_metrics, running_mean

SMOOTHING_STEPS = 50
"""Number of steps over which the loss of a long run is averaged; a short run uses a tenth of its steps."""

_PANEL_HEIGHTS = (3.2, 1.2, 1.4)
"""Heights of the panels, relative to each other: loss, learning rate, norm of the gradient."""

_MAX_MARKED_STEPS = 40
"""Up to this number of steps, each step gets a point, because a line cannot show a single step."""


def training_curves(
    records: Sequence[Record],
    *,
    entropy: float | None = None,
    unit: str = "token",
    clipped: bool = False,
) -> Figure:
    """Draw the curves of a run from its metrics.

    Raises ValueError if there are no steps.

    Args:
        records: the records of its steps, from the trainer.
        entropy: the entropy of the text in nats per token, if it is known: the lower limit of the loss on new text.
        unit: what a token is, for example "byte".
        clipped: whether the norms of the gradients are those after clipping, not before.
    """
    if not records:
        raise ValueError("there are no steps to draw: train for at least one step")
    steps = max(1, min(SMOOTHING_STEPS, len(records) // 10))
    smooth = running_mean([record["loss"] for record in records], steps).tolist()
    result = _result(records, smooth[-1], entropy, unit)
    figure = new_figure(8.0, 6.8)
    loss, rate, norm = _panels(figure, result, unit)
    _draw_loss(loss, records, smooth, f"mean of {steps} steps around it", entropy)
    rates = [record["learning_rate"] for record in records]
    rate.plot(_tokens(records), rates, _style(records), color=PALETTE["green"])
    rate.set_ylim(bottom=0)
    _draw_norm(norm, records)
    return describe(
        figure, caption=_caption(entropy, clipped), alt=f"Curves of a training run. {result}.{_anomalies(records)}"
    )


def run_curves(folder: Path, *, entropy: float | None = None) -> Figure:
    """Draw the curves of the run in a folder (see `training_curves`)."""
    return training_curves(read_metrics(folder / "metrics.jsonl"), entropy=entropy)


def _panels(figure: Figure, title: str, unit: str) -> list[Axes]:
    """Return axes one below the other, with a shared horizontal axis for tokens."""
    grid = figure.add_gridspec(len(_PANEL_HEIGHTS), 1, height_ratios=_PANEL_HEIGHTS)
    labels = (f"loss (nats/{unit})", "learning rate", "gradient norm")
    panels = [new_axes(figure, "", ylabel=label) for label in labels]
    for row, panel in enumerate(panels):
        panel.set_subplotspec(grid[row])
        panel.sharex(panels[0])
        panel.tick_params(labelbottom=panel is panels[-1])
    panels[0].set_title(title, loc="left", fontsize=11, fontweight="bold", pad=26)
    panels[0].xaxis.set_major_formatter(EngFormatter())
    panels[-1].set_xlabel(f"{unit}s seen", fontsize=10)
    figure.align_ylabels(panels)
    return panels


def _draw_loss(
    axes: Axes, records: Sequence[Record], smooth: Sequence[float], name: str, entropy: float | None
) -> None:
    """Draw the training loss with its mean, the validation loss, and a line for the entropy."""
    losses = [record["loss"] for record in records]
    axes.plot(_tokens(records), losses, _style(records), color=PALETTE["sky"], linewidth=0.8, label="training loss")
    axes.plot(_tokens(records), smooth, color=PALETTE["blue"], linewidth=2, label=name)
    if measured := _evaluated(records):
        values = [record["validation_loss"] for record in measured]
        axes.plot(_tokens(measured), values, "o--", color=PALETTE["vermilion"], markersize=5, label="validation loss")
    if entropy is not None:
        axes.axhline(entropy, color="black", linestyle=":", linewidth=1.4, label=f"entropy {entropy:.3f}")
    axes.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=4, frameon=False)


def _draw_norm(axes: Axes, records: Sequence[Record]) -> None:
    """Draw norms on a log scale, with gaps for norms that are not finite, and marks for spikes and skipped updates."""
    norms = [_finite(record["gradient_norm"]) for record in records]
    axes.plot(_tokens(records), [math.nan if n is None else n for n in norms], _style(records), color="black", lw=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if spikes := [record for record in records if "spike" in record]:
        heights = [record["gradient_norm"] for record in spikes]
        axes.plot(_tokens(spikes), heights, "v", color=PALETTE["vermilion"], label="spike")
    if skipped := [record for record in records if "skipped" in record]:
        lowest = min((norm for norm in norms if norm is not None), default=1.0)
        axes.plot(_tokens(skipped), [lowest] * len(skipped), "x", color=PALETTE["orange"], label="no update: overflow")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=9, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=2, frameon=False)


def _result(records: Sequence[Record], smooth: float, entropy: float | None, unit: str) -> str:
    """Return the result of the run, in a sentence without its full stop."""
    measured = _evaluated(records)
    value, name = (measured[-1]["validation_loss"], "Validation") if measured else (smooth, "Mean training")
    steps = (measured or records)[-1]["step"]
    text = f"{name} loss {value:.3f} nats/{unit} after {steps:,} step{'s' * (steps > 1)}"
    if entropy is None:
        return text
    return f"{text}, {abs(value - entropy):.3f} {'above' if value >= entropy else 'below'} the entropy"


def _caption(entropy: float | None, clipped: bool) -> str:
    below = " No model stays below the dotted line on new text: what is above it can be learned."
    line = "" if entropy is None else below
    when = "after" if clipped else "before"
    return (
        f"The loss of a single step depends on its batch; the mean shows the way.{line} "
        f"The gradient norm is that of all gradients together, {when} clipping, on a log scale."
    )


def _anomalies(records: Sequence[Record]) -> str:
    """Return a text with the number of unusual steps, for the alt text."""
    names = {"spike": "Spikes of the gradient norm", "skipped": "Steps without an update"}
    counts = {text: sum(name in record for record in records) for name, text in names.items()}
    return "".join(f" {text}: {count}." for text, count in counts.items() if count)


def _evaluated(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if _finite(record.get("validation_loss")) is not None]


def _tokens(records: Sequence[Record]) -> list[int]:
    return [record["tokens"] for record in records]


def _style(records: Sequence[Record]) -> str:
    """Return the style of a curve as a Matplotlib abbreviation."""
    return ".-" if len(records) <= _MAX_MARKED_STEPS else "-"


def _finite(value: float | None) -> float | None:
    """Return the number, or None if it is not finite, as in the file of a run."""
    return value if value is not None and math.isfinite(value) else None
