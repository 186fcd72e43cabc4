"""Every bit of the explorer flips the bit it says, and the table says what the bits mean."""

import math

import pytest

from lmcourse import plots
from lmcourse.chapters.floating_point import figures
from lmcourse.chapters.floating_point.figures import BitExplorer
from lmcourse.chapters.floating_point.figures.bit_explorer import bit_tooltip, exact_text, readout_html
from lmcourse.numerics import BF16, E4M3, FORMATS, FP16, FP32, decode, encode


@pytest.mark.parametrize("bit", range(16))
def test_toggling_a_bit_of_fp16_flips_it_in_the_code(bit: int) -> None:
    explorer = BitExplorer("fp16", 1.0)
    explorer.bits[bit].value = not explorer.bits[bit].value
    expected = 0x3C00 ^ 1 << bit
    assert explorer.code == expected
    assert explorer.value == decode(expected, FP16) or math.isnan(explorer.value)
    assert explorer.readout.value == readout_html(expected, FP16)
    assert explorer.bits[bit].description == str(int(explorer.bits[bit].value))
    explorer.bits[bit].value = not explorer.bits[bit].value
    assert explorer.code == 0x3C00


@pytest.mark.parametrize("name", FORMATS)
def test_buttons_stand_in_the_order_of_the_bits(name: str) -> None:
    explorer = BitExplorer(name, -0.1)
    row = explorer.children[2].children
    assert "".join(button.description for button in row) == f"{explorer.code:0{FORMATS[name].bits}b}"
    assert row[0].tooltip == "sign bit, 1 is negative"


def test_changing_the_format_keeps_the_value_and_rebuilds_the_buttons() -> None:
    explorer = BitExplorer("fp16", 0.1)
    explorer.formats.value = "e4m3"
    assert explorer.format is E4M3
    assert explorer.code == encode(0.1, E4M3)
    assert len(explorer.children[2].children) == 8
    explorer.bits[7].value = True
    assert explorer.value == -decode(encode(0.1, E4M3), E4M3)


def test_a_change_of_format_rounds_the_number_that_was_typed_and_not_what_became_of_it() -> None:
    explorer = BitExplorer("fp16")
    explorer.entry.value = "0.1"
    explorer.formats.value = "fp32"
    assert explorer.code == encode(0.1, FP32)
    explorer.formats.value = "e4m3"
    explorer.formats.value = "fp32"
    assert explorer.code == encode(0.1, FP32)


@pytest.mark.parametrize(
    ("start", "code", "text"),
    [(1.0, 0x3C01, "1.0009765625"), (math.nan, 0x7E01, "nan"), (-0.0, 0x8001, "-5.960464477539063e-08")],
)
def test_clicking_a_bit_writes_the_value_and_a_change_of_format_keeps_it(start: float, code: int, text: str) -> None:
    explorer = BitExplorer("fp16", start)
    explorer.bits[0].value = True
    assert (explorer.code, explorer.entry.value) == (code, text)
    explorer.formats.value = "fp32"
    assert math.isnan(explorer.value) if text == "nan" else explorer.value == decode(code, FP16)


def test_typing_a_number_sets_the_bits() -> None:
    explorer = BitExplorer("bf16")
    explorer.entry.value = "3.14159"
    assert explorer.value == 3.140625
    explorer.entry.value = "-inf"
    assert explorer.code == 0xFF80


def test_typing_nonsense_is_shown_and_changes_nothing() -> None:
    explorer = BitExplorer("bf16", 2.0)
    explorer.entry.value = "<two>"
    assert "ValueError: could not convert string to float: &#x27;&lt;two&gt;&#x27;" in explorer.readout.value
    assert explorer.value == 2.0


def test_the_still_figure_is_the_bit_pattern_of_the_start() -> None:
    explorer = BitExplorer("fp16", 1.0)
    before, metadata = explorer._repr_mimebundle_()
    assert {key: before[key] for key in ("image/png", "text/plain")} == plots.mimebundle(
        figures.bit_pattern(0x3C00, "fp16")
    )[0]
    assert before["text/plain"] == metadata["image/png"]["alt"]
    explorer.bits[0].value = True
    assert explorer._repr_mimebundle_()[0] == before


@pytest.mark.parametrize(
    ("bit", "tooltip"),
    [
        (15, "sign bit, 1 is negative"),
        (14, "exponent bit 4, worth 2^4"),
        (10, "exponent bit 0, worth 2^0"),
        (9, "fraction bit 9, worth 2^-1"),
        (0, "fraction bit 0, worth 2^-10"),
    ],
)
def test_tooltips_say_what_a_bit_is_worth(bit: int, tooltip: str) -> None:
    assert bit_tooltip(bit, FP16) == tooltip
    assert BitExplorer("fp16").bits[bit].tooltip == tooltip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1 = 1 × 2<sup>0</sup>"),
        (-6.5, "-6.5 = -13 × 2<sup>-1</sup>"),
        (0.0999755859375, "0.0999755859375 = 819 × 2<sup>-13</sup>"),
        (96.0, "96 = 3 × 2<sup>5</sup>"),
        (2.0**-133, "≈ 9.183549615799121e-41 = 1 × 2<sup>-133</sup>"),
        (-0.0, "-0.0"),
        (math.inf, "inf"),
    ],
)
def test_exact_values(value: float, text: str) -> None:
    assert exact_text(value) == text


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (
            0x3F80,
            ["127 − 127 = 0, so 1 before the point, times 2<sup>0</sup>", "0 / 2<sup>7</sup>", "0x3f80"],
        ),
        (0x0001, ["all zeros, so 0 before the point, times 2<sup>-126</sup>", "subnormal", "0.0 and 1.8"]),
        (0xFF80, ["all ones, reserved", "infinity", "1: negative", "none"]),
        (0x7F7F, ["normal", " and inf"]),
    ],
)
def test_the_readout_explains_the_fields(code: int, parts: list[str]) -> None:
    readout = readout_html(code, BF16)
    for part in parts:
        assert part in readout
