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
    minutes=5,
    difficulty=2,
    reference=_speedups,
    cases=[
        case("half of it twice as fast", {"mm": 0.5, "add": 0.3, "idle": 0.2}, {"bf16": [["mm"], 2.0]}),
        case("two offers", {"mm": 0.5, "add": 0.3, "idle": 0.2}, {"bf16": [["mm"], 4.0], "graph": [["idle"], 2.0]}),
        case(
            "an offer that frees three names",
            {"mm": 0.55, "mul": 0.1, "add": 0.2, "idle": 0.15},
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
def in_numpy(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    parts = np.array([sum(shares.get(name, 0) for name in names) for names, _ in offers.values()], dtype=np.float64)
    factors = np.array([factor for _, factor in offers.values()], dtype=np.float64)
    left = 1 - parts + parts / factors
    return {**dict(zip(offers, 1 / left, strict=True)), "all": float(1 / (1 - np.sum(1 - left)))}


@speedup_bounds.variant
def what_is_saved(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    saved = {}
    for offer, (names, factor) in offers.items():
        share = sum(shares.get(name, 0.0) for name in names)
        saved[offer] = share - share / factor
    speedups = {offer: 1 / (1 - part) for offer, part in saved.items()}
    speedups["all"] = 1 / (1 - sum(saved.values()))
    return speedups


speedup_bounds.slips(
    what_is_saved,
    {
        "1 / (1 - sum(saved.values())) → math.prod(speedups.values())": "You multiply the speed-ups for `all`. The "
        "second offer finds a shorter step, in which its share is larger. Add up what the offers save.",
        "1 / (1 - sum(saved.values())) → 1 + sum(each - 1 for each in speedups.values())": "You add up the speed-ups "
        "for `all`. Add up what the offers save, then divide 1 by what is left.",
        "1 / (1 - sum(saved.values())) → max(speedups.values(), default=1.0)": "For `all` you take the best offer. "
        "All offers together save what each of them saves.",
        'speedups["all"] = → _ =': "You leave out `all`: what the step gains from all offers together.",
        "share - share / factor → share": "You remove all the time of the operations in an offer, whatever its "
        "factor. A factor of 2 leaves half of that time.",
        "share - share / factor → share * (factor - 1) ;; 1 / (1 - part) → 1 + part ;; 1 / (1 - sum(saved.values())) → "
        "1 + sum(saved.values())": "You average the factors, weighted by time. Speed-ups do not average; times add "
        "up. Find the time that is left.",
        "1 / (1 - part) → 1 - part ;; 1 / (1 - sum(saved.values())) → 1 - sum(saved.values())": "You return the time "
        "that is left, as a fraction. The speed-up is 1 divided by it.",
        "1 / (1 - part) → 1 + part ;; 1 / (1 - sum(saved.values())) → 1 + sum(saved.values())": "You return 1 plus "
        "the time saved. Divide the old time, 1, by the new time.",
        "in names) → in names[:1])": "You look at the first name of an offer only. It makes all of its names faster.",
        "return speedups → return {offer: each - 1 for offer, each in speedups.items()}": "You return gains, such as "
        "0.33 for a third faster. Return how many times as fast: 1.33.",
        "1 / (1 - part) for offer, part in saved.items() → factor for offer, (_, factor) in offers.items()": "You "
        "return the speed-up of the operations in the offer. Everything else in the step takes as long as before.",
        'saved = {} → busy = sum(shares.values()) - shares.get("idle", 0.0)\n    shares = {name: share / busy for '
        'name, share in shares.items() if name != "idle"}\n    saved = {}': "You leave the idle time out of the step. "
        "It is part of it, and an offer may shorten it.",
        "share - share / factor → share ;; 1 / (1 - sum(saved.values())) → math.prod(speedups.values())": "You remove "
        "all the time of the operations in an offer, and multiply the speed-ups. A factor of 2 leaves half of that "
        "time; for `all`, add up what the offers save.",
        "share - share / factor → share / factor ;; 1 / (1 - part) → part ;; 1 / (1 - sum(saved.values())) → "
        "sum(saved.values())": "You return the new time of the operations in an offer, s/f. Add the rest of the step, "
        "1 − s, and divide the old time, 1, by the sum.",
        "1 / (1 - sum(saved.values())) → sum(speedups.values())": "For `all` you add the speed-ups themselves, so two "
        "offers that change nothing would double the speed.",
        "saved = {} → shares = {name: share / sum(shares.values()) for name, share in shares.items()}\n    saved = "
        "{}": "You take the names in `shares` for the whole step. Where their shares add up to less than 1, the rest "
        "of the step takes as long as before.",
        "1 - part → sum(shares.values()) - part ;; 1 - sum(saved.values()) → sum(shares.values()) - "
        "sum(saved.values())": "You divide 1 by the new times of the names in `shares`. Their shares may add up to "
        "less than 1: then the rest of the step is missing from the new time.",
        "share - share / factor → share / factor": "You subtract s/f, the *new* time of the operations in an offer. "
        "The offer saves the difference between their old and their new time.",
        "share - share / factor → share / (1 if math.isinf(factor) else factor)": "Unless the factor is infinite, you "
        "subtract s/f, which is the time that remains. Subtract the time that is saved.",
        "shares.get(name, 0.0) → shares[name]": "You look up the share of a name that was never called. Such a name "
        "takes no time.",
        "share - share / factor → share - share * (0 if math.isinf(factor) else factor)": "You multiply the share by "
        "the factor. Operations that become f times as fast take their share divided by f.",
        "1 / (1 - part) → part ;; 1 / (1 - sum(saved.values())) → sum(saved.values())": "You return the share of the "
        "time that is saved. Return how many times as fast it is.",
        'speedups["all"] = 1 / (1 - sum(saved.values())) → share = sum(shares.get(name, 0.0) for names, _ in '
        "offers.values() for name in names)\n    mean = sum(1 / factor for _, factor in offers.values()) / max(1, "
        'len(offers))\n    speedups["all"] = 1 / (1 - share + share * mean)': "For `all` you use one mean factor for "
        "all names. Each offer has its own factor: add up what they save.",
        "in names) → in names[-1:])": "You look at the last name of an offer only. It makes all of its names faster.",
        "share - share / factor → 0.0 if math.isinf(factor) else share - share / factor": "An offer with the factor ∞ "
        "saves nothing in yours. It leaves no time of its operations: share / ∞ = 0.",
        'in names) → in names if name != "idle")': "You do not let an offer shorten the idle time. Its share counts "
        "like that of any other name.",
        "1 / (1 - sum(saved.values())) → sum(speedups.values()) / max(1, len(speedups))": "For `all` you average the "
        "speed-ups. Add up what the offers save, then divide 1 by what is left.",
        "1 / (1 - sum(saved.values())) → 1 / (1 - sum(shares.get(name, 0.0) for names, _ in offers.values() for name "
        "in names) * (1 - 1 / max((factor for _, factor in offers.values()), default=1)))": "For `all` you give every "
        "operation the largest factor. Each offer has its own factor: add up what they save.",
        "1 / (1 - sum(saved.values())) → 1 / (1 - sum(shares.get(name, 0.0) for names, _ in offers.values() for name "
        "in names) * (1 - 1 / math.prod(factor for _, factor in offers.values())))": "For `all` you multiply the "
        "factors of the offers. Each makes only its own operations faster: add up what they save.",
        "share - share / factor → share - share / factor + max(saved.values(), default=0.0) ;; sum(saved.values()) → "
        "max(saved.values(), default=0.0)": "Your second offer starts from the step that the first one has made "
        "faster. Each offer alone starts from the old step; only `all` has them together.",
    },
)
