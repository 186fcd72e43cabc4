"""Exercises on the time and the cost of training."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain
from random import Random

import numpy as np

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise

# training_days ---------------------------------------------------------------------------------------------------

V100, A100, H100, B200 = map(find_accelerator, ("v100", "a100", "h100", "b200"))


def _days(parameters: float, tokens: float, gpus: int, peak: float, mfu: float) -> float:
    """Divide the FLOPs of the run by those of a day, in exact fractions."""
    day = gpus * Fraction(peak) * Fraction(mfu) * 24 * 60 * 60
    return float(6 * Fraction(parameters) * Fraction(tokens) / day)


def _day_cases(random: Random) -> list[Case]:
    def run() -> list[float]:
        sizes = [random.uniform(1e8, 1e12), random.uniform(1e9, 3e13), random.randint(2, 30_000)]
        return [*sizes, random.uniform(1e14, 2e15), random.uniform(0.05, 0.7)]

    return [case("one GPU at its peak", 5.0, 28_800.0, 1, 2.0, 1.0), *(case("other runs", *run()) for _ in range(5))]


training_days = Exercise(
    "training_days",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_days,
    cases=[
        case("one GPU that does 20 FLOP/s", 10.0, 14_400.0, 1, 20.0, 0.5),
        case("70B on 15T tokens, 1024 H100s", 70e9, 15e12, 1024, H100.peak("bf16"), 0.5),
        case("GPT-3 on 1024 A100s", 175e9, 300e9, 1024, A100.peak("bf16"), 0.3),
        case("a small model on one processor", 124e6, 10e9, 1, 150e9, 0.2),
    ],
    hidden_cases=_day_cases,
    hints=[
        "How many FLOPs in all, by 6·N·T? And how many useful ones do all GPUs together do in a second?",
        "FLOPs over FLOP/s are seconds. A day has 86,400 of them.",
    ],
)


@training_days.variant
def seconds_first(parameters: float, tokens: float, gpus: int, peak: float, mfu: float) -> float:
    flops = 6 * parameters * tokens
    rate = gpus * peak * mfu
    return flops / rate / 86_400


training_days.slips(
    seconds_first,
    {
        "6 * parameters → 2 * parameters": "That is the forward pass alone. Training takes 6·N·T.",
        "6 * parameters → 4 * parameters": "You count as much for the backward pass as for the forward pass. It takes "
        "twice as much: 2 + 4 = 6 per weight.",
        "6 * parameters → 8 * parameters": "You compute all blocks twice. MFU counts 6 FLOPs per weight, not 8.",
        "6 * parameters → parameters": "You forget the 6 FLOPs per parameter and token.",
        "peak * mfu → peak": "Your GPUs reach their peak. They do peak · MFU useful FLOPs per second.",
        "peak * mfu → peak / mfu": "You multiply the days by MFU. A lower MFU makes the run longer.",
        "peak * mfu → peak * mfu / 100": "You divide the MFU by 100. It is a share between 0 and 1 already.",
        "peak * mfu → 2 * peak * mfu": "You double the peak, as for sparse matrices. `peak` is the dense one.",
        "peak * mfu → peak / 2 * mfu": "You halve the peak. It is the dense peak already.",
        "gpus * peak → peak": "That is for one GPU. There are `gpus` of them.",
        "flops / rate → flops / gpus * peak * mfu": "You multiply by peak and MFU. Dividing by a product needs "
        "brackets around it.",
        "86_400 → 3600": "You return hours. A day has 24 hours.",
        " / 86_400 → ": "You return seconds. A day has 86,400 seconds.",
        "86_400 → 60 / 24": "You divide by 60 minutes once. An hour has 3600 seconds.",
    },
)


@training_days.variant
def gpu_hours_first(parameters: float, tokens: float, gpus: int, peak: float, mfu: float) -> np.float64:
    hours = np.divide(6.0 * parameters * tokens, peak * mfu) / 3600
    return np.float64(hours / gpus / 24)


# cheapest_offer --------------------------------------------------------------------------------------------------

Offer = list[float]


def _cheapest(parameters: float, tokens: float, days: float, offers: dict[str, Offer]) -> list[object]:
    """Return the offer with the lowest bill among those that finish in time, in exact fractions."""
    found = []
    for name, (gpus, price, peak, mfu) in offers.items():
        hours = 6 * Fraction(parameters) * Fraction(tokens) / (Fraction(peak) * Fraction(mfu)) / 3600
        if hours / Fraction(gpus) <= 24 * Fraction(days):
            found.append((hours * Fraction(price), name))
    if not found:
        raise ValueError("no offer finishes in time")
    bill, name = min(found)
    return [name, float(bill)]


FOUR: dict[str, Offer] = {
    "V100": [4096, 0.60, float(V100.peak("fp16")), 0.35],
    "A100": [2048, 1.50, float(A100.peak("bf16")), 0.45],
    "H100": [256, 2.40, float(H100.peak("bf16")), 0.40],
    "B200": [64, 4.50, float(B200.peak("bf16")), 0.35],
}
"""GPUs, dollars per GPU-hour, dense peak and MFU of four offers. Only the peaks are real."""


def _both(title: str, parameters: float, tokens: float, days: float, offers: dict[str, Offer]) -> list[Case]:
    """A case for the name and one for the dollars, so that one mistake does not cost the points of both."""
    inputs = {"parameters": parameters, "tokens": tokens, "days": days, "offers": offers}
    return [
        script(f"{each}: {title}", f"cheapest_offer(parameters, tokens, days, offers)[{place}]", **inputs)
        for place, each in enumerate(("name", "dollars"))
    ]


def _offer_cases(random: Random) -> list[Case]:
    def offers() -> dict[str, Offer]:
        return {name: offer() for name in ("north", "east", "south", "west")}

    def offer() -> Offer:
        gpus, price = random.randint(1, 4000), round(random.uniform(0.5, 6.0), 2)
        return [gpus, price, random.uniform(1e14, 2e15), round(random.uniform(0.2, 0.6), 2)]

    return [
        *map(edge, _both("done at the last second", 10.0, 1440.0, 1.0, {"toy": [1, 2.0, 1.0, 1.0]})),
        case("none in time", 10.0, 1440.0, 0.99, {"toy": [1, 2.0, 1.0, 1.0]}),
        case("none in time", 7e9, 1e12, 0.5, FOUR),
        *chain.from_iterable(
            _both("other offers", random.uniform(1e9, 9e10), random.uniform(1e11, 2e12), 365.0, offers())
            for _ in range(4)
        ),
        *chain.from_iterable(_both("other offers", 7e9, 1e12, days, FOUR) for days in (10.0, 5.0, 2.0)),
    ]


cheapest_offer = Exercise(
    "cheapest_offer",
    points=2,
    minutes=7,
    difficulty=2,
    reference=_cheapest,
    cases=[
        *_both("a toy: 7200 FLOPs", 10.0, 120.0, 1.0, {"one": [1, 2.0, 1.0, 0.5], "two": [3, 1.0, 0.5, 0.4]}),
        *_both(
            "an expensive one and a slow one", 10.0, 120.0, 1.0, {"one": [1, 5.0, 1.0, 0.5], "two": [1, 2.0, 1.0, 0.4]}
        ),
        *_both("done at the last second", 5.0, 1440.0, 0.5, {"toy": [1, 3.0, 1.0, 1.0]}),
        case("done a quarter of an hour too late", 5.0, 1440.0, 0.49, {"toy": [1, 3.0, 1.0, 1.0]}),
        *_both("three years for one GPU", 10.0, 120.0, 1000.0, {"one": [1, 7.0, 1.0, 0.5]}),
        *_both("7B on a trillion tokens, within a month", 7e9, 1e12, 30.0, FOUR),
        *_both("70B on a trillion tokens, within a month", 70e9, 1e12, 30.0, FOUR),
        *_both("the same within 60 days", 70e9, 1e12, 60.0, FOUR),
        *_both("the same within 100 days", 70e9, 1e12, 100.0, FOUR),
        case("the same within 10 days", 70e9, 1e12, 10.0, FOUR),
    ],
    hidden_cases=_offer_cases,
    hints=[
        "How many useful FLOPs does one GPU of an offer do in an hour? So how many GPU-hours does the run take?",
        "The bill is GPU-hours times the price, however many GPUs share them. The number of GPUs only changes the "
        "days.",
        "Keep the offers whose GPU-hours / gpus are at most 24 · days, and take the lowest bill.",
    ],
)


@cheapest_offer.variant
def bills_in_time(parameters: float, tokens: float, days: float, offers: dict[str, list[float]]) -> list[str | float]:
    found = []
    for name, (gpus, price, peak, mfu) in offers.items():
        hours = 6 * parameters * tokens / (peak * mfu) / 3600
        bill = hours * price
        if hours / gpus <= 24 * days:
            found.append((bill, name))
    if not found:
        raise ValueError("no offer finishes in time")
    bill, name = min(found)
    return [name, bill]


cheapest_offer.slips(
    bills_in_time,
    {
        "(bill, name) → (price, name, bill) ;; bill, name = → _, name, bill =": "You take the cheapest hour. A GPU "
        "that costs twice as much may do four times the work.",
        "(bill, name) → (hours / gpus, name, bill) ;; bill, name = → _, name, bill =": "You take the offer that "
        "finishes first. Several finish in time: compare their bills.",
        "if hours / gpus <= 24 * days:\n            found.append((bill, name)) → found.append((bill, name, hours / "
        "gpus)) ;; if not found → if min(found)[2] > 24 * days ;; bill, name = → bill, name, _ =": "You choose the "
        "cheapest offer first and look at the time afterwards. If it is late, another may still be in time.",
        "min(found) → found[0]": "You take the first offer that finishes in time. Others may cost less.",
        "hours * price → np.ceil(hours / gpus) * gpus * price": "You round the hours of the run up. The bill is for "
        "the exact time.",
        "hours * price → np.ceil(hours / gpus / 24) * 24 * gpus * price": "You round the run up to whole days. The "
        "bill is for the exact time.",
        "(bill, name) → (hours, name, bill) ;; bill, name = → _, name, bill =": "You take the fewest GPU-hours. They "
        "have different prices.",
        "if hours / gpus <= 24 * days → if True": "You do not check whether the run finishes in time.",
        "hours / gpus <= → hours <=": "You require one GPU alone to finish in time. All GPUs of an offer share the "
        "work.",
        "6 * parameters → 2 * parameters": "You count the forward pass alone, 2 FLOPs per parameter and token. "
        "Training takes 6.",
        "6 * parameters → 8 * parameters": "You count 8 FLOPs per parameter and token. MFU counts the model's 6.",
        "(peak * mfu) → peak": "You assume that the GPUs reach their peak. They do peak · MFU useful FLOPs per second.",
        "(bill, name) → (bill, name, hours) ;; bill, name = → _, name, bill =": "The name is right, but the number is "
        "GPU-hours. Multiply it by the price.",
        "hours * price → hours / gpus * price": "Your bill is for one GPU. You pay for all of them.",
        "hours * price → hours * gpus * price": "You multiply GPU-hours by the number of GPUs. GPU-hours already "
        "count every GPU.",
        "[name, bill] → [name, bill / 24]": "You charge the price of a GPU-hour per day.",
        "[name, bill] → [name, bill * 3600]": "You charge the price of a GPU-hour per second: divide by 3600.",
        "[name, bill] → [bill, name]": "You return the dollars first. The name comes first.",
        "hours * price → 24 * days * gpus * price": "You pay for all the days allowed. You only pay until the run is "
        "done.",
        "peak * mfu → peak / 2 * mfu": "You halve the peak. It is already the dense peak.",
        'raise ValueError("no offer finishes in time") → return None': "You return None if no offer finishes in time. "
        "Raise ValueError.",
        "hours / gpus <= 24 * days → hours / gpus < 24 * days": "You reject a run that takes exactly `days`. It is "
        "done in time.",
        " / 3600 → ": "Your hours are seconds: FLOPs divided by FLOP/s are seconds.",
        "<= 24 * days → <= days": "You compare hours with days. A day has 24 hours.",
        "peak * mfu → peak * mfu / 100": "You divide the MFU by 100. It is a share between 0 and 1 already.",
        "/ (peak * mfu) → / peak * mfu": "You multiply the hours by the MFU. A lower MFU makes the run longer.",
        "min(found) → max(found)": "You take the most expensive offer that finishes in time.",
        "<= 24 * days → <= 24 * 30": "You always allow 30 days. The limit is `days`.",
    },
)


@cheapest_offer.variant
def sorted_by_dollars(
    parameters: float, tokens: float, days: float, offers: dict[str, list[float]]
) -> tuple[str, float]:
    flops = 6 * parameters * tokens
    dollars = {name: flops / peak / mfu / 3600 * price for name, (_, price, peak, mfu) in offers.items()}
    for name in sorted(dollars, key=lambda one: dollars[one]):
        gpus, _, peak, mfu = offers[name]
        if flops / (gpus * peak * mfu * 86_400) <= days:
            return name, dollars[name]
    raise ValueError("no offer finishes in time")


@cheapest_offer.variant
def with_arrays(
    parameters: float, tokens: float, days: float, offers: dict[str, list[float]]
) -> list[str | np.float64]:
    gpus, price, peak, mfu = np.array(list(offers.values()), dtype=np.float64).T
    hours = 6 * parameters * tokens / (peak * mfu) / 3600
    bill = np.where(hours / gpus <= 24 * days, hours * price, np.inf)
    if np.isinf(bill).all():
        raise ValueError("no offer finishes in time")
    return [list(offers)[int(bill.argmin())], bill.min()]


cheapest_offer.equivalent_mutant(
    "if not bills: → if False:", "The smallest of no bills is a ValueError, too: `min` raises it."
)
