"""The figures of notebook 11: what they show, read from the artists, and what they refuse."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from lmcourse import plots
from lmcourse.chapters.feed_forward import figures
from tests.plots.figures import check_figure, name_of

LOSSES = {"none": [1.2, 1.3, 1.25], "ReLU": [1.0, 1.1, 1.2]}
DRAWINGS: list[Callable[..., Figure]] = [
    figures.activation_zoo,
    figures.activation_explorer,
    figures.universal_fit,
    figures.elementwise_roofline,
    figures.gate_surface,
    figures.matched_parameters,
    figures.width_ratios,
    figures.ratio_trade,
    figures.glue_scores,
    partial(figures.ablation_losses, LOSSES, 0.22),
    partial(figures.activation_explorer, "selu", 3.0, -4.0),
    partial(figures.elementwise_roofline, "v100-sxm-32gb"),
    partial(figures.matched_parameters, 16_384, 1024),
    partial(figures.glue_scores, 16),
]
TORCHS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "elu": F.elu, "selu": F.selu}


def lines(axes: Axes) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The labelled curves."""
    return {str(line.get_label()): (line.get_xdata(), line.get_ydata()) for line in axes.lines}  # type: ignore[misc]


@pytest.mark.parametrize("draw", DRAWINGS, ids=name_of)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_the_zoo_draws_torchs_functions() -> None:
    drawn = lines(figures.activation_zoo().axes[0])
    for name, label in (("relu", "ReLU"), ("gelu", "GELU"), ("silu", "SiLU"), ("elu", "ELU"), ("selu", "SELU")):
        x, y = drawn[label]
        np.testing.assert_allclose(y, TORCHS[name](torch.as_tensor(np.asarray(x))), atol=1e-12)


@pytest.mark.parametrize("name", TORCHS)
def test_the_explorer_draws_function_slope_and_gate(name: str) -> None:
    drawn = lines(figures.activation_explorer(name, 1.0, 0.5).axes[0])
    x, y = drawn["f(x)"]
    at = torch.as_tensor(np.asarray(x))
    step = 1e-6
    np.testing.assert_allclose(y, TORCHS[name](at), atol=1e-12)
    slope = (TORCHS[name](at + step) - TORCHS[name](at - step)) / (2 * step)
    np.testing.assert_allclose(drawn["slope f′(x)"][1], slope, atol=1e-6)
    np.testing.assert_allclose(drawn["gate f(x) / x"][1] * np.asarray(x), y, atol=1e-12)


def test_the_dips_are_where_they_are_known_to_be() -> None:
    assert plots.alt_text(figures.activation_explorer("gelu")).endswith("lowest -0.170 at -0.75")
    assert plots.alt_text(figures.activation_explorer("silu")).endswith("lowest -0.278 at -1.28")
    assert plots.alt_text(figures.activation_explorer("relu")).endswith("no dip")
    assert plots.alt_text(figures.activation_explorer("elu")).endswith("no dip")


def test_a_sharp_silu_is_relu() -> None:
    x, y = lines(figures.activation_explorer("silu", 1000.0).axes[0])["f(x)"]
    np.testing.assert_allclose(y, np.maximum(0, x), atol=1e-3)


@pytest.mark.parametrize("sharpness", [0.0, -1.0])
def test_a_sharpness_is_positive(sharpness: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        figures.activation_explorer("gelu", sharpness)


def test_unknown_names_are_refused() -> None:
    for draw in (figures.activation_explorer, partial(figures.universal_fit, 4)):
        with pytest.raises(ValueError, match="unknown activation 'swish'"):
            draw("swish")
    with pytest.raises(ValueError, match="unknown layer 'SiGLU'"):
        figures.gate_surface("SiGLU")


def error(width: int, activation: str) -> float:
    found = re.search(
        r"largest error on \[−3, 3\] is ([\d.e-]+)", plots.alt_text(figures.universal_fit(width, activation))
    )
    assert found
    return float(found[1])


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_more_units_fit_better(activation: str) -> None:
    errors = [error(width, activation) for width in (2, 8, 32, 64)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02


@pytest.mark.parametrize("width", [1, 64])
def test_without_activation_the_fit_is_the_best_straight_line(width: int) -> None:
    x = np.linspace(-3, 3, 601)
    slope, start = np.polyfit(x, np.sin(2 * x) + x / 3, 1)
    beyond, fit = lines(figures.universal_fit(width, "identity").axes[0])["the network"]
    np.testing.assert_allclose(fit, slope * np.asarray(beyond) + start, atol=1e-9)


def test_a_hidden_layer_has_a_unit() -> None:
    with pytest.raises(ValueError, match="at least 1 unit"):
        figures.universal_fit(0)


@pytest.mark.parametrize(
    ("layer", "gate"),
    [
        ("GLU", torch.sigmoid),
        ("Bilinear", lambda z: z),
        ("ReGLU", F.relu),
        ("GEGLU", F.gelu),
        ("SwiGLU", F.silu),
    ],
)
def test_the_surface_is_gate_times_value(layer: str, gate: Callable[[torch.Tensor], torch.Tensor]) -> None:
    figure = figures.gate_surface(layer, 1.5, -2.0)
    expected = gate(torch.tensor(1.5, dtype=torch.float64)).item() * -2.0
    assert f"= {expected:.3f}. The gate" in plots.alt_text(figure)
    (image,) = [artist for artist in figure.axes[0].get_children() if isinstance(artist, AxesImage)]
    shade = np.asarray(image.get_array())
    z = torch.linspace(-4, 4, shade.shape[1], dtype=torch.float64)
    top = gate(z).numpy() * 4
    np.testing.assert_allclose(np.sign(shade[-1]) * shade[-1] ** 2, top, atol=1e-12)


def test_matched_layers_weigh_the_same_up_to_the_rounding() -> None:
    alt = plots.alt_text(figures.matched_parameters())
    assert "plain, 16,384 wide 134.2 M (100.0 %)" in alt
    assert "gated, 16,384 wide 201.3 M (150.0 %)" in alt
    assert "gated, 11,008 wide 135.3 M (100.8 %)" in alt
    bars = figures.matched_parameters().axes[0].patches
    assert sum(bar.get_width() for bar in bars[5:]) * 1e6 == pytest.approx(3 * 4096 * 11_008)
    with pytest.raises(ValueError, match="at least 1"):
        figures.matched_parameters(0)


def test_ratios_are_those_of_the_papers() -> None:
    alt = plots.alt_text(figures.width_ratios())
    published = {
        "transformer-base": 2048 / 512,
        "gpt-3": 49_152 / 12_288,
        "t5-11b": 65_536 / 1024,
        "t5-v1.1-xxl": 10_240 / 4096,
        "llama-7b": 11_008 / 4096,
        "llama-2-70b": 28_672 / 8192,
        "gemma-2-9b": 14_336 / 3584,
        "gemma-2-27b": 36_864 / 4608,
        "llama-3.1-405b": 53_248 / 16_384,
    }
    for name, ratio in published.items():
        assert f"{name} {ratio:.3g}" in alt
    assert alt.count("(plain)") == 4


def test_the_trade_keeps_the_budget() -> None:
    for ratio in (0.25, 1.0, 4.0, 64.0):
        title = plots.alt_text(figures.ratio_trade(ratio))
        layers = float(re.search(r"([\d.]+) layers", title)[1])  # type: ignore[index]
        assert layers * (4 + 2 * ratio) * 768**2 == pytest.approx(12 * 12 * 768**2, rel=0.05)
    with pytest.raises(ValueError, match="positive"):
        figures.ratio_trade(0.0)


def test_the_glue_table_and_its_noise() -> None:
    figure = figures.glue_scores()
    (score,) = [line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "o"][-1]
    assert score == 84.67
    assert "2.6 deviations above ReLU" in plots.alt_text(figure)
    assert "plus or minus 0.059" in plots.alt_text(figures.glue_scores(16))
    with pytest.raises(ValueError, match="at least 1 run"):
        figures.glue_scores(0)


def test_losses_are_told_with_mean_and_deviation() -> None:
    alt = plots.alt_text(figures.ablation_losses(LOSSES, 0.22))
    for name, values in LOSSES.items():
        assert f"{name} {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" in alt
    with pytest.raises(ValueError, match="at least 2 seeds: once"):
        figures.ablation_losses({**LOSSES, "once": [1.0]}, 0.22)


@pytest.mark.parametrize(
    ("name", "peak", "bandwidth"), [("h100-sxm", 67e12, 3.35e12), ("a100-sxm-80gb", 19.5e12, 2.039e12)]
)
def test_the_roofline_has_the_ridge_of_the_data_sheet(name: str, peak: float, bandwidth: float) -> None:
    alt = plots.alt_text(figures.elementwise_roofline(name))
    assert f"; {peak / bandwidth * 4:.0f} operations per number cost nothing extra" in alt
    assert f"GELU 5.00 FLOPs per byte, {100 * 5 * bandwidth / peak:.0f} % of the peak" in alt
