"""The numbers that a format can represent: their gaps and their range."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmcourse.numerics import FORMATS, FloatFormat, count_between, find_format, ulp, values_between
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

FORMAT_COLOURS: dict[str, str] = {
    "fp64": PALETTE["black"],
    "fp32": PALETTE["blue"],
    "tf32": PALETTE["sky"],
    "fp16": PALETTE["vermilion"],
    "bf16": PALETTE["green"],
    "e4m3": PALETTE["orange"],
    "e5m2": PALETTE["purple"],
}

_MAX_TICKS = 2000
_MAGNITUDES = (1e-10, 1e6)


def number_line(format: FloatFormat | str = "e4m3", low: float = 0.0, high: float = 8.0) -> Figure:
    """A tick for every value of the format from `low` to `high`; the gaps double at every power of two.

    More than 2000 values in the interval are drawn as a solid band.
    """
    chosen = find_format(format)
    figure = new_figure(8.0, 2.2)
    count = count_between(low, high, chosen)
    if count > _MAX_TICKS:
        axes = new_axes(figure, f"{chosen.name}: about {count:,} values from {low:.3g} to {high:.3g}", "value")
        axes.axvspan(low, high, color=FORMAT_COLOURS["fp32"])
        caption = "Too many values to draw apart: the line looks continuous. Zoom in, or take fewer bits."
    else:
        values = values_between(low, high, chosen)
        count = len(values)
        axes = new_axes(figure, f"{chosen.name}: {count} values from {low:.3g} to {high:.3g}", "value")
        _draw_ticks(axes, values, chosen)
        caption = (
            "One tick per value. The colour changes at every power of two, where the gap doubles. "
            "The purple ticks next to zero are subnormals: they keep the gap of the smallest normal numbers. "
            "Move the right end down to see them."
        )
    margin = (high - low) / 200
    axes.set_xlim(low - margin, high + margin)
    _hide_heights(axes)
    alt = f"Number line of {chosen.name} from {low:.3g} to {high:.3g} with {count} values"
    return describe(figure, caption=caption, alt=alt)


def spacing(formats: Sequence[str] = ("fp32", "fp16", "bf16", "e4m3", "e5m2")) -> Figure:
    """The gap between neighbouring values against magnitude, for each format over its own range."""
    figure = new_figure(8.0, 4.4)
    axes = new_axes(
        figure, "Precision is relative: the gap grows with the value", "magnitude", "gap to next value (ulp)"
    )
    for name in formats:
        format = find_format(name)
        exponents = range(format.min_exponent - format.mantissa_bits, format.max_exponent + 1)
        magnitudes = [math.ldexp(1.0, exponent) for exponent in exponents]
        gaps = [ulp(magnitude, format) for magnitude in magnitudes]
        magnitudes.append(format.max_finite)
        gaps.append(gaps[-1])
        axes.step(magnitudes, gaps, where="post", color=FORMAT_COLOURS[format.name], linewidth=1.8)
        _name_stairs(axes, format)
    axes.set_xscale("log", base=10)
    axes.set_yscale("log", base=10)
    axes.set_xlim(*_MAGNITUDES)
    axes.set_ylim(1e-12, 1e6)
    axes.set_yticks([10.0**power for power in range(-12, 7, 3)])
    caption = (
        "Each stair is one power of two; the slope is the same for all formats, the height is their "
        "precision. A flat start is the subnormal range; a line that reaches the frame continues beyond it."
    )
    alt = f"Gap between neighbouring values against magnitude, both logarithmic, for {', '.join(formats)}"
    return describe(figure, caption=caption, alt=alt)


def _name_stairs(axes: Axes, format: FloatFormat) -> None:
    """Write the name of a format where its stairs begin, or at the right edge if they begin outside."""
    begins_inside = format.min_subnormal > _MAGNITUDES[0]
    place = format.min_subnormal if begins_inside else _MAGNITUDES[1]
    axes.annotate(
        format.name,
        (place, ulp(place, format)),
        xytext=(-5 if begins_inside else 5, 0),
        textcoords="offset points",
        ha="right" if begins_inside else "left",
        va="center",
        fontsize=9.5,
        fontweight="bold",
        color=FORMAT_COLOURS[format.name],
        annotation_clip=False,
    )


def range_precision_map(highlight: str | None = None) -> Figure:
    """Decades of range against significant decimal digits, for all formats; highlighting one fades the rest."""
    chosen = None if highlight is None else find_format(highlight)
    figure = new_figure(8.0, 4.4)
    title = "Range costs exponent bits, precision costs mantissa bits"
    axes = new_axes(figure, title, "magnitude", "significant decimal digits")
    for format in FORMATS.values():
        _draw_range(axes, format, faded=chosen is not None and format != chosen)
    axes.set_xscale("symlog", linthresh=10, linscale=2.5)
    decades = (-308, -38, -10, -5, 0, 5, 10, 38, 308)
    axes.set_xticks(decades, [f"$10^{{{decade}}}$" if decade else "1" for decade in decades])
    axes.set_xlim(-600, 600)
    axes.set_yscale("log")
    axes.set_ylim(0.75, 22)
    axes.set_yticks([1, 2, 3, 5, 10, 16], ["1", "2", "3", "5", "10", "16"])
    axes.minorticks_off()
    caption = (
        "Thick: normal numbers. Thin: subnormals, with fewer and fewer digits. Digits are log10(2) times "
        "(mantissa bits + 1); tf32 and fp16, both 3.3, are drawn slightly apart. Decades far from 1 are "
        "squeezed together."
    )
    alt = "Range against precision: " + "; ".join(_range_text(format) for format in FORMATS.values())
    if chosen is not None:
        alt = f"{alt}; {chosen.name} highlighted"
    return describe(figure, caption=caption, alt=alt)


def _hide_heights(axes: Axes) -> None:
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)


def _draw_ticks(axes: Axes, values: list[float], format: FloatFormat) -> None:
    by_colour: dict[str, list[float]] = {}
    for value in values:
        by_colour.setdefault(_binade_colour(value, format), []).append(value)
    width = 1.6 if len(values) < 200 else 0.7
    for colour, ticks in by_colour.items():
        axes.vlines(ticks, 0, 0.85, color=colour, linewidth=width)


def _binade_colour(value: float, format: FloatFormat) -> str:
    if abs(value) < format.min_normal:
        return PALETTE["purple"]
    return PALETTE["blue"] if math.frexp(value)[1] % 2 else PALETTE["orange"]


def _digits(format: FloatFormat) -> float:
    return (format.mantissa_bits + 1) * math.log10(2)


def _range_text(format: FloatFormat) -> str:
    return f"{format.name} {_digits(format):.1f} digits from {format.min_normal:.3g} to {format.max_finite:.3g}"


def _draw_range(axes: Axes, format: FloatFormat, *, faded: bool) -> None:
    apart = {"tf32": 1.07, "fp16": 1 / 1.07}.get(format.name, 1.0)
    height = _digits(format) * apart
    colour = FORMAT_COLOURS[format.name]
    smallest, normal, largest = (
        math.log10(value) for value in (format.min_subnormal, format.min_normal, format.max_finite)
    )
    alpha = 0.25 if faded else 1.0
    axes.plot([normal, largest], [height, height], color=colour, linewidth=7, solid_capstyle="butt", alpha=alpha)
    axes.plot([smallest, normal], [height, height], color=colour, linewidth=2, alpha=alpha)
    axes.annotate(
        f" {format.name}, {format.bits} bits",
        (largest, height),
        xytext=(2, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=GREY if faded else "black",
    )
