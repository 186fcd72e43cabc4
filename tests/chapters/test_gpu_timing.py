"""Notebook 19: references against independent sources, and what its figures show."""

from __future__ import annotations

import ast
import inspect
import math
import statistics

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from lmcourse import plots
from lmcourse.accounting import machine
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.mfu import mfu
from lmcourse.accounting.timing import SimulatedDevice
from lmcourse.bench.speedups import StepSetup, make_training_step
from lmcourse.chapters.gpu_timing import figures
from lmcourse.chapters.gpu_timing import slow_step as task
from lmcourse.chapters.gpu_timing.exercises import (
    machine_limits,
    ridge_point,
    roofline,
    speedup_bounds,
    time_it,
    time_shares,
    what_helps,
)
from lmcourse.chapters.gpu_timing.exercises.chips import PEAKS, mfu_of_step
from lmcourse.chapters.gpu_timing.figures import MeasuredPoint, Rung, kernel_timeline
from lmcourse.chapters.gpu_timing.profiler_calls import (
    ATTENTION,
    COPIES,
    ELEMENTWISE,
    GROUPS,
    OPTIMIZER,
    PHASES,
    PRODUCTS,
    REST,
    by_group,
    group_of,
    nested,
    record,
    total_time,
)
from lmcourse.chapters.gpu_timing.slow_step import LABELS, all_but, measure_step, running, slow_step
from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.zoo.course import modern
from tests.course.chapters import source
from tests.plots.figures import check_figure

FEW = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
TIMES = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=8)


@FEW
@given(seconds=TIMES, launch=st.floats(0.0, 5.0), warmup=st.integers(0, 3), repeats=st.integers(1, 6))
def test_the_stopwatch_finds_the_median_of_launch_and_work(
    seconds: list[float], launch: float, warmup: int, repeats: int
) -> None:
    device = SimulatedDevice(seconds, launch)
    found = time_it.reference(device.run, device.synchronise, device.clock, warmup, repeats)
    endless = [*seconds, *[seconds[-1]] * (warmup + repeats)]
    expected = statistics.median(launch + work for work in endless[warmup : warmup + repeats])
    assert found == pytest.approx(expected)
    assert device.runs == warmup + repeats


def test_ridge_points_follow_the_unit_of_bandwidth() -> None:
    for tflops, speed, in_tb, in_tib in ((312, 1.6, 195, 177), (312, 2.039, 153, 139), (130, 1.1, 118, 107)):
        assert round(ridge_point.reference(tflops, speed, "TB/s")) == in_tb
        assert round(ridge_point.reference(tflops, speed, "TiB/s")) == in_tib


@FEW
@given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(1, 10**10)), min_size=1, max_size=6))
def test_the_time_at_best_matches_the_attainable_rate(kernels: list[tuple[int, int]]) -> None:
    """Williams et al., 2009: attainable FLOP/s = min(peak, intensity · bandwidth)."""
    peak, bandwidth = 3e14, 2e12
    expected = sum(flops / min(peak, flops / moved * bandwidth) for flops, moved in kernels)
    found = roofline.reference([[float(flops), float(moved)] for flops, moved in kernels], peak, bandwidth)
    assert found == pytest.approx(expected)


def test_own_time_matches_the_profilers_self_time() -> None:
    """torch computes `self_cpu_time_total` in a different way, from the tree of calls."""
    step = make_training_step(modern(1, 32, 2, 32), StepSetup(2), 16)
    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    events = [[call.name, call.time_range.start, call.time_range.end] for call in profiler.events()]
    found = time_shares.reference(events)
    span = max(end for *_, end in events) - min(begin for _, begin, _ in events)
    for average in profiler.key_averages():
        assert found[average.key] == pytest.approx(average.self_cpu_time_total / span, abs=1e-3)
    assert sum(found.values()) == pytest.approx(1)


def test_a_profiled_step_has_three_phases_in_order() -> None:
    step = make_training_step(modern(1, 32, 2, 32), StepSetup(2), 16, wait=True)
    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    events = [[call.name, call.time_range.start, call.time_range.end] for call in profiler.events()]
    phases = [event for event in events if event[0] in PHASES]
    assert [name for name, *_ in sorted(phases, key=lambda event: event[1])] == [*PHASES]
    grouped = by_group(events, phases)
    assert {name for name, *_ in grouped} <= {*GROUPS}
    (_, first, last), *_ = [event for event in phases if event[0] == OPTIMIZER]
    inside = [name for name, begin, _ in grouped if first <= begin < last]
    assert len(inside) > 10
    assert {*inside} == {OPTIMIZER}


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("aten::mm", PRODUCTS),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", PRODUCTS),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", PRODUCTS),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", ATTENTION),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64>>", ATTENTION),
        ("aten::mul", ELEMENTWISE),
        ("aten::silu_backward", ELEMENTWISE),
        ("aten::_log_softmax_backward_data", ELEMENTWISE),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", ELEMENTWISE),
        ("Memcpy DtoD (Device -> Device)", COPIES),
        ("aten::cat", COPIES),
        ("aten::transpose", REST),
        ("autograd::engine::evaluate_function: MmBackward0", REST),
        ("Optimizer.zero_grad#AdamW.zero_grad", REST),
        ("backward", REST),
    ],
)
def test_operations_are_assigned_to_groups(name: str, group: str) -> None:
    assert group_of(name) == group


def test_amdahls_bounds_match_the_published_gain_and_do_not_multiply() -> None:
    """Ivanov et al., 2021, table 1: softmax and layer norm together take 25.5 % of the time."""
    shares = {"products": 0.61, "softmax and norms": 0.255, "element-wise": 0.135}
    found = speedup_bounds.reference(
        shares, {"softmax and norms": [["softmax and norms"], math.inf], "bf16": [["products"], 2.0]}
    )
    assert found["softmax and norms"] == pytest.approx(1 / 0.745)
    assert found["all"] == pytest.approx(1 / (0.305 + 0.135))
    assert found["all"] > found["softmax and norms"] * found["bf16"]


@FEW
@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**9), st.floats(0.001, 10)), min_size=1, max_size=5))
def test_a_remedy_helps_as_the_roofline_predicts(kernels: list[tuple[int, int, float]]) -> None:
    """Doubling the peak gives another machine: the test applies `roofline` to it and keeps the rest of the measured
    time."""
    peak, bandwidth = 1e9, 2e8
    timed = [[float(f), float(m), roofline.reference([[f, m]], peak, bandwidth) * (1 + rest)] for f, m, rest in kernels]
    work = [kernel[:2] for kernel in timed]
    found = what_helps.reference(timed, peak, bandwidth)
    at_best = roofline.reference(work, peak, bandwidth)
    rest = sum(kernel[2] for kernel in timed) - at_best
    assert found["launches"] == pytest.approx(at_best)
    assert found["peak"] == pytest.approx(roofline.reference(work, 2 * peak, bandwidth) + rest)
    assert found["bandwidth"] == pytest.approx(roofline.reference(work, peak, 2 * bandwidth) + rest)


def test_no_compared_cell_depends_on_the_machine() -> None:
    """Measured numbers are only in cells that nbval does not compare, so all other cells are the same on a CPU and a
    GPU."""
    measured: set[str] = set()
    for cell in source(find_chapter("19-gpu-timing")).cells:
        if cell.kind != "code":
            continue
        tree = ast.parse(cell.text)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        if "nbval-ignore-output" in cell.options.get("tags", []):
            measured |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        elif "exercise" not in cell.options:
            written = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            assert not (read - written) & measured, cell.text
            assert not read & {"best_device", "present_gpu", "measure_speedups", "make_training_step", "machine"}


DOTS = [MeasuredPoint("a product", 100.0, 5e10), MeasuredPoint("a copy", 0.1, 1e9), MeasuredPoint("tiny", 3.0, 1e6)]
RUNGS = [Rung("more", 3.0), Rung("worse", 0.5, kept=False), Rung("last", 1.5)]


def test_the_queue_matches_the_simulated_device() -> None:
    """The expected times are computed by hand: kernels of 2 µs wait for their launches of 5 µs, a kernel of 16 µs does
    not."""
    assert kernel_timeline(2.0, 5.0, 1)[-1] == (35.0, 40.0, 42.0)
    assert kernel_timeline(8.0, 5.0, 1)[-1] == (35.0, 61.0, 69.0)
    assert kernel_timeline(2.0, 5.0, 8) == [(0.0, 5.0, 21.0)]
    assert "the GPU works 38% of the time" in plots.alt_text(figures.launch_queue(2.0, 5.0))


def test_measured_times_are_not_in_the_alt_text() -> None:
    faster = [dot._replace(rate=2 * dot.rate) for dot in DOTS]
    one, other = (figures.measured_roofline(1e11, 2e10, dots) for dots in (DOTS, faster))
    assert plots.alt_text(one) == plots.alt_text(other)


def test_ridges_match_the_data_sheets_and_slips_are_marked() -> None:
    """NVIDIA: V100 125/0.9, A100 312/1.555 and 312/2.039, H100 989.4/3.35, H200 989.4/4.8, B200 2250/7.7."""
    right = [125 / 0.9, 312 / 1.555, 312 / 2.039, 989.4 / 3.35, 989.4 / 4.8, 2250 / 7.7]

    def bars(figure: Figure) -> list[float]:
        return [patch.get_width() for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]

    assert bars(figures.ridge_points()) == pytest.approx(right)
    assert bars(figures.ridge_points(binary=True)) == pytest.approx([ridge / 1.099511627776 for ridge in right])
    assert bars(figures.ridge_points(sparse=True)) == pytest.approx([right[0], *(2 * ridge for ridge in right[1:])])


def test_shares_add_up_and_the_gain_follows_amdahls_law() -> None:
    for free, gain in (
        ("nothing", 1.0),
        ("softmax and norms", 1 / 0.745),
        ("element-wise", 1 / 0.865),
        ("both", 1 / 0.61),
    ):
        figure = figures.runtime_shares(free)  # type: ignore[arg-type]
        rows = [0.0, 0.0, 0.0]
        for patch in figure.axes[0].patches:
            assert isinstance(patch, Rectangle)
            rows[round(patch.get_y() + patch.get_height() / 2)] += patch.get_width()
        assert rows == pytest.approx([100, 100, 100 / gain])
        assert f"{gain:.2f} times as fast" in plots.alt_text(figure)


def test_the_ladder_multiplies_the_speedups_of_kept_changes() -> None:
    axes = check_figure(figures.speed_ladder(RUNGS)).axes[0]
    bars = [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert bars == pytest.approx([1.0, 3.0, 1.5, 4.5])
    texts = [text.get_text() for text in axes.texts]
    assert ["taken back" in text for text in texts] == [False, False, True, False]


def test_references_match_the_packages_measurements() -> None:
    log = {16: [3e-6, 1e-6, 2e-6], 32: [5e-6, 4e-6, 9e-6]}
    times = iter(time for runs in log.values() for time in runs)
    rates = machine.matmul_rates("fp32", [*log], seconds=0.0, stopwatch=lambda run: next(times))
    copies = iter([4e-6, 2e-6, 3e-6])
    speed = machine.copy_bandwidth(1000, seconds=0.0, stopwatch=lambda run: next(copies))
    limits = machine_limits.reference(log, {1000: [4e-6, 2e-6, 3e-6], 500: [1e-9]}, 500)
    assert limits["peak"] == pytest.approx(max(rates.values()))
    assert limits["bandwidth"] == pytest.approx(speed)
    share = mfu_of_step.reference(3e13, [0.2, 0.1, 0.9], "NVIDIA H100 PCIe", "bf16", PEAKS)
    assert share == pytest.approx(mfu(3e13, 0.2, find_accelerator("h100-pcie"), "bf16"))


def test_the_profile_of_the_given_step_has_all_labels() -> None:
    calls, labels, _ = record(running(slow_step), LABELS)
    assert {name for name, *_ in labels} == {*LABELS}
    assert nested(calls, "aten::embedding", 2).count("\n") == 1
    assert total_time(calls) > 1 > total_time([["a", 0.0, 1.0], ["b", 3.0, 4.0]])


def test_products_of_the_step_have_the_flops_that_torch_counts() -> None:
    with FlopCounterMode(display=False) as counter:
        running(all_but())()
    products = counter.get_flop_counts()["Global"][torch.ops.aten.mm]
    assert sum(flops for flops, _ in task.PRODUCTS) == products


def test_work_that_a_step_keeps_from_an_earlier_run_is_not_accepted() -> None:
    kept: dict[int, tuple[object, list[torch.Tensor]]] = {}

    def remembered(weights: dict[str, torch.Tensor], moments: object, texts: torch.Tensor, t: int) -> object:
        if t not in kept:
            loss = slow_step(weights, moments, texts, t)  # type: ignore[arg-type]
            kept[t] = loss, [w.detach().clone() for w in weights.values()]
        else:
            with torch.no_grad():
                for w, old in zip(weights.values(), kept[t][1], strict=True):
                    w.copy_(old)
        return kept[t][0]

    measure_step(remembered, seed=0)
    with pytest.raises(Unfit, match="was seen"):
        measure_step(remembered, seed=0)
    with pytest.raises(Unfit, match="differ by"):
        measure_step(remembered, seed=1)


def test_the_step_in_the_notebook_is_the_one_it_is_compared_with() -> None:
    body = inspect.getsource(slow_step).split('"""\n', 1)[1].replace("  # type: ignore[no-untyped-call]", "")
    assert body in "\n".join(cell.text for cell in source(find_chapter("19-gpu-timing")).cells)
