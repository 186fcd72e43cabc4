"""One code at a time, and all 256 at once: pictures of the bits of a floating-point number."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from lmcourse.numerics import FloatFormat, Kind, decode, fields, find_format
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_drawing_axes, new_figure

FIELD_COLOURS = {"sign": PALETTE["vermilion"], "exponent": PALETTE["blue"], "fraction": PALETTE["green"]}

_MAX_BOX = 0.5
_SIGNED = LinearSegmentedColormap.from_list("signed", [PALETTE["orange"], "white", PALETTE["sky"]]).with_extremes(
    bad="#9AA0A6"
)


def field_of_bit(bit: int, format: FloatFormat) -> str:
    """Return the field of a bit, where bit 0 is the last: "sign", "exponent" or "fraction"."""
    if bit == format.bits - 1:
        return "sign"
    return "exponent" if bit >= format.mantissa_bits else "fraction"


def formula(code: int, format: FloatFormat) -> str:
    """The formula for the value from the fields, as TeX without the dollars."""
    sign, exponent, mantissa, kind = fields(code, format)
    factor = rf"(-1)^{{{sign}}}"
    part = rf"\frac{{{mantissa}}}{{2^{{{format.mantissa_bits}}}}}"
    value = value_text(decode(code, format))
    result = f"= {value}" if is_written_exactly(decode(code, format)) else rf"\approx {value}"
    by_kind: dict[Kind, str] = {
        "normal": rf"{factor} \times 2^{{{exponent}-{format.bias}}} \times \left(1+{part}\right) {result}",
        "subnormal": rf"{factor} \times 2^{{1-{format.bias}}} \times \left(0+{part}\right) {result}",
        "zero": rf"{factor} \times 0 = {value}",
        "infinity": rf"{factor} \times \infty",
        "nan": r"\mathrm{not\ a\ number}",
    }
    return by_kind[kind]


def hexadecimal(code: int, format: FloatFormat) -> str:
    """A code in hexadecimal, with as many digits as its format needs: "0x3c00"."""
    return f"0x{code:0{math.ceil(format.bits / 4)}x}"


def value_text(value: float) -> str:
    """A finite value in TeX, with enough digits to distinguish it from all other fp64 numbers."""
    digits, _, power = repr(value).removesuffix(".0").partition("e")
    return rf"{digits} \times 10^{{{int(power)}}}" if power else digits


def is_written_exactly(value: float) -> bool:
    """Return True if the shortest decimal that Python prints is exactly the finite value."""
    return math.isfinite(value) and Decimal(repr(value)) == Decimal(value)


def bit_pattern(code: int = 0x3C00, format: FloatFormat | str = "fp16") -> Figure:
    """The bits of a code as coloured boxes, the fields named above, the value computed below."""
    chosen = find_format(format)
    sign, exponent, mantissa, kind = fields(code, chosen)
    figure = new_figure(8.0, 2.6)
    axes = new_drawing_axes(figure, f"{chosen.name}: code {hexadecimal(code, chosen)}, {kind}")
    box = min(_MAX_BOX, 7.6 / chosen.bits)
    width = box * chosen.bits
    for bit in range(chosen.bits):
        _draw_bit(axes, width - box * (bit + 1), box, code >> bit & 1, field_of_bit(bit, chosen))
    _name_fields(axes, box, chosen, (sign, exponent, mantissa))
    axes.text(width / 2, -0.55, f"${formula(code, chosen)}$", ha="center", va="center", fontsize=14)
    axes.set_xlim(width / 2 - 4, width / 2 + 4)
    axes.set_ylim(-1.0, 1.15)
    alt = (
        f"{chosen.name} bits {_split_bits(code, chosen)}: sign {sign}, exponent field {exponent}, "
        f"fraction field {mantissa}, {kind}, value {decode(code, chosen)!r}"
    )
    caption = (
        f"Filled boxes are ones. {chosen.name} has {chosen.exponent_bits} exponent bits, "
        f"biased by {chosen.bias}, and {chosen.mantissa_bits} mantissa bits."
    )
    return describe(figure, caption=caption, alt=alt)


def code_grid(format: FloatFormat | str = "e4m3", code: int = 0x38) -> Figure:
    """All 256 codes of an fp8 format as a grid, the given code outlined. ValueError for other formats."""
    chosen = find_format(format)
    if chosen.bits != 8:
        raise ValueError(f"{chosen.name} has {chosen.bits} bits: choose an 8-bit format")
    values = np.array([decode(each, chosen) for each in range(256)]).reshape(16, 16)
    figure = new_figure(8.0, 6.2)
    kind = fields(code, chosen).kind
    meaning = f"code {hexadecimal(code, chosen)} = {_split_bits(code, chosen)} is {decode(code, chosen):g}, {kind}"
    axes = new_axes(
        figure, f"{chosen.name}: {meaning}", "last four bits (hexadecimal)", "first four bits (hexadecimal)"
    )
    axes.imshow(_shade(values, chosen), cmap=_SIGNED, vmin=-1, vmax=1, aspect="auto")
    for (row, column), each in np.ndenumerate(values):
        weight = "normal" if math.isfinite(each) else "bold"
        size = 5.8 if 0 < abs(each) < 0.001 else 6.4  # a power of ten does not fit into its cell in the larger size
        axes.text(column, row, _short(each), ha="center", va="center", fontsize=size, fontweight=weight)
    row, column = divmod(code, 16)
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, linewidth=2.5, edgecolor="black"))
    ticks = [f"{digit:X}" for digit in range(16)]
    axes.set_xticks(range(16), ticks)
    axes.set_yticks(range(16), ticks)
    axes.grid(visible=False)
    caption = (
        "Blue is positive, orange negative, the stronger the larger; values are rounded; grey is NaN or "
        f"infinity. One row down, the magnitude grows {_row_factor(chosen)} times (subnormals aside)."
    )
    special = int(np.count_nonzero(~np.isfinite(values)))
    alt = f"Grid of the 256 codes of {chosen.name}, {special} of them NaN or infinity; {meaning}"
    return describe(figure, caption=caption, alt=alt)


def _split_bits(code: int, format: FloatFormat) -> str:
    """Sign, exponent and fraction in binary, with spaces between."""
    bits = f"{code:0{format.bits}b}"
    first_of_fraction = 1 + format.exponent_bits
    return f"{bits[0]} {bits[1:first_of_fraction]} {bits[first_of_fraction:]}"


def _row_factor(format: FloatFormat) -> int:
    """The factor between the values of two codes that differ by 16: 16 codes are 16 / 2^mantissa_bits powers of two."""
    binades = 16 >> format.mantissa_bits
    return 1 << binades


def _short(value: float) -> str:
    """A value of an fp8 format, rounded to two or three digits where it is small."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if 0 < abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:.3g}"


def _draw_bit(axes: Axes, left: float, box: float, bit: int, field: str) -> None:
    colour = FIELD_COLOURS[field]
    face = colour if bit else "white"
    axes.add_patch(Rectangle((left + 0.015, 0), box - 0.03, 0.6, facecolor=face, edgecolor=colour, linewidth=1.5))
    size, ink = 14 if box > 0.3 else 8, "white" if bit else colour
    axes.text(left + box / 2, 0.29, str(bit), ha="center", va="center", fontsize=size, color=ink)


def _name_fields(axes: Axes, box: float, format: FloatFormat, numbers: tuple[int, int, int]) -> None:
    widths = (1, format.exponent_bits, format.mantissa_bits)
    left = 0.0
    for (field, colour), bits, number in zip(FIELD_COLOURS.items(), widths, numbers, strict=True):
        centre = left + box * bits / 2
        axes.text(centre, 0.98, field, ha="center", va="center", fontsize=9, color=colour)
        axes.text(centre, 0.76, str(number), ha="center", va="center", fontsize=9, color=GREY)
        left += box * bits


def _shade(values: NDArray[np.float64], format: FloatFormat) -> np.ma.MaskedArray:
    """Signed logarithm of the values, scaled to -1…1; masked where not finite."""
    finite = np.ma.masked_invalid(values)
    binades = np.log2(np.maximum(np.abs(finite), format.min_subnormal) / format.min_subnormal) + 1
    shade: np.ma.MaskedArray = np.sign(finite) * binades / np.max(binades)
    return shade
