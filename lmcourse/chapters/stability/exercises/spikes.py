"""The exercise on finding spikes in the norm of the gradient."""

from __future__ import annotations

import math
from random import Random
from statistics import median

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def with_the_norms_seen(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
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
    minutes=7,
    difficulty=2,
    reference=with_the_norms_seen,
    cases=[
        case("one spike", [1.0, 1.1, 0.9, 1.0, 8.0, 1.0], 5.0, 10, 3),
        case("two in a row", [1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.1, 0.9, 8.0, 30.0], 5.0, 10, 3),
        case("a second one in the shadow of the first", [1.0, 1.0, 1.0, 1.0, 1000.0, 20.0, 1.0], 5.0, 10, 3),
        case("too early to tell", [9.0, 1.0, 30.0, 1.0, 1.0], 5.0, 10, 4),
        case("a window of three", [10.0, 10.0, 10.0, 1.0, 1.0, 7.0, 6.0, 1.0, 1.0, 1.0, 9.0], 5.0, 3, 3),
        case("a window of two: halfway between them", [1.0, 3.0, 9.0, 1.0, 3.0, 12.0, 1.0, 1.0, 50.0], 5.0, 2, 2),
        case("just enough to tell", [1.0, 1.0, 8.0, 12.0], 5.0, 10, 3),
        case("exactly five times", [1.0, 1.0, 1.0, 5.0], 5.0, 10, 3),
        case("a new level", [1.0, 1.1, 0.9, 1.0, 10.0, 11.0, 10.0, 9.0, 10.0, 10.0], 4.0, 4, 3),
        case("infinite, and NaN", [1.0, math.inf, math.nan, math.inf, 9.0, 1.0, 2.0], 1.5, 10, 2),
        case("infinite, and a window of four", [1.0, 1.0, 1.0, math.inf, math.inf, 2.0], 1.5, 4, 3),
    ],
    hidden_cases=_spike_cases,
    hints=[
        "Go through the norms with a list of the earlier ones. Compare each step with these, not with itself.",
        "median(seen[-window:]) once there are `fewest`; then append the norm, spike or not.",
        "math.isfinite first: a norm that is infinite or NaN is always a spike, and never enters the list.",
    ],
)


spike_detector.variant(with_the_norms_seen)

spike_detector.slips(
    with_the_norms_seen,
    {
        "median → np.mean": "You compare with the mean. One spike raises the mean so far that it hides the next ones. "
        "The median hardly moves.",
        "median → max": "You compare with the largest of the recent norms. After a spike nothing counts as one: take "
        "the median.",
        "len(seen) >= fewest → step >= fewest": "You count steps where finite norms count: `fewest` of those must come "
        "before the step.",
        "not math.isfinite(norm) → math.isnan(norm)": "You report NaN at any time, but not infinity. Both are spikes, "
        "and neither counts as a norm.",
        "not math.isfinite(norm) → math.isinf(norm)": "You report infinity at any time, but not NaN: no comparison "
        "finds it. Both are spikes, and neither counts as a norm.",
        "[-window:] → [-1:]": "You compare with the step before. After a spike everything looks small, or normal.",
        "[-window:] → ": "You compare with all steps of the past. Norms fall during training: use the window.",
        "len(seen) >= fewest → seen": "You judge from the start. With fewer than `fewest` norms, report no spike.",
        ">= fewest → > fewest": "You wait for one norm too many. Judge a step that has `fewest` norms before it.",
        "norm > → norm >=": "You report a norm of exactly factor times the median. A spike is *more* than that.",
        "        seen.append(norm) →         else:\n            seen.append(norm)": "You leave spikes out of the "
        "window. If the norms move to a new level, every step from there on is a spike.",
        "            found.append(step)\n            continue →             continue": "You miss infinite or NaN "
        "norms. No comparison finds NaN, and it may come early: such a norm is always a spike.",
        "continue → seen.append(norm)\n            continue": "You keep infinite norms in the window, where they raise "
        "the median to infinity. Leave them out.",
        "found.append(step)\n            continue → if len(seen) >= fewest:\n                "
        "found.append(step)\n            continue": "You wait for `fewest` norms even when a norm is infinite or NaN. "
        "Such a norm is a spike at any time.",
        'median(seen[-window:]) → np.quantile(seen[-window:], 0.5, method="lower")': "Of an even number of norms you "
        "take the lower of the two in the middle, as `torch.median` does. The median is halfway between them.",
        'median(seen[-window:]) → np.quantile(seen[-window:], 0.5, method="higher")': "Of an even number of norms you "
        "take the upper of the two in the middle. The median is halfway between them.",
        "[-window:] → [-window - 1 :]": "Your window holds one norm too many. seen[-window:] are the last `window`.",
        "[-window:] → [-max(window - 1, 1) :]": "Your window holds one norm too few. seen[-window:] are the last "
        "`window`.",
        "if not → seen = [old for old in norms[max(step - window, 0) : step] if math.isfinite(old)]\n        if "
        "not": "Your window counts steps, so infinite norms take up places in it. Take the last `window` of the finite "
        "norms.",
        "if len(seen) >= fewest → seen.append(norm)\n        if len(seen) > fewest ;;         seen.append(norm)\n    "
        "return →     return": "You compare a norm with a window that already contains it. Use only the norms before "
        "it.",
        "if len(seen) >= fewest → seen.append(norm)\n        if len(seen) >= fewest ;;         seen.append(norm)\n    "
        "return →     return": "You compare a norm with a window that already contains it. Use only the norms before "
        "it.",
        "len(seen) >= fewest → len(seen[-window:]) > fewest": "You wait for one norm too many. Judge a step that has "
        "`fewest` norms before it.",
        ">= fewest → >= window": "You wait until the window is full. Judge a norm as soon as `fewest` norms are before "
        "it.",
    },
)
