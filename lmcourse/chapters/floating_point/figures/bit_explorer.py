"""Click the bits of a floating-point number and read its new value."""

from __future__ import annotations

import html
import math
from decimal import Decimal

import ipywidgets

from lmcourse.chapters.floating_point.figures.bits import (
    FIELD_COLOURS,
    bit_pattern,
    field_of_bit,
    hexadecimal,
    is_written_exactly,
)
from lmcourse.numerics import FORMATS, FloatFormat, decode, encode, fields, find_format, neighbours
from lmcourse.widgets.live import LiveFigure, error_html

_MAX_DECIMAL = 40


class BitExplorer(LiveFigure):
    """A button per bit, a choice of format, a field for a number, and a table with the meaning of the bits.

    `bits[n]` is the button of bit n, bit 0 the last; `formats`, `entry` and `readout` are the other widgets. A change
    of format rounds the number in `entry`; a click on a bit writes the new value there.
    ValueError for an unknown format.
    """

    def __init__(self, format: FloatFormat | str = "fp16", value: float = 1.0) -> None:
        self.format = find_format(format)
        self.code = encode(value, self.format)
        self._number = value
        self.formats = ipywidgets.Dropdown(options=list(FORMATS), value=self.format.name, description="format")
        self.entry = ipywidgets.Text(value=f"{value:g}", description="number", continuous_update=False)
        self.readout = ipywidgets.HTML()
        self.bits: list[ipywidgets.ToggleButton] = []
        self._row = ipywidgets.HBox(layout=ipywidgets.Layout(flex_flow="row wrap"))
        self._following = False
        self._build_bits()
        self.formats.observe(self._change_format, names="value")
        self.entry.observe(self._read_entry, names="value")
        first_row = ipywidgets.HBox([self.formats, self.entry])
        still = bit_pattern(self.code, self.format)
        super().__init__([ipywidgets.HTML(_button_colours()), first_row, self._row, self.readout], still)

    @property
    def value(self) -> float:
        """The number that the bits stand for."""
        return decode(self.code, self.format)

    def _build_bits(self) -> None:
        self.bits = [_bit_button(bit, self.format) for bit in range(self.format.bits)]
        for button in self.bits:
            button.observe(self._read_bits, names="value")
        self._row.children = tuple(reversed(self.bits))
        self._show()

    def _show(self) -> None:
        self._following = True
        for bit, button in enumerate(self.bits):
            button.value = bool(self.code >> bit & 1)
            button.description = f"{bit_tooltip(bit, self.format)}: {int(button.value)}"
        self._following = False
        self.readout.value = readout_html(self.code, self.format)

    def _read_bits(self, change: object) -> None:
        if self._following:
            return
        self.code = sum(button.value << bit for bit, button in enumerate(self.bits))
        self._number = self.value
        self._following = True
        self.entry.value = repr(self.value)
        self._following = False
        self._show()

    def _read_entry(self, change: object) -> None:
        if self._following:
            return
        try:
            self._number = float(self.entry.value)
        except ValueError as error:
            self.readout.value = error_html(error)
            return
        self.code = encode(self._number, self.format)
        self._show()

    def _change_format(self, change: object) -> None:
        self.format = find_format(self.formats.value)
        self.code = encode(self._number, self.format)
        self._build_bits()


def readout_html(code: int, format: FloatFormat) -> str:
    """The meaning of a code as an HTML table: its fields, its kind, its exact value and its neighbours."""
    sign, exponent, mantissa, kind = fields(code, format)
    value = decode(code, format)
    rows = {
        "code": hexadecimal(code, format),
        "sign": f"{sign}: {'negative' if sign else 'positive'}",
        "exponent": f"{exponent}: {_exponent_meaning(code, format)}",
        "fraction": f"{mantissa} / 2<sup>{format.mantissa_bits}</sup>",
        "kind": kind,
        "value": exact_text(value),
        "neighbours": "none"
        if kind in ("infinity", "nan")
        else " and ".join(html.escape(repr(neighbour)) for neighbour in neighbours(code, format)),
    }
    cells = "".join(
        f'<tr><th scope="row" style="text-align: left; padding-right: 1em">{name}</th><td>{text}</td></tr>'
        for name, text in rows.items()
    )
    return f'<table aria-live="polite">{cells}</table>'


def exact_text(value: float) -> str:
    """A value as a decimal, in full if that is short, and as an odd integer times a power of two (HTML)."""
    if not math.isfinite(value) or value == 0:
        return repr(value)
    decimal = f"{Decimal(value):f}"
    if len(decimal) > _MAX_DECIMAL:
        decimal = repr(value) if is_written_exactly(value) else f"≈ {value!r}"
    numerator, denominator = value.as_integer_ratio()
    twos = (numerator & -numerator).bit_length() - 1
    power = twos - (denominator.bit_length() - 1)
    return f"{decimal} = {numerator >> twos} × 2<sup>{power}</sup>"


def _exponent_meaning(code: int, format: FloatFormat) -> str:
    _, exponent, _, kind = fields(code, format)
    if kind in ("zero", "subnormal"):
        return f"all zeros, so 0 before the point, times 2<sup>{format.min_exponent}</sup>"
    if kind in ("infinity", "nan"):
        return "all ones, reserved"
    power = exponent - format.bias
    return f"{exponent} − {format.bias} = {power}, so 1 before the point, times 2<sup>{power}</sup>"


def bit_tooltip(bit: int, format: FloatFormat) -> str:
    """Describe a bit and its worth: "exponent bit 3, worth 2^3" or "fraction bit 9, worth 2^-1"."""
    field = field_of_bit(bit, format)
    if field == "sign":
        return "sign bit, 1 is negative"
    if field == "exponent":
        place = bit - format.mantissa_bits
        return f"exponent bit {place}, worth 2^{place}"
    return f"fraction bit {bit}, worth 2^{bit - format.mantissa_bits}"


def _bit_button(bit: int, format: FloatFormat) -> ipywidgets.ToggleButton:
    button = ipywidgets.ToggleButton(
        tooltip=bit_tooltip(bit, format),
        layout=ipywidgets.Layout(width="22px" if format.bits > 19 else "34px", padding="0"),
    )
    button.add_class("lmcourse-bit")
    button.add_class(f"lmcourse-{field_of_bit(bit, format)}")
    return button


def _button_colours() -> str:
    """Return the style of the buttons: their text is for screen readers, and the style adds the visible digit."""
    # Widths are not in em, because the font size of a button is 0.
    digits = (
        ".lmcourse-bit.jupyter-button {font-size: 0}"
        ".lmcourse-bit.jupyter-button::before {font-size: 14px; content: '0'; content: '0' / ''}"
        ".lmcourse-bit.jupyter-button.mod-active::before {content: '1'; content: '1' / ''}"
    )
    rules = (
        f".lmcourse-{field}.jupyter-button {{color: var(--jp-ui-font-color1, black); background: transparent; "
        f"border: 2px solid {colour}}}"
        f".lmcourse-{field}.jupyter-button.mod-active {{color: white; background: {colour}}}"
        for field, colour in FIELD_COLOURS.items()
    )
    return f"<style>{digits} {' '.join(rules)}</style>"
