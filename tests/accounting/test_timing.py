"""Test timing with a fake clock: which functions run, how often, in which order, and the statistics."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
import torch

from lmcourse.accounting.timing import Timing, cache_flusher, make_stopwatch, time_interleaved, time_it


class Clock:
    """A clock on which time passes only while a function works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, *durations: float) -> Callable[[], None]:
        """Return a function whose runs take these seconds; further runs take as long as the last."""
        left = list(durations)

        def run() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_warm_up_runs_do_not_count(clock: Clock) -> None:
    function = clock.work(100.0, 50.0, 1.0, 2.0, 3.0)
    timing = time_it(function, warmup=2, repeats=3, stopwatch=make_stopwatch("cpu", clock))
    assert timing.seconds == (1.0, 2.0, 3.0)


def test_timing_repeats_until_enough_seconds_are_measured(clock: Clock) -> None:
    watch = make_stopwatch("cpu", clock)
    assert time_it(clock.work(1.0), repeats=2, seconds=4.5, stopwatch=watch).count == 5
    assert time_it(clock.work(1.0), repeats=7, seconds=4.5, stopwatch=watch).count == 7


def test_rounds_alternate_their_order() -> None:
    order: list[str] = []
    functions = {name: lambda name=name: order.append(name) for name in "abc"}
    timings = time_interleaved(functions, warmup=1, repeats=3)
    assert "".join(order) == "abc" + "abc" + "cba" + "abc"
    assert list(timings) == ["a", "b", "c"]
    assert {timing.count for timing in timings.values()} == {3}


def test_all_functions_share_the_seconds(clock: Clock) -> None:
    functions = {"a": clock.work(1.0), "b": clock.work(3.0)}
    timings = time_interleaved(functions, repeats=1, seconds=8.0, stopwatch=make_stopwatch("cpu", clock))
    assert timings == {"a": Timing((1.0, 1.0)), "b": Timing((3.0, 3.0))}


def test_setup_is_not_timed(clock: Clock) -> None:
    timing = time_it(clock.work(1.0), repeats=2, before=clock.work(10.0), stopwatch=make_stopwatch("cpu", clock))
    assert timing.seconds == (1.0, 1.0)
    assert clock.now == 3 + 2 * 11


@pytest.mark.parametrize("seconds", [(3.0,), (1.0, 2.0), (5.0, 1.0, 4.0), (4.0, 1.0, 3.0, 9.0, 2.0, 7.0)])
def test_statistics_match_numpy(seconds: tuple[float, ...]) -> None:
    timing = Timing(seconds)
    assert timing.median == np.median(seconds)
    assert timing.quartiles == pytest.approx(np.quantile(seconds, [0.25, 0.75]), rel=1e-15)
    assert (timing.fastest, timing.count) == (min(seconds), len(seconds))


@pytest.mark.parametrize("before", [True, False])
def test_garbage_collection_is_off_while_timing(before: bool, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(gc.enable)
    collects: list[bool] = []

    def fail() -> None:
        collects.append(gc.isenabled())
        raise RuntimeError("no")

    if not before:
        gc.disable()
    time_it(lambda: collects.append(gc.isenabled()), warmup=1, repeats=2)
    with pytest.raises(RuntimeError, match="no"):
        time_it(fail)
    assert collects == [False] * 4
    assert gc.isenabled() is before


@pytest.mark.parametrize(("warmup", "repeats"), [(-1, 1), (0, 0)])
def test_timing_without_runs_is_rejected(warmup: int, repeats: int) -> None:
    with pytest.raises(ValueError, match="at least 0 warm-up runs and 1 timed run"):
        time_it(lambda: None, warmup=warmup, repeats=repeats)


def test_a_cache_flusher_writes_its_memory() -> None:
    flushed = cache_flusher("cpu", 1000)()
    assert isinstance(flushed, torch.Tensor)
    assert flushed.nbytes == 1000


@pytest.mark.skipif(not torch.cuda.is_available(), reason="events of a stream need an NVIDIA GPU")
def test_timing_waits_for_the_gpu() -> None:
    """A product of 8192 × 8192 matrices takes milliseconds; starting it takes microseconds."""
    left = torch.randn(8192, 8192, device="cuda")
    one, ten = lambda: left @ left, lambda: [left @ left for _ in range(10)]
    timings = time_interleaved({"one": one, "ten": ten}, repeats=5, device="cuda")
    assert timings["ten"].median > 5 * timings["one"].median
