"""The exercise on finding spikes in the norm of the gradient."""

from __future__ import annotations

import bisect
import math
from collections import deque
from collections.abc import Callable
from random import Random
from statistics import fmean, median, median_high, median_low
from typing import Any

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _spikes(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    found, seen = [], list[float]()
    for step, norm in enumerate(norms):
        if not math.isfinite(norm):
            found.append(step)
            continue
        if len(seen) >= fewest and norm > factor * median(seen[-window:]):
            found.append(step)
        seen.append(norm)
    return found


def _quiet(random: Random, count: int, level: float = 1.0) -> list[float]:
    return [round(level * random.uniform(0.8, 1.25), 3) for _ in range(count)]


def _spike_cases(random: Random) -> list[Case]:
    run = _quiet(random, 60, random.uniform(0.5, 3))
    for step in random.sample(range(10, 50, 2), 4):
        run[step] *= random.uniform(8, 400)
    run[52], run[53] = 300 * run[52], random.uniform(8, 30) * run[53]
    falling = [round(50 / (1 + step), 3) for step in range(30)] + [random.uniform(9, 12)]
    rows = [*_quiet(random, 8), 1000.0, 900.0, 800.0, *_quiet(random, 6), random.uniform(7, 9), *_quiet(random, 2)]
    early = [100.0 * random.uniform(1, 2), *_quiet(random, 2), 50.0, *_quiet(random, 9), 40.0]
    return [
        case("infinite or NaN", [1.0, math.nan, 1.0, math.inf, 9.0], 2.0, 10, 3),
        case("infinite or NaN", [8.0, 8.0, 1.0, math.nan, 1.0, 9.0], 3.0, 4, 2),
        case("infinite or NaN", [1.0, 1.0, 1.0, math.inf, 9.0], 5.0, 3, 3),
        case("norms of zero", [0.0, 0.0, 0.0, 0.0, 0.001, 0.0], 5.0, 10, 3),
        case("no norms", [], 5.0, 10, 3),
        case("tiny norms", [1e-8, 1.1e-8, 1e-8, 6e-8, 1e-8], 5.0, 10, 3),
        case("another new level", [*[1.0] * 12, *[10.0] * 12], 4.0, 8, 4),
        case("other runs", run, 5.0, 20, 6),
        case("norms that fall", falling, 4.0, 8, 4),
        case("several in a row", rows, 5.0, 10, 4),
        case("early steps", early, 5.0, 9, 6),
    ]


spike_detector = Exercise(
    "spike_detector",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_spikes,
    cases=[
        case("one spike", [1.0, 1.1, 0.9, 1.0, 8.0, 1.0], 5.0, 10, 3),
        case("two in a row", [1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.1, 0.9, 8.0, 30.0], 5.0, 10, 3),
        case("a second one in the shadow of the first", [1.0, 1.0, 1.0, 1.0, 1000.0, 20.0, 1.0], 5.0, 10, 3),
        case("too early to tell", [9.0, 1.0, 30.0, 1.0, 1.0], 5.0, 10, 4),
        case("a window of three", [10.0, 10.0, 10.0, 1.0, 1.0, 7.0, 6.0, 1.0, 1.0, 1.0, 9.0], 5.0, 3, 3),
        case("a window of two: halfway between them", [1.0, 3.0, 9.0, 1.0, 3.0, 12.0, 1.0, 1.0, 50.0], 5.0, 2, 2),
        case("just enough to tell", [1.0, 1.0, 1.0, 8.0], 5.0, 10, 3),
        case("exactly five times", [1.0, 1.0, 1.0, 5.0], 5.0, 10, 3),
        case("a new level", [1.0, 1.1, 0.9, 1.0, 10.0, 11.0, 10.0, 9.0, 10.0, 10.0], 4.0, 4, 3),
        case("infinite", [1.0, math.inf, math.inf, math.inf, 1.0, 1.0, 2.0], 1.5, 10, 2),
        case("infinite, and a window of four", [1.0, 1.0, 1.0, math.inf, math.inf, 2.0], 1.5, 4, 3),
    ],
    hidden_cases=_spike_cases,
    hints=[
        "Go through the norms with a list of the earlier ones. Compare each step with these, not with itself.",
        "median(seen[-window:]) once there are `fewest`; then append the norm, spike or not.",
        "math.isfinite first: a norm that is infinite or NaN is always a spike, and never enters the list.",
    ],
)


def _wrong_spikes(
    norms: list[float],
    factor: float,
    window: int,
    fewest: int,
    *,
    usual: Callable[[list[float]], float] = median,
    tie: bool = False,
    keep_spikes: bool = True,
    keep_broken: bool = False,
) -> list[int]:
    """A detector with one mistake switched on."""
    found, seen = [], list[float]()
    for step, norm in enumerate(norms):
        if not math.isfinite(norm):
            found.append(step)
            if keep_broken:
                seen.append(norm)
            continue
        limit = factor * usual(seen[-window:]) if len(seen) >= max(fewest, 1) else math.inf
        spike = norm >= limit if tie else norm > limit
        if spike:
            found.append(step)
        if keep_spikes or not spike:
            seen.append(norm)
    return found


@spike_detector.misconception(
    "You compare with the mean. One spike raises the mean so far that it hides the next ones. The median hardly moves."
)
def mean_instead_of_median(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest, usual=fmean)


@spike_detector.misconception("You compare with the step before. After a spike everything looks small, or normal.")
def last_step_only(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, 1, fewest)


@spike_detector.misconception("You compare with all steps of the past. Norms fall during training: use the window.")
def no_window(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, len(norms), fewest)


@spike_detector.misconception("You judge from the start. With fewer than `fewest` norms, report no spike.")
def from_the_start(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, 1)


@spike_detector.misconception("You wait for one norm too many. Judge a step that has `fewest` norms before it.")
def one_step_late(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest + 1)


@spike_detector.misconception("You report a norm of exactly factor times the median. A spike is *more* than that.")
def ties_count(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest, tie=True)


@spike_detector.misconception(
    "You leave spikes out of the window. If the norms move to a new level, every step from there on is a spike."
)
def spikes_forgotten(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest, keep_spikes=False)


@spike_detector.misconception(
    "You miss infinite or NaN norms. No comparison finds NaN, and it may come early: such a norm is always a spike."
)
def not_finite_missed(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return [step for step in _spikes(norms, factor, window, fewest) if math.isfinite(norms[step])]


@spike_detector.misconception(
    "You keep infinite norms in the window, where they raise the median to infinity. Leave them out."
)
def not_finite_kept(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest, keep_broken=True)


@spike_detector.misconception(
    "You wait for `fewest` norms even when a norm is infinite or NaN. Such a norm is a spike at any time."
)
def infinite_only_later(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    found, seen = [], list[float]()
    for step, norm in enumerate(norms):
        finite = math.isfinite(norm)
        if len(seen) >= fewest and not (finite and norm <= factor * median(seen[-window:])):
            found.append(step)
        if finite:
            seen.append(norm)
    return found


@spike_detector.misconception(
    "Of an even number of norms you take the lower of the two in the middle, as `torch.median` does. The median is "
    "halfway between them."
)
def lower_of_two(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest, usual=median_low)


@spike_detector.misconception(
    "Of an even number of norms you take the upper of the two in the middle. The median is halfway between them."
)
def upper_of_two(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, fewest, usual=median_high)


@spike_detector.misconception("Your window holds one norm too many. seen[-window:] are the last `window`.")
def one_norm_more(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window + 1, fewest)


@spike_detector.misconception("Your window holds one norm too few. seen[-window:] are the last `window`.")
def one_norm_fewer(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, max(window - 1, 1), fewest)


@spike_detector.misconception(
    "Your window counts steps, so infinite norms take up places in it. Take the last `window` of the finite norms."
)
def window_of_steps(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    found = []
    for step, norm in enumerate(norms):
        seen = list(filter(math.isfinite, norms[max(step - window, 0) : step]))
        if not math.isfinite(norm) or (len(seen) >= fewest and norm > factor * median(seen)):
            found.append(step)
    return found


@spike_detector.misconception(
    "You compare a norm with a window that already contains it. Use only the norms before it."
)
def compared_with_itself(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    finite = [norm for norm in norms if math.isfinite(norm)]
    found, seen = [], 0
    for step, norm in enumerate(norms):
        seen += math.isfinite(norm)
        before = finite[:seen][-window:]
        if not math.isfinite(norm) or (seen > fewest and norm > factor * median(before)):
            found.append(step)
    return found


@spike_detector.misconception(
    "You wait until the window is full. Judge a norm as soon as `fewest` norms are before it."
)
def waits_for_the_window(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    return _wrong_spikes(norms, factor, window, window)


@spike_detector.variant
def with_numpy(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    values = np.array(norms)
    finite = np.isfinite(values)
    spikes: set[Any] = set(np.flatnonzero(~finite))
    for step in np.flatnonzero(finite):
        before = values[:step][finite[:step]]
        if len(before) >= fewest and values[step] > factor * np.median(before[-window:]):
            spikes.add(step)
    return sorted(spikes)


@spike_detector.variant
def as_one_test_of_each_step(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    def is_spike(step: int) -> bool:
        before = [norm for norm in norms[:step] if abs(norm) < float("inf")]
        if not abs(norms[step]) < float("inf"):
            return True
        return len(before) >= fewest and norms[step] > factor * median(before[-window:])

    return [step for step in range(len(norms)) if is_spike(step)]


@spike_detector.variant
def with_a_sorted_window(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    last: deque[float] = deque(maxlen=window)
    spikes = []
    for step, norm in enumerate(norms):
        if math.isinf(norm) or math.isnan(norm):
            spikes.append(step)
            continue
        ordered: list[float] = []
        for old in last:
            bisect.insort(ordered, old)
        half = len(ordered) // 2
        if len(last) >= fewest and 2 * norm > factor * (ordered[half] + ordered[-half - 1]):
            spikes.append(step)
        last.append(norm)
    return spikes
