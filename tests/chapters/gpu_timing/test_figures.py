"""The figures of notebook 19: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse import plots
from lmcourse.bench.speedups import Speedup, StepSetup
from lmcourse.chapters.gpu_timing import figures
from lmcourse.chapters.gpu_timing.figures.clock import kernel_timeline, sample_runs
from lmcourse.chapters.gpu_timing.figures.roofline import MeasuredPoint
from tests.plots.figures import check_figure, check_room

DOTS = [MeasuredPoint("a product", 100.0, 5e10), MeasuredPoint("a copy", 0.1, 1e9), MeasuredPoint("tiny", 3.0, 1e6)]
RUNGS = [
    Speedup("more", 100.0, 300.0, StepSetup(8)),
    Speedup("worse", 290.0, 145.0, StepSetup(8)),
    Speedup("last", 280.0, 420.0, StepSetup()),
]
SHARES = {(64, 1): 0.1, (64, 4): 0.3, (128, 1): 0.2, (128, 4): 0.6}

DRAWINGS: dict[str, Callable[..., Figure]] = {
    "launch_queue": figures.launch_queue,
    "measured_roofline": partial(figures.measured_roofline, 1e11, 2e10, DOTS),
    "transfer_time": figures.transfer_time,
    "product_intensity": figures.product_intensity,
    "ridge_points": figures.ridge_points,
    "runtime_shares": figures.runtime_shares,
    "speed_ladder": partial(figures.speed_ladder, RUNGS),
    "timing_spread": figures.timing_spread,
    "utilisation_by_batch": partial(figures.utilisation_by_batch, SHARES),
}

EXTREMES: list[tuple[str, dict[str, Any]]] = [
    ("launch_queue", {"work": 20.0, "launch": 2.0}),
    ("launch_queue", {"work": 1.0, "launch": 20.0, "fused": 8}),
    ("transfer_time", {"parameters_in_billions": 1.0, "bytes_each": 1}),
    ("transfer_time", {"parameters_in_billions": 70.0, "bytes_each": 4}),
    ("product_intensity", {"tokens": 1, "width": 256}),
    ("product_intensity", {"tokens": 2**20, "width": 12_288}),
    ("ridge_points", {"sparse": True, "binary": True}),
    ("runtime_shares", {"free": "both"}),
    ("timing_spread", {"runs": 5, "disturbed": 0.6, "warm_up_counts": True}),
    ("timing_spread", {"runs": 60, "disturbed": 0.0}),
]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize(("name", "arguments"), EXTREMES)
def test_no_text_leaves_the_figure_at_the_ends_of_its_controls(name: str, arguments: dict[str, Any]) -> None:
    check_room(DRAWINGS[name](**arguments))


def test_drawn_runs_only_ever_take_longer_and_the_numbers_are_theirs() -> None:
    assert min(sample_runs(60, 0.6, True)) >= 10
    assert sample_runs(20, 0.15, True)[0] == 70.0
    assert sample_runs(20, 0.0, False)[0] < 15
    times = sample_runs(20, 0.15, False)
    lines = {str(line.get_label()): line for line in figures.timing_spread(20, 0.15).axes[0].lines}
    middle = next(line for name, line in lines.items() if name.startswith("median"))
    assert next(iter(middle.get_ydata())) == pytest.approx(float(np.quantile(times, 0.5)))
    assert f"mean {statistics.mean(times):.1f} ms" in plots.alt_text(figures.timing_spread(20, 0.15))


def test_the_queue_is_that_of_the_simulated_device() -> None:
    """Worked out by hand: launches of 5 µs; kernels of 2 µs wait for them, one of 16 µs does not."""
    assert kernel_timeline(2.0, 5.0, 1)[-1] == (35.0, 40.0, 42.0)
    assert kernel_timeline(8.0, 5.0, 1)[-1] == (35.0, 61.0, 69.0)
    assert kernel_timeline(2.0, 5.0, 8) == [(0.0, 5.0, 21.0)]
    assert "the GPU works 38% of the time" in plots.alt_text(figures.launch_queue(2.0, 5.0))


def test_dots_lie_where_they_were_measured_under_the_roof_of_williams() -> None:
    axes = figures.measured_roofline(1e11, 2e10, DOTS).axes[0]
    roof = np.asarray(axes.lines[0].get_xydata())
    assert roof[:, 1] == pytest.approx(np.minimum(100.0, roof[:, 0] * 20))
    drawn = [tuple(line.get_xydata()[0]) for line in axes.lines if len(line.get_xydata()) == 1]  # type: ignore[index, arg-type]
    assert drawn == [(dot.intensity, pytest.approx(dot.rate / 1e9)) for dot in DOTS]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert legend == ["a product: 50% of the roof", "a copy: 50% of the roof", "tiny: below 1% of the roof"]


def test_what_was_measured_is_not_in_the_alt_text() -> None:
    faster = [dot._replace(rate=2 * dot.rate) for dot in DOTS]
    one, other = (figures.measured_roofline(1e11, 2e10, dots) for dots in (DOTS, faster))
    assert plots.alt_text(one) == plots.alt_text(other)
    one, other = (figures.utilisation_by_batch({size: k * share for size, share in SHARES.items()}) for k in (1.0, 0.5))
    assert plots.alt_text(one) == plots.alt_text(other)


def test_the_curve_of_intensity_counts_bytes_of_tensors() -> None:
    x, w = (torch.empty(rows, 512, dtype=torch.bfloat16, device="meta") for rows in (100, 512))
    moved = x.nbytes + w.nbytes + (x @ w).nbytes
    (dot,) = [line for line in figures.product_intensity(100, 512).axes[0].lines if line.get_marker() == "o"]
    assert next(iter(dot.get_ydata())) == pytest.approx(2 * 100 * 512**2 / moved)
    assert "H100 never" in plots.alt_text(figures.product_intensity(100, 512))


def test_ridges_are_those_of_the_data_sheets_and_slips_are_marked() -> None:
    """NVIDIA: V100 125/0.9, A100 312/1.555 and 312/2.039, H100 989.4/3.35, H200 989.4/4.8, B200 2250/7.7."""
    right = [125 / 0.9, 312 / 1.555, 312 / 2.039, 989.4 / 3.35, 989.4 / 4.8, 2250 / 7.7]

    def bars(figure: Figure) -> list[float]:
        return [patch.get_width() for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]

    assert bars(figures.ridge_points()) == pytest.approx(right)
    assert bars(figures.ridge_points(binary=True)) == pytest.approx([ridge / 1.099511627776 for ridge in right])
    assert bars(figures.ridge_points(sparse=True)) == pytest.approx([right[0], *(2 * ridge for ridge in right[1:])])


def test_a_seven_b_model_takes_half_a_second_over_pcie() -> None:
    widths = [
        patch.get_width() for patch in figures.transfer_time(7.0, 2).axes[0].patches if isinstance(patch, Rectangle)
    ]
    assert widths[0] == pytest.approx(437.5)
    assert widths == sorted(widths, reverse=True)


def test_shares_add_up_and_the_gain_is_amdahls() -> None:
    for free, gain in (("nothing", 1.0), ("normalisation", 1 / 0.745), ("element-wise", 1 / 0.865), ("both", 1 / 0.61)):
        figure = figures.runtime_shares(free)  # type: ignore[arg-type]
        rows = [0.0, 0.0, 0.0]
        for patch in figure.axes[0].patches:
            assert isinstance(patch, Rectangle)
            rows[round(patch.get_y() + patch.get_height() / 2)] += patch.get_width()
        assert rows == pytest.approx([100, 100, 100 / gain])
        assert f"{gain:.2f} times as fast" in plots.alt_text(figure)


def test_the_ladder_multiplies_what_was_kept() -> None:
    bars = [patch.get_width() for patch in figures.speed_ladder(RUNGS).axes[0].patches if isinstance(patch, Rectangle)]
    assert bars == pytest.approx([1.0, 3.0, 1.5, 4.5])
    texts = [text.get_text() for text in figures.speed_ladder(RUNGS).axes[0].texts]
    assert ["taken back" in text for text in texts] == [False, False, True, False]


def test_more_than_the_peak_is_warned_of() -> None:
    figure = figures.utilisation_by_batch({**SHARES, (128, 16): 1.2})
    assert "1 of them above 100 %, which cannot be" in " ".join(figure._supxlabel.get_text().split())
    assert "above 100 %" in plots.alt_text(figure)
    assert "100 %" not in plots.alt_text(figures.utilisation_by_batch(SHARES))


@pytest.mark.parametrize(
    ("draw", "arguments"),
    [
        (figures.launch_queue, {"work": 0.0}),
        (figures.launch_queue, {"fused": 3}),
        (figures.measured_roofline, {"peak": 0.0, "bandwidth": 1.0, "dots": DOTS}),
        (figures.measured_roofline, {"peak": 1.0, "bandwidth": 1.0, "dots": []}),
        (figures.transfer_time, {"parameters_in_billions": 0.0}),
        (figures.product_intensity, {"tokens": 0}),
        (figures.runtime_shares, {"free": "attention"}),
        (figures.speed_ladder, {"speedups": []}),
        (figures.timing_spread, {"runs": 0}),
        (figures.timing_spread, {"disturbed": 1.5}),
        (figures.utilisation_by_batch, {"shares": {}}),
        (figures.utilisation_by_batch, {"shares": {(1, 1): 0.0}}),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[..., Figure], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        draw(**arguments)
