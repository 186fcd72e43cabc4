"""Figures of what came of the forecasts, of the settled questions, and of the sources' slips."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from lmcourse.models.zoo import all_models
from lmcourse.models.zoo.course import COURSE_SOURCE
from lmcourse.models.zoo.entry import Entry
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

SLIPS = {
    "blog notes": (17, 7, 15, 16),
    "LaTeX notes": (26, 1, 11, 7),
    "model notes": (7, 0, 9, 3),
    "midterm review": (5, 0, 10, 7),
    "lecture, as transcribed": (13, 0, 6, 6),
}
"""Slips found in each source: wrong, does not run, inconsistent, misleading."""

CHOICES = ("RMSNorm", "RoPE", "gated", "pre-norm", "no biases")


def predicted_and_measured(
    predicted: Mapping[str, float], measured: Mapping[str, float], bands: Mapping[str, float]
) -> Figure:
    """How far each measured number is from its forecast, as a share of it; the bar is the band."""
    figure = new_figure(8.0, 0.55 * len(predicted) + 1.4)
    axes = new_axes(figure, "Measured against predicted", "measured / predicted − 1")
    axes.use_sticky_edges = False  # bars at the edge would leave no margin for points
    said = []
    for row, name in enumerate(predicted):
        error = measured[name] / predicted[name] - 1
        colour = PALETTE["blue"] if abs(error) <= bands[name] else PALETTE["vermilion"]
        axes.barh([row], [2 * bands[name]], left=-bands[name], color=GREY, alpha=0.25, height=0.5)
        axes.plot([error], [row], "o", color=colour)
        said.append(f"{name} {'inside' if abs(error) <= bands[name] else 'outside'}")
    axes.axvline(0, color=PALETTE["black"], linewidth=0.8)
    axes.set_yticks(range(len(predicted)), list(predicted))
    axes.invert_yaxis()
    caption = "Bars: the bands that were promised. Where a band is 0, a point on the line is right to the last digit."
    return describe(figure, caption=caption, alt=f"Measured against predicted: {', '.join(said)}.")


def rate_by_width(rates: Mapping[int, float]) -> Figure:
    """FLOPs per second that models of different widths reach on this machine."""
    figure = new_figure(8.0, 3.0)
    axes = new_axes(figure, "What this machine does, by width", "d_model", "10⁹ FLOPs per second")
    axes.plot([*rates], [rate / 1e9 for rate in rates.values()], "o-", color=PALETTE["blue"])
    axes.set_xticks([*rates])
    axes.set_ylim(0)
    caption = "The same code on the same machine: small matrices do not fill it."
    return describe(figure, caption=caption, alt=f"Rates of models {', '.join(map(str, rates))} wide.")


def has_choice(entry: Entry, choice: str) -> bool:
    """Return True if a model of the zoo makes this choice."""
    decoder = entry.decoder
    found = {
        "RMSNorm": decoder.block.norm.kind == "rms",
        "RoPE": any(layer.attention.rotary is not None for layer in decoder.layers),
        "gated": decoder.layers[0].feed_forward.gated,
        "pre-norm": decoder.block.placement == "pre",
        "no biases": not (decoder.layers[0].attention.bias or decoder.layers[0].feed_forward.bias),
    }
    return found[choice]


def published(first: int, last: int) -> list[Entry]:
    """The published models of the zoo from these years, both included."""
    return [entry for entry in all_models() if first <= entry.year <= last and entry.source != COURSE_SOURCE]


def consensus(choice: str = "RMSNorm") -> Figure:
    """The share of the zoo's published models that make a choice, by year."""
    if choice not in CHOICES:
        raise ValueError(f"there is no choice {choice!r}; there are {', '.join(CHOICES)}")
    years = sorted({entry.year for entry in published(2017, 2030)})
    shares = {}
    for year in years:
        entries = published(year, year)
        shares[year] = sum(has_choice(entry, choice) for entry in entries) / len(entries)
    figure = new_figure(8.0, 3.0)
    axes = new_axes(figure, f"Who chose it: {choice}", "year of publication", "share of its models")
    axes.bar([*shares], [*shares.values()], color=PALETTE["blue"])
    axes.set_xticks(years)
    axes.set_ylim(0, 1.1)
    for year, share in shares.items():
        axes.text(year, share + 0.01, f"{len(published(year, year))}", ha="center", fontsize=8, color=GREY)
    caption = "Numbers: how many models of that year the zoo has. Where they are few, a bar says little."
    alt = f"Share with {choice} by year: " + ", ".join(f"{year} {share:.0%}" for year, share in shares.items())
    return describe(figure, caption=caption, alt=alt)


def slips_by_source() -> Figure:
    """How many slips of which kind each of the five sources has."""
    figure = new_figure(8.0, 3.0)
    total = sum(map(sum, SLIPS.values()))
    axes = new_axes(figure, f"{total} slips in five sets of notes", "slips")
    kinds = ("wrong", "does not run", "inconsistent", "misleading")
    colours = (PALETTE["vermilion"], PALETTE["black"], PALETTE["orange"], PALETTE["sky"])
    left = [0] * len(SLIPS)
    for position, (kind, colour) in enumerate(zip(kinds, colours, strict=True)):
        counts = [slips[position] for slips in SLIPS.values()]
        axes.barh([*SLIPS], counts, left=left, color=colour, label=kind)
        left = [start + count for start, count in zip(left, counts, strict=True)]
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False)
    caption = "All were good notes, by people who know the matter. Your own have as many: that is what checking is for."
    alt = "; ".join(
        f"{source}: {', '.join(f'{n} {k}' for n, k in zip(slips, kinds, strict=True))}"
        for source, slips in SLIPS.items()
    )
    return describe(figure, caption=caption, alt=alt)
