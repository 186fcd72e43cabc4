"""The figures of notebook 01: what they show, read from the artists, and what they refuse."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse import plots
from lmcourse.chapters.floating_point import figures
from lmcourse.chapters.floating_point.figures.bits import field_of_bit, formula
from lmcourse.numerics import BF16, FORMATS, FP16, FP32, FloatFormat, encode
from tests.plots.figures import check_figure

DRAWINGS: list[Callable[..., Figure]] = [
    figures.bit_pattern,
    figures.code_grid,
    figures.dtype_bytes,
    figures.gradient_histogram,
    figures.number_line,
    figures.quantisation_error,
    figures.range_precision_map,
    figures.running_sums,
    figures.significant_digits,
    figures.softmax_bars,
    figures.softmax_overflow,
    figures.spacing,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(
    draw: Callable[..., Figure],
) -> None:
    check_figure(draw)


@pytest.mark.parametrize("name", FORMATS)
def test_the_bits_are_drawn_from_the_highest_to_the_lowest(name: str) -> None:
    format = FORMATS[name]
    code = encode(-0.1, format)
    boxes = [patch for patch in figures.bit_pattern(code, name).axes[0].patches if isinstance(patch, Rectangle)]
    boxes.sort(key=Rectangle.get_x)
    assert "".join(str(int(box.get_facecolor() != (1, 1, 1, 1))) for box in boxes) == f"{code:0{format.bits}b}"


def test_bits_belong_to_fields() -> None:
    fields = [field_of_bit(bit, FP16) for bit in range(16)]
    assert fields == ["fraction"] * 10 + ["exponent"] * 5 + ["sign"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0x3C00, r"(-1)^{0} \times 2^{15-15} \times \left(1+\frac{0}{2^{10}}\right) = 1"),
        (0x8001, r"\approx -5.960464477539063 \times 10^{-8}"),
        (0x0200, r"(-1)^{0} \times 2^{1-15} \times \left(0+\frac{512}{2^{10}}\right)"),
        (0x8000, r"(-1)^{1} \times 0 = -0"),
        (0xFC00, r"(-1)^{1} \times \infty"),
        (0x7E00, r"\mathrm{not\ a\ number}"),
    ],
)
def test_the_formula_under_the_bits(code: int, expected: str) -> None:
    assert expected in formula(code, FP16)


@pytest.mark.parametrize(("name", "special"), [("e4m3", 2), ("e5m2", 8)])
def test_the_grid_shows_every_code_and_outlines_one(name: str, special: int) -> None:
    figure = figures.code_grid(name, 0xC5)
    axes = figure.axes[0]
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    values = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(FORMATS[name].torch_dtype).double()
    for code, value in enumerate(values.tolist()):
        text = shown[code % 16, code // 16]
        assert len(text) <= 8
        assert float(text) == pytest.approx(value, rel=0.05, nan_ok=True)
    assert f"{special} of them NaN or infinity" in plots.alt_text(figure)
    (outline,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert outline.get_xy() == (4.5, 11.5)


def test_the_grid_is_for_8_bits() -> None:
    with pytest.raises(ValueError, match="fp16 has 16 bits"):
        figures.code_grid("fp16")


def test_the_number_line_counts_what_it_draws() -> None:
    figure = figures.number_line("e5m2", -2.0, 2.0)
    ticks = sum(len(lines.get_segments()) for lines in figure.axes[0].collections)
    assert ticks == 129
    assert plots.alt_text(figure) == "Number line of e5m2 from -2 to 2 with 129 values"
    assert "too many values" in figures.number_line("fp32")._supxlabel.get_text().lower()
    with pytest.raises(ValueError, match="empty"):
        figures.number_line("fp16", 1.0, 1.0)


def test_spacing_follows_the_format_up_to_its_largest_value() -> None:
    (line,) = figures.spacing(["fp16"]).axes[0].lines
    magnitudes, gaps = line.get_data()
    assert magnitudes[0] == gaps[0] == FP16.min_subnormal
    assert (magnitudes[-1], gaps[-1]) == (FP16.max_finite, 32)


def test_highlighting_fades_the_others() -> None:
    lines = figures.range_precision_map("bf16").axes[0].lines
    assert [line.get_alpha() for line in lines].count(1.0) == 2
    with pytest.raises(ValueError, match="unknown float format"):
        figures.range_precision_map("bf61")


def test_running_sums_end_where_they_should() -> None:
    figure = figures.running_sums()
    ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[0].lines}
    assert [f"{end:.4f}" for end in ends.values()] == ["10.0000", "10.0001", "9.9531", "4.0000"]
    assert "bf16: 4" in ends
    with pytest.raises(ValueError, match="at least 1"):
        figures.running_sums(count=0)


@pytest.mark.parametrize("scale", [1.0, 2.0**10, 2.0**30])
def test_the_lost_share_is_what_torchs_cast_loses(scale: float) -> None:
    gradients = torch.from_numpy(10 ** np.random.default_rng(0).normal(-7, 1.5, 100_000)) * scale
    half = gradients.half()
    lost = (half == 0).double().mean().item()
    assert f"lost: {100 * lost:.1f} %" in plots.alt_text(figures.gradient_histogram(scale))


def test_the_histogram_accounts_for_every_gradient() -> None:
    figure = figures.gradient_histogram(1e4)
    heights = sum(patch.get_height() for patch in figure.axes[0].patches)
    assert heights == pytest.approx(100, abs=0.01)


def test_quantisation_errors_match_a_direct_cast() -> None:
    samples = torch.randn(4096, generator=torch.Generator().manual_seed(0)) * 1e-3
    error = (samples.to(torch.float8_e4m3fn).float() - samples).norm() / samples.norm()
    assert f"e4m3 {100 * error:.1f} %" in plots.alt_text(figures.quantisation_error(scale=1e-3))
    with pytest.raises(ValueError, match="no tensors of tf32"):
        figures.quantisation_error(["tf32"])


@pytest.mark.parametrize("draw", [figures.gradient_histogram, figures.quantisation_error], ids=["gradients", "error"])
def test_a_scale_is_positive(draw: Callable[..., Figure]) -> None:
    with pytest.raises(ValueError, match="positive"):
        draw(scale=0.0)


@pytest.mark.parametrize("format", [FP16, BF16, FP32], ids=lambda format: format.name)
@pytest.mark.parametrize("count", [1, 8, 1000])
@pytest.mark.parametrize("logit", [-120.0, -95.0, -17.0, -10.0, 0.0, 4.0, 5.0, 11.0, 11.2, 80.0, 88.0, 89.0])
def test_softmax_outcomes_are_those_of_torch(format: FloatFormat, count: int, logit: float) -> None:
    exps = torch.full((count,), logit, dtype=format.torch_dtype).double().exp().to(format.torch_dtype)
    total = exps.double().sum().to(format.torch_dtype)
    weight = (exps / total)[0].item()
    outcome = figures.naive_softmax_outcome(logit, count, format)
    if math.isnan(weight):
        assert "NaN" in outcome
    else:
        assert outcome == ("the sum overflows: all weights are 0" if weight == 0 else "fine")


def test_the_naive_softmax_needs_a_format_that_overflows() -> None:
    with pytest.raises(ValueError, match="no infinity"):
        figures.softmax_overflow("e4m3")
    with pytest.raises(ValueError, match="at least 1 logit"):
        figures.softmax_overflow(count=0)


@pytest.mark.parametrize(("temperature", "shift"), [(1.0, 0.0), (0.1, 0.0), (5.0, 1000.0)])
def test_softmax_bars_are_torchs_softmax(temperature: float, shift: float) -> None:
    logits = [2.0, 1.0, 0.5]
    bars = figures.softmax_bars(logits, temperature, shift).axes[0].patches
    expected = (torch.tensor(logits, dtype=torch.float64) / temperature).softmax(0).tolist()
    assert [bar.get_height() for bar in bars] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("logits", "temperature"), [((), 1.0), ((1.0,), 0.0)])
def test_softmax_bars_refuse_nothing_and_zero(logits: tuple[float, ...], temperature: float) -> None:
    with pytest.raises(ValueError, match="at least one logit"):
        figures.softmax_bars(logits, temperature)


def test_bytes_of_a_gpt3_matrix() -> None:
    alt = plots.alt_text(figures.dtype_bytes())
    assert "fp32 2,415,919,104 B = 2.25 GiB" in alt
    assert "bool 603,979,776 B = 576 MiB" in alt
    assert "ideal) 75,497,472 B = 72 MiB" in alt
    assert "fp32 128 B," in plots.alt_text(figures.dtype_bytes((4, 8)))
    with pytest.raises(ValueError, match="at least 1"):
        figures.dtype_bytes((4, 0))


def test_avogadro_with_four_digits() -> None:
    figure = figures.significant_digits()
    assert plots.alt_text(figure) == "6.022e+23 to 4 digits is 6.022e23, plus or minus 0.0005e23"
    assert "6.0215" in [label.get_text() for label in figure.axes[0].get_xticklabels()]
    for value, digits in [(0.0, 3), (math.inf, 3), (1.0, 0), (1.0, 16)]:
        with pytest.raises(ValueError, match="significant digits"):
            figures.significant_digits(value, digits)
