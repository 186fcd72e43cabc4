"""The exercise on what a kernel that was timed is limited by."""

from __future__ import annotations

from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

HALF = 0.5


def _limit(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    """By how long each of the two would have taken alone, and how much of the time that explains."""
    alone = {"arithmetic": flops / peak, "memory": moved / bandwidth}
    longest = max(alone, key=lambda name: alone[name])
    if seconds < alone[longest]:
        raise ValueError("faster than the roofline cannot be")
    return longest if alone[longest] >= HALF * seconds else "neither"


def _cases(random: Random) -> list[Case]:
    def kernel(arithmetic: float, memory: float) -> list[float]:
        peak, bandwidth = random.uniform(1e14, 1e15), random.uniform(1e11, 1e12)
        seconds = random.uniform(1e-5, 1e-2)
        return [arithmetic * peak * seconds, memory * bandwidth * seconds, seconds, peak, bandwidth]

    def share(low: float, high: float) -> float:
        return random.uniform(low, high)

    toy = {"peak": 128.0, "bandwidth": 16.0}
    return [
        case("on the boundary", 512.0, 16.0, 8.0, **toy),
        case("on the boundary", 64.0, 64.0, 8.0, **toy),
        case("on the boundary", 1024.0, 32.0, 8.0, **toy),
        case("on the boundary", 128.0, 128.0, 8.0, **toy),
        case("nearly half of both", 511.0, 63.0, 8.0, **toy),
        case("more than half of both", 768.0, 72.0, 8.0, **toy),
        case("more than half of both", 640.0, 112.0, 8.0, **toy),
        case("copies and the like", 0.0, 96.0, 8.0, **toy),
        case("large products", 768.0, 8.0, 8.0, **toy),
        case("cannot be", 1025.0, 32.0, 8.0, **toy),
        case("cannot be", 256.0, 129.0, 8.0, **toy),
        case("cannot be", 2048.0, 256.0, 8.0, **toy),
        *(case("large products", *kernel(share(0.6, 0.95), share(0.01, 0.4))) for _ in range(2)),
        *(case("copies and the like", *kernel(share(0.05, 0.4), share(0.6, 0.95))) for _ in range(2)),
        *(case("tiny kernels", *kernel(share(0.01, 0.2), share(0.01, 0.2))) for _ in range(2)),
        case("nearly half of both", *kernel(share(0.35, 0.45), share(0.35, 0.45))),
        case("cannot be", *kernel(share(1.1, 2.0), share(0.1, 0.5))),
        case("cannot be", *kernel(share(0.1, 0.5), share(1.1, 2.0))),
    ]


bound_by = Exercise(
    "bound_by",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_limit,
    cases=[
        case("80 % of the peak", 800.0, 20.0, 10.0, peak=100.0, bandwidth=10.0),
        case("90 % of the bandwidth", 300.0, 90.0, 10.0, peak=100.0, bandwidth=10.0),
        case("60 % of one, 90 % of the other", 600.0, 90.0, 10.0, peak=100.0, bandwidth=10.0),
        case("5 % of one, 2 % of the other", 50.0, 2.0, 10.0, peak=100.0, bandwidth=10.0),
        case("40 % of each", 420.0, 40.0, 10.0, peak=100.0, bandwidth=10.0),
        case("faster than the peak", 1200.0, 20.0, 10.0, peak=100.0, bandwidth=10.0),
        case("faster than the memory", 50.0, 150.0, 10.0, peak=100.0, bandwidth=10.0),
    ],
    hidden_cases=_cases,
    hints=[
        "Two shares: of the peak, flops/seconds/peak, and of the bandwidth, moved/seconds/bandwidth.",
        'The larger names the limit, if it is at least one half. Else it waits for something else: "neither".',
        "A share above 1 cannot be. Raise ValueError before you name anything.",
    ],
)


@bound_by.variant
def seconds_that_each_would_take(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    computing, moving = flops / peak, moved / bandwidth
    if computing > seconds or moving > seconds:
        raise ValueError("too fast")
    if max(computing, moving) * 2 < seconds:
        return "neither"
    return "memory" if moving > computing else "arithmetic"


@bound_by.variant
def by_the_ridge(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    arithmetic = flops * bandwidth >= moved * peak
    share = flops / peak / seconds if arithmetic else moved / bandwidth / seconds
    if 0.5 <= share <= 1:
        return "arithmetic" if arithmetic else "memory"
    if share <= 1:
        return "neither"
    raise ValueError(f"{share:.1%}")


@bound_by.variant
def sorted_in_single_precision(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    rates = torch.tensor([flops / seconds, moved / seconds]) / torch.tensor([peak, bandwidth])
    share, place = rates.max(dim=0)
    if share.item() > 1.0:
        raise ValueError(share)
    names = ["arithmetic", "memory"]
    return names[int(place)] if not share.item() < 0.5 else "neither"


def _shares(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> tuple[float, float]:
    return flops / seconds / peak, moved / seconds / bandwidth


@bound_by.misconception(
    "You compare the intensity with the ridge and do not look at the time. That says what it would be limited by at "
    "best; a tiny kernel that waits to be launched reaches neither."
)
def intensity_only(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    arithmetic, memory = _shares(flops, moved, seconds, peak, bandwidth)
    if max(arithmetic, memory) > 1:
        raise ValueError("cannot be")
    return "arithmetic" if arithmetic > memory else "memory"


@bound_by.misconception("You have the two the wrong way round: a high share of the peak means that arithmetic limits.")
def wrong_way_round(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    found = _limit(flops, moved, seconds, peak, bandwidth)
    return {"arithmetic": "memory", "memory": "arithmetic"}.get(found, found)


@bound_by.misconception(
    "You name the first of the two that reaches one half. If both do, the larger share is the limit."
)
def first_above_half(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    _limit(flops, moved, seconds, peak, bandwidth)
    arithmetic, memory = _shares(flops, moved, seconds, peak, bandwidth)
    return "arithmetic" if arithmetic >= HALF else "memory" if memory >= HALF else "neither"


@bound_by.misconception("A share above 1 cannot be, and you name a limit all the same: raise ValueError.")
def above_one(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    arithmetic, memory = _shares(flops, moved, seconds, peak, bandwidth)
    if max(arithmetic, memory) < HALF:
        return "neither"
    return "arithmetic" if arithmetic > memory else "memory"


@bound_by.misconception("You refuse a rate above the peak, but not one above the bandwidth.")
def bandwidth_unchecked(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    if flops / seconds > peak:
        raise ValueError("cannot be")
    named: str = above_one(flops, moved, seconds, peak, bandwidth)
    return named


@bound_by.misconception("You add the two shares. Each limit is for itself: take the larger one.")
def shares_added(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    arithmetic, memory = _shares(flops, moved, seconds, peak, bandwidth)
    if max(arithmetic, memory) > 1:
        raise ValueError("cannot be")
    if arithmetic + memory < HALF:
        return "neither"
    return "arithmetic" if arithmetic > memory else "memory"


@bound_by.misconception("You never name memory. Copies, norms and activations wait for it.")
def arithmetic_or_nothing(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    found = _limit(flops, moved, seconds, peak, bandwidth)
    return "neither" if found == "memory" else found


@bound_by.misconception(
    "You compare the intensity with 1, not with the ridge. How many FLOPs per byte are many depends on the machine."
)
def ridge_of_one(flops: float, moved: float, seconds: float, peak: float, bandwidth: float) -> str:
    found = _limit(flops, moved, seconds, peak, bandwidth)
    return found if found == "neither" else "arithmetic" if flops > moved else "memory"
