"""The exercise on Amdahl's law: the speed-up of a step in which only some operations become faster."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Shares = dict[str, float]
Offers = dict[str, list[Any]]
"""Maps an offer to `[names, factor]`: the operations it makes faster, and how many times as fast."""


def _time_left(shares: Shares, faster: dict[str, float]) -> float:
    """Return the time of a step that took 1, in exact fractions."""
    rates = {name: Fraction(0) if math.isinf(factor) else 1 / Fraction(factor) for name, factor in faster.items()}
    saved = sum(Fraction(share) * (1 - rates.get(name, Fraction(1))) for name, share in shares.items())
    return float(1 - saved)


def _speedups(shares: Shares, offers: Offers) -> dict[str, float]:
    each = {offer: {name: float(factor) for name in names} for offer, (names, factor) in offers.items()}
    together = {name: factor for faster in each.values() for name, factor in faster.items()}
    return {offer: 1 / _time_left(shares, faster) for offer, faster in (each | {"all": together}).items()}


def _cases(random: Random) -> list[Case]:
    def profile(names: str) -> Shares:
        parts = [random.randint(1, 40) for _ in range(len(names) + 1)]
        return {name: part / sum(parts) for name, part in zip([*names, "idle"], parts, strict=True)}

    def offers(*names: str) -> Offers:
        return {f"offer {each}": [[*each], random.choice([1.5, 2.0, 4.0, 10.0])] for each in names}

    halves = {"a": 0.5, "b": 0.25, "idle": 0.25}
    return [
        case("all of a name", halves, {"free": [["a"], math.inf]}),
        case("all of a name", halves, {"free": [["a", "b"], math.inf], "graph": [["idle"], 2.0]}),
        edge(case("names that take no time", halves, {"nothing": [["c"], 8.0], "some": [["b", "c"], 2.0]})),
        case("one name of many", {"optimizer": 0.25}, {"fused": [["optimizer"], 4.0]}),
        edge(case("slower", halves, {"bf16 without units": [["a"], 0.5]})),
        edge(case("no offers", halves, {})),
        edge(case("a factor of 1", halves, {"hope": [["a", "b", "idle"], 1.0]})),
        case("one offer", profile("abc"), offers("a")),
        case("two offers", profile("abcd"), offers("a", "b")),
        case("several names", profile("abcd"), offers("ab", "c")),
        case("several names", profile("abcdef"), offers("ace", "bd", "f")),
    ]


speedup_bounds = Exercise(
    "speedup_bounds",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_speedups,
    cases=[
        case("half of it twice as fast", {"mm": 0.5, "add": 0.3, "idle": 0.2}, {"bf16": [["mm"], 2.0]}),
        case(
            "two offers",
            {"mm": 0.5, "add": 0.3, "idle": 0.2},
            {"bf16": [["mm"], 4.0], "graph": [["idle"], 2.0]},
        ),
        case(
            "an offer that frees three names",
            {"mm": 0.6, "mul": 0.1, "add": 0.2, "idle": 0.1},
            {"fused": [["mul", "add", "idle"], math.inf], "bf16": [["mm"], 3.0]},
        ),
        case("two names of many", {"mm": 0.5, "add": 0.25}, {"bf16": [["mm"], 2.0]}),
        edge(case("a name that was never called", {"mm": 0.9, "idle": 0.1}, {"attention": [["flash"], 5.0]})),
    ],
    hidden_cases=_cases,
    tolerance=Tolerance(1e-6),  # float32 is enough
    hints=[
        "A step takes 1. How much of it is left if half of it runs twice as fast? The speed-up is 1 over that.",
        "An offer with the share s and the factor f leaves 1 − s + s/f. Its share is the sum over its names.",
        'Speed-ups do not multiply. For "all", subtract what each offer saves, and divide 1 by what is left.',
    ],
)


@speedup_bounds.variant
def new_times_by_name(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    def speedup(names: list[str]) -> float:
        times = dict(shares)
        for offer in names:
            faster, factor = offers[offer]
            for name in faster:
                if name in times:
                    times[name] = shares[name] / factor
        return 1 / (1 - sum(shares.values()) + sum(times.values()))

    found = {offer: speedup([offer]) for offer in offers}
    found["all"] = speedup(list(offers))
    return found


@speedup_bounds.variant
def what_is_saved(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    saved = {}
    for offer, (names, factor) in offers.items():
        share = sum(shares.get(name, 0.0) for name in set(names))
        saved[offer] = share - share / factor
    saved["all"] = sum(saved.values())
    return {offer: 1 / (1 - each) for offer, each in saved.items()}


@speedup_bounds.variant
def in_numpy(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    parts = np.array([sum(shares.get(name, 0) for name in names) for names, _ in offers.values()], dtype=np.float64)
    factors = np.array([factor for _, factor in offers.values()], dtype=np.float64)
    left = 1 - parts + parts / factors
    return {**dict(zip(offers, 1 / left, strict=True)), "all": float(1 / (1 - np.sum(1 - left)))}


@speedup_bounds.misconception(
    "You multiply the speed-ups for `all`. The second offer finds a shorter step, in which its share is "
    "larger. Add up what the offers save."
)
def multiplied(shares: Shares, offers: Offers) -> dict[str, float]:
    found = _speedups(shares, offers)
    found["all"] = math.prod(value for offer, value in found.items() if offer != "all")
    return found


@speedup_bounds.misconception(
    "You add up the speed-ups for `all`. Add up what the offers save, then divide 1 by what is left."
)
def added(shares: Shares, offers: Offers) -> dict[str, float]:
    found = _speedups(shares, offers)
    found["all"] = 1 + sum(value - 1 for offer, value in found.items() if offer != "all")
    return found


@speedup_bounds.misconception("For `all` you take the best offer. All offers together save what each of them saves.")
def best_alone(shares: Shares, offers: Offers) -> dict[str, float]:
    found = _speedups(shares, offers)
    found["all"] = max((value for offer, value in found.items() if offer != "all"), default=1.0)
    return found


@speedup_bounds.misconception("You leave out `all`: what the step gains from all offers together.")
def without_all(shares: Shares, offers: Offers) -> dict[str, float]:
    return {offer: value for offer, value in _speedups(shares, offers).items() if offer != "all"}


@speedup_bounds.misconception(
    "You remove all the time of the operations in an offer, whatever its factor. A factor of 2 leaves half of that "
    "time."
)
def factor_ignored(shares: Shares, offers: Offers) -> dict[str, float]:
    return _speedups(shares, {offer: [names, math.inf] for offer, (names, _) in offers.items()})


@speedup_bounds.misconception(
    "You average the factors, weighted by time. Speed-ups do not average; times add up. Find the time that is left."
)
def average_of_the_rates(shares: Shares, offers: Offers) -> dict[str, float]:
    parts = {offer: sum(shares.get(name, 0) for name in names) for offer, (names, _) in offers.items()}
    gains = {offer: parts[offer] * (factor - 1) for offer, (_, factor) in offers.items()}
    return {offer: 1 + gain for offer, gain in gains.items()} | {"all": 1 + sum(gains.values())}


@speedup_bounds.misconception("You return the time that is left, as a fraction. The speed-up is 1 divided by it.")
def time_left(shares: Shares, offers: Offers) -> dict[str, float]:
    return {offer: 1 / value for offer, value in _speedups(shares, offers).items()}


@speedup_bounds.misconception("You return 1 plus the time saved. Divide the old time, 1, by the new time.")
def one_and_what_is_saved(shares: Shares, offers: Offers) -> dict[str, float]:
    return {offer: 2 - 1 / value for offer, value in _speedups(shares, offers).items()}


@speedup_bounds.misconception("You look at the first name of an offer only. It makes all of its names faster.")
def first_name_only(shares: Shares, offers: Offers) -> dict[str, float]:
    return _speedups(shares, {offer: [names[:1], factor] for offer, (names, factor) in offers.items()})


@speedup_bounds.misconception("You return gains, such as 0.33 for a third faster. Return how many times as fast: 1.33.")
def gains(shares: Shares, offers: Offers) -> dict[str, float]:
    return {offer: value - 1 for offer, value in _speedups(shares, offers).items()}


@speedup_bounds.misconception(
    "You return the speed-up of the operations in the offer. Everything else in the step takes as long as before."
)
def of_the_part(shares: Shares, offers: Offers) -> dict[str, float]:
    return {offer: factor for offer, (_, factor) in offers.items()} | {"all": _speedups(shares, offers)["all"]}


@speedup_bounds.misconception("You leave the idle time out of the step. It is part of it, and an offer may shorten it.")
def without_idle(shares: Shares, offers: Offers) -> dict[str, float]:
    busy = {name: share for name, share in shares.items() if name != "idle"}
    total = sum(busy.values())
    return _speedups({name: share / total for name, share in busy.items()}, offers)


@speedup_bounds.misconception(
    "You remove all the time of the operations in an offer, and multiply the speed-ups. A factor of 2 leaves half of "
    "that time; for `all`, add up what the offers save."
)
def vanished_and_multiplied(shares: Shares, offers: Offers) -> dict[str, float]:
    found = factor_ignored(shares, offers)
    found["all"] = math.prod(value for offer, value in found.items() if offer != "all")
    return dict(found)


@speedup_bounds.misconception(
    "You return the new time of the operations in an offer, s/f. Add the rest of the step, 1 − s, and divide "
    "the old time, 1, by the sum."
)
def new_time_of_the_part(shares: Shares, offers: Offers) -> dict[str, float]:
    parts = {offer: sum(shares.get(name, 0) for name in names) / factor for offer, (names, factor) in offers.items()}
    return parts | {"all": sum(parts.values())}


@speedup_bounds.misconception(
    "For `all` you add the speed-ups themselves, so two offers that change nothing would double the speed."
)
def speedups_summed(shares: Shares, offers: Offers) -> dict[str, float]:
    found = _speedups(shares, offers)
    found["all"] = sum(value for offer, value in found.items() if offer != "all")
    return found


@speedup_bounds.misconception(
    "You take the names in `shares` for the whole step. Where their shares add up to less than 1, the rest of the "
    "step takes as long as before."
)
def named_for_the_whole(shares: Shares, offers: Offers) -> dict[str, float]:
    whole = sum(shares.values())
    return _speedups({name: share / whole for name, share in shares.items()}, offers)


@speedup_bounds.misconception(
    "You divide 1 by the new times of the names in `shares`. Their shares may add up to less than 1: then the rest of "
    "the step is missing from the new time."
)
def rest_missing(shares: Shares, offers: Offers) -> dict[str, float]:
    whole = sum(shares.values())
    return {offer: value / whole for offer, value in named_for_the_whole(shares, offers).items()}


def _subtracted(parts: dict[str, float]) -> dict[str, float]:
    return {offer: 1 / (1 - part) for offer, part in (parts | {"all": sum(parts.values())}).items()}


@speedup_bounds.misconception(
    "You subtract s/f, the *new* time of the operations in an offer. The offer saves the difference between their old "
    "and their new time."
)
def new_time_subtracted(shares: Shares, offers: Offers) -> dict[str, float]:
    return _subtracted(
        {offer: sum(shares.get(name, 0) for name in names) / factor for offer, (names, factor) in offers.items()}
    )


@speedup_bounds.misconception(
    "Unless the factor is infinite, you subtract s/f, which is the time that remains. Subtract the time that is saved."
)
def finite_new_time_subtracted(shares: Shares, offers: Offers) -> dict[str, float]:
    return _subtracted(
        {
            offer: sum(shares.get(name, 0) for name in names) / (1 if math.isinf(factor) else factor)
            for offer, (names, factor) in offers.items()
        }
    )


@speedup_bounds.misconception("You look up the share of a name that was never called. Such a name takes no time.")
def missing_name_looked_up(shares: Shares, offers: Offers) -> dict[str, float]:
    return _subtracted(
        {offer: sum(shares[name] * (1 - 1 / factor) for name in names) for offer, (names, factor) in offers.items()}
    )


@speedup_bounds.misconception(
    "You multiply the share by the factor. Operations that become f times as fast take their share divided by f."
)
def share_times_factor(shares: Shares, offers: Offers) -> dict[str, float]:
    saved = {}
    for offer, (names, factor) in offers.items():
        share = sum(shares.get(name, 0) for name in names)
        saved[offer] = share - share * (0 if math.isinf(factor) else factor)
    return _subtracted(saved)


@speedup_bounds.misconception("You return the share of the time that is saved. Return how many times as fast it is.")
def share_saved(shares: Shares, offers: Offers) -> dict[str, float]:
    return {offer: 1 - 1 / value for offer, value in _speedups(shares, offers).items()}


@speedup_bounds.misconception(
    "For `all` you use one mean factor for all names. Each offer has its own factor: add up what they save."
)
def mean_factor(shares: Shares, offers: Offers) -> dict[str, float]:
    factors = [factor for _, factor in offers.values()]
    inverse = sum(1 / factor for factor in factors) / max(1, len(factors))
    share = sum(shares.get(name, 0) for names, _ in offers.values() for name in names)
    return _speedups(shares, offers) | {"all": 1 / (1 - share + share * inverse)}
