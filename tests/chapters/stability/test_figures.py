"""The figures of notebook 16: what they show, read from the artists, and what they refuse."""

import math
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.chapters.stability import figures
from lmcourse.chapters.stability.figures.gradients import simulate_loss_scale
from lmcourse.chapters.stability.figures.map import NORM_MODELS
from lmcourse.chapters.stability.figures.scores import largest_scores
from lmcourse.chapters.stability.figures.softmax import grown_softmax
from tests.plots.figures import check_figure, name_of

RUNS = {"untreated": [[5.0, 3.0, 50.0], [5.0, math.nan]], "cure": [[5.0, 3.0, 2.0], [5.0, 2.0, 1.5]]}
VERDICTS = {"untreated": "exploded", "cure": "saved"}
ENDS = {"untreated": {0.003: 1.0, 0.03: 2.4}, "cure": {0.003: 1.1, 0.03: 1.7}, "close": {0.003: 1.9, 0.03: 1.95}}
SIGNS = {"score": {"untreated": [300.0, math.inf], "cure": [10.0, 200.0]}}
DRAWINGS: list[Callable[..., Figure]] = [
    figures.softmax_of_growing_logits,
    figures.soft_cap_curve,
    figures.score_growth,
    figures.overflow_risks,
    figures.norm_positions,
    figures.gradient_spikes,
    figures.loss_scale_history,
    figures.lost_updates,
    partial(figures.compare_runs, RUNS, VERDICTS, "Patients"),
    partial(figures.training_diagnostics, SIGNS, {"score": 100.0}, "Signs"),
    partial(figures.loss_against_rate, ENDS, 1.91),
    partial(figures.softmax_of_growing_logits, 200.0, "fp16", "10"),
    partial(figures.soft_cap_curve, 10.0, -150.0),
    partial(figures.score_growth, 100.0, 128, 3.0),
    partial(figures.gradient_spikes, 20.0, 0.1),
    partial(figures.loss_scale_history, 1.0, 10),
    partial(figures.lost_updates, 1e-5, 0.01),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=name_of)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize("cap", [None, 10.0, 50.0])
@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_weights_and_slopes_are_torchs(scale: float, cap: float | None) -> None:
    logits = scale * torch.tensor([2.0, 1.0, 0.5, 0.0, -0.5, -1.5], dtype=torch.float64)

    def weigh(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x if cap is None else cap * torch.tanh(x / cap), dim=0)

    found = grown_softmax(scale, "fp64", cap)
    torch.testing.assert_close(found.weights, weigh(logits))
    torch.testing.assert_close(found.slopes, torch.autograd.functional.jacobian(weigh, logits).diag())


@pytest.mark.parametrize(
    ("precision", "last_fine", "first_broken"), [("fp16", 11.0, 11.2), ("bf16", 88.0, 89.5), ("fp32", 88.5, 89.0)]
)
def test_the_naive_softmax_breaks_at_the_logarithm_of_the_largest_number(
    precision: str, last_fine: float, first_broken: float
) -> None:
    assert grown_softmax(last_fine / 2, precision, None).naive == "fine"
    assert grown_softmax(first_broken / 2, precision, None).naive == "NaN"


def test_capped_at_10_no_exponential_overflows_and_in_fp16_the_sum_still_does() -> None:
    assert grown_softmax(100.0, "fp32", 10.0).naive == "fine"
    assert 3 * math.exp(10) > 65_504 > math.exp(10)
    assert grown_softmax(100.0, "fp16", 10.0).naive == "all 0"


def test_more_bits_do_not_bring_a_slope_back() -> None:
    for precision in ("fp32", "bf16", "fp16"):
        assert grown_softmax(20.0, precision, None).slopes.max() < 1e-8
    assert "the first gets 100.0%" in plots.alt_text(figures.softmax_of_growing_logits(20.0, "fp32"))


def test_the_cap_at_50_and_100() -> None:
    alt = plots.alt_text(figures.soft_cap_curve(50.0, 100.0))
    assert alt == "Cap 50: 100 becomes 48.2, and 7% of the gradient comes back"
    lines = {line.get_label(): line for line in figures.soft_cap_curve(30.0).axes[0].lines}
    z = torch.as_tensor(np.asarray(lines["c · tanh(z/c)"].get_xdata())).requires_grad_()
    value = 30 * torch.tanh(z / 30)
    (slope,) = torch.autograd.grad(value.sum(), z)
    np.testing.assert_allclose(lines["c · tanh(z/c)"].get_ydata(), value.detach())
    np.testing.assert_allclose(lines["slope, times c"].get_ydata(), 30 * slope)


@pytest.mark.parametrize("d", [16, 64, 128])
def test_scores_grow_with_the_square_and_normed_ones_stay_under_the_bound(d: int) -> None:
    plain, normed = zip(*(largest_scores(growth, d, 2.0) for growth in (1.0, 10.0, 100.0)), strict=True)
    assert plain[1] / plain[0] == pytest.approx(100)
    assert plain[2] / plain[0] == pytest.approx(10_000)
    assert max(normed) == pytest.approx(min(normed))
    assert max(normed) <= math.sqrt(d) * 4


def test_norms_and_caps_are_those_of_hugging_faces_configurations() -> None:
    from transformers import Gemma2Config, Gemma3TextConfig, Olmo2Config

    alt = plots.alt_text(figures.norm_positions())
    assert Gemma2Config().attn_logit_softcapping == 50
    assert getattr(Gemma3TextConfig(), "attn_logit_softcapping", None) is None
    assert not hasattr(Olmo2Config(), "attn_logit_softcapping")
    assert "gemma-2-9b 4 and a cap of 50, olmo-2-7b 4, gemma-3-4b 6" in alt
    dots = sum(line.get_marker() == "o" for line in figures.norm_positions().axes[0].lines)
    assert dots == sum(int(count) for count in re.findall(r"\S*-\S+ (\d+)", alt)) == 20
    assert len(NORM_MODELS) == 6


def test_the_detector_finds_the_spikes_that_were_put_in_and_no_others() -> None:
    assert "found at steps 70, 131, 132, 133, 210, 222, 301, 355" in plots.alt_text(figures.gradient_spikes())
    assert "found at steps 131, 132, 222, 301, 355" in plots.alt_text(figures.gradient_spikes(15.0))
    assert "found at steps none" in plots.alt_text(figures.gradient_spikes(1000.0))


def test_clipped_steps_are_those_above_the_limit() -> None:
    figure = figures.gradient_spikes(clip=0.5)
    raw, cut = (np.asarray(line.get_ydata()) for line in figure.axes[0].lines[:2])
    np.testing.assert_array_equal(cut, np.minimum(raw, 0.5))
    assert f"{int((raw > 0.5).sum())} of 400 steps are clipped" in plots.alt_text(figure)


@pytest.mark.parametrize(("start", "interval"), [(2.0**24, 100), (1.0, 10), (2.0**16, 300)])
def test_the_scale_is_torchs(start: float, interval: int) -> None:
    run = simulate_loss_scale(start, interval)
    scaler = torch.amp.GradScaler("cpu", init_scale=start, growth_interval=interval)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], 1.0)
    scaler.scale(torch.zeros(()))
    for step, gradient in enumerate(run.largest):
        assert scaler.get_scale() == run.scales[step]
        weight.grad = torch.tensor([gradient * run.scales[step]]).half().float()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.parametrize("rate", [1e-3, 1e-2, 3e-5])
def test_bf16_weights_go_deaf_where_torchs_do(rate: float) -> None:
    found = float(re.search(r"bf16 weight of ([\d.e-]+)", plots.alt_text(figures.lost_updates(rate)))[1])  # type: ignore[index]
    update = torch.tensor(rate).bfloat16()
    assert torch.tensor(found).bfloat16() + update == found
    assert torch.tensor(found / 2).bfloat16() + update != found / 2


def test_a_curve_that_leaves_the_chart_ends_in_a_cross() -> None:
    figure = figures.compare_runs(RUNS, VERDICTS, "Patients")
    crosses = [sum(line.get_marker() == "x" for line in axes.lines) for axes in figure.axes]
    assert crosses == [2, 2]
    assert plots.alt_text(figure) == "Patients. untreated: exploded, cure: saved"


def test_who_beats_the_table_clearly_is_told_with_the_rates() -> None:
    figure = figures.loss_against_rate(ENDS, 1.91)
    lines = {str(line.get_label()): np.asarray(line.get_xydata()) for line in figure.axes[0].lines}
    np.testing.assert_allclose(lines["cure"], [(0.003, 1.1), (0.03, 1.7)])
    assert "byte pairs: 1.91" in lines
    assert plots.alt_text(figure).endswith("untreated at 0.003; cure at 0.003, 0.03; close at no rate")


def test_signs_tell_who_is_above_the_line_for_every_seed() -> None:
    assert (
        plots.alt_text(figures.training_diagnostics(SIGNS, {"score": 100.0}, "Signs"))
        == "Signs. score above 100: untreated"
    )
    assert (
        plots.alt_text(figures.training_diagnostics(SIGNS, {"score": 1e3}, "Signs"))
        == "Signs. score above 1000: nobody"
    )


@pytest.mark.parametrize(
    "draw",
    [
        partial(figures.softmax_of_growing_logits, 0.0),
        partial(figures.softmax_of_growing_logits, 1.0, "fp32", "7"),
        partial(figures.softmax_of_growing_logits, 1.0, "fp7"),
        partial(figures.soft_cap_curve, 0.0),
        partial(figures.score_growth, -1.0),
        partial(figures.gradient_spikes, 0.0),
        partial(figures.loss_scale_history, 1.0, 0),
        partial(figures.lost_updates, 0.0),
        partial(figures.compare_runs, RUNS, {"untreated": "sick"}, "no verdict"),
        partial(figures.training_diagnostics, SIGNS, {}, "no limit"),
        partial(figures.loss_against_rate, {str(n): ENDS["cure"] for n in range(5)}, 1.9),
    ],
)
def test_what_makes_no_sense_is_refused(draw: Callable[..., Figure]) -> None:
    with pytest.raises(ValueError, match=r"positive|unknown|verdict|limit|no float format"):
        draw()
