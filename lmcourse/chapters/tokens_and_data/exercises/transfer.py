"""The exercise on the time of a copy from pinned and from pageable memory."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Times = tuple[float, float]


def _reference(size: float, host: float, link: float, pinned: bool) -> Times:
    """Compute two time spans; the program waits for copies by the processor."""
    stretches = [(size / link, False)] if pinned else [(size / host, True), (size / link, False)]
    return sum(time for time, waits in stretches if waits), sum(time for time, _ in stretches)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("nothing to copy", 0.0, 10e9, 25e9, False),
        case("a slow bus", 2e9, 20e9, 1e9, False),
        case("a slow bus", 2e9, 20e9, 1e9, True),
        case("a slow main memory", 3e9, 2e9, 50e9, False),
        case("a slow main memory", 3e9, 2e9, 50e9, True),
    ]
    for pinned in (True, False, False):
        size, host, link = (float(random.randint(2, 60)) for _ in range(3))
        cases.append(case("other machines", size * 1e8, host * 1e9, (link + 61) * 1e9, pinned))
    return cases


copy_seconds = Exercise(
    "copy_seconds",
    points=1,
    minutes=4,
    difficulty=1,
    reference=_reference,
    cases=[
        case("1 GB, pinned", 1e9, 10e9, 25e9, True),
        case("1 GB, pageable", 1e9, 10e9, 25e9, False),
        case("a batch, pageable", 65_536.0, 8e9, 16e9, False),
        case("a bus slower than main memory", 4e9, 10e9, 2e9, False),
        case("a bus slower than main memory, pinned", 4e9, 10e9, 2e9, True),
    ],
    hidden_cases=_hidden,
    hints=[
        "How many copies are there, and which of them does the program wait for?",
        "Bytes divided by bytes per second are seconds. From pageable memory the second copy begins when the first is "
        "over.",
    ],
)


@copy_seconds.misconception(
    "You count the copy inside main memory for pinned memory, too. Pinned memory needs only one copy."
)
def always_two(size: float, host: float, link: float, pinned: bool) -> Times:
    return (0.0 if pinned else size / host), size / host + size / link


@copy_seconds.misconception(
    "From pageable memory the batch is copied twice. Your second number leaves out the first of these copies."
)
def always_one(size: float, host: float, link: float, pinned: bool) -> Times:
    return (0.0 if pinned else size / host), size / link


@copy_seconds.misconception(
    "You let the program wait for both copies. It waits for the first only: the copy over the bus runs without it."
)
def waits_for_both(size: float, host: float, link: float, pinned: bool) -> Times:
    first = 0.0 if pinned else size / host
    return (0.0 if pinned else first + size / link), first + size / link


@copy_seconds.misconception("From pinned memory, the program does not wait at all.")
def always_waits(size: float, host: float, link: float, pinned: bool) -> Times:
    first = 0.0 if pinned else size / host
    return first or size / link, first + size / link


@copy_seconds.misconception("`non_blocking=True` alone is not enough: from pageable memory the program waits.")
def never_waits(size: float, host: float, link: float, pinned: bool) -> Times:
    return 0.0, (0.0 if pinned else size / host) + size / link


@copy_seconds.misconception("You inverted `pinned`.")
def the_other_way(size: float, host: float, link: float, pinned: bool) -> Times:
    return _reference(size, host, link, not pinned)


@copy_seconds.misconception("You take the longer of the two copies. They run one after the other: add their times.")
def the_longer(size: float, host: float, link: float, pinned: bool) -> Times:
    first = 0.0 if pinned else size / host
    return first, max(first, size / link)


@copy_seconds.misconception(
    "You count two copies inside main memory. The batch is copied there once; the second copy goes over the bus."
)
def twice_inside(size: float, host: float, link: float, pinned: bool) -> Times:
    first = 0.0 if pinned else 2 * size / host
    return first, first + size / link


@copy_seconds.misconception(
    "A batch in pinned memory still has to cross the bus: it is on the device after size / link."
)
def pinned_at_once(size: float, host: float, link: float, pinned: bool) -> Times:
    return (0.0, 0.0) if pinned else _reference(size, host, link, pinned)


@copy_seconds.misconception(
    "The program waits for the copy inside main memory, at `host` bytes per second. You let it wait for the bus."
)
def waits_for_the_bus(size: float, host: float, link: float, pinned: bool) -> Times:
    return (0.0 if pinned else size / link), _reference(size, host, link, pinned)[1]


@copy_seconds.misconception("You add the bandwidths. Copies one after the other add their *times*.")
def bandwidths_added(size: float, host: float, link: float, pinned: bool) -> Times:
    return (0.0, size / link) if pinned else (size / host, size / (host + link))


@copy_seconds.misconception("You divide the bandwidth by the bytes. Seconds are bytes divided by bytes per second.")
def upside_down(size: float, host: float, link: float, pinned: bool) -> Times:
    first, second = (0.0 if pinned else host / (size or 1.0)), link / (size or 1.0)
    return first, first + second


@copy_seconds.misconception("You swap the bandwidths: the first copy is inside main memory, the second over the bus.")
def bandwidths_swapped(size: float, host: float, link: float, pinned: bool) -> Times:
    return _reference(size, link, host, pinned)


@copy_seconds.misconception("You return the two times in the wrong order.")
def order_swapped(size: float, host: float, link: float, pinned: bool) -> Times:
    first, second = _reference(size, host, link, pinned)
    return second, first


@copy_seconds.variant
def in_two_branches(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    if pinned:
        return 0.0, size / link
    staged = size / host
    return staged, staged + size / link


@copy_seconds.variant
def with_a_factor(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    first = (not pinned) * size / host
    return first, first + size / link


@copy_seconds.variant
def with_common_denominator(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    return (0.0, size / link) if pinned else (size / host, size * (host + link) / (host * link))
