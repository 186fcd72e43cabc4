"""The exercise on the time of a copy from pinned and from pageable memory."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def with_common_denominator(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    return (0.0, size / link) if pinned else (size / host, size * (host + link) / (host * link))


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("nothing to copy", 0.0, 10e9, 25e9, False),
        *(case("a slow bus", 2e9, 20e9, 1e9, pinned) for pinned in (False, True)),
        *(case("a slow main memory", 3e9, 2e9, 50e9, pinned) for pinned in (False, True)),
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
    reference=with_common_denominator,
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


@copy_seconds.variant
def one_copy_or_two(size: float, host: float, link: float, pinned: bool) -> tuple[float, float]:
    staged = 0.0 if pinned else size / host
    sent = size / link
    return staged, staged + sent


copy_seconds.slips(
    one_copy_or_two,
    {
        "staged + sent → size / host + sent": "You count the copy inside main memory for pinned memory, too. Pinned "
        "memory needs only one copy.",
        "staged + sent → sent": "From pageable memory the batch is copied twice. Your second number leaves out the "
        "first of these copies.",
        "return staged, → return 0.0 if pinned else staged + sent,": "You let the program wait for both copies. It "
        "waits for the first only: the copy over the bus runs without it.",
        "return staged, → return staged or sent,": "From pinned memory, the program does not wait at all.",
        "return staged, → return 0.0,": "`non_blocking=True` alone is not enough: from pageable memory the program "
        "waits.",
        "0.0 if pinned else size / host → size / host if pinned else 0.0": "You inverted `pinned`.",
        "staged + sent → max(staged, sent)": "You take the longer of the two copies. They run one after the other: add "
        "their times.",
        "size / link → 0.0 if pinned else size / link": "A batch in pinned memory still has to cross the bus: it is on "
        "the device after size / link.",
        "return staged, → return 0.0 if pinned else sent,": "The program waits for the copy inside main memory, at "
        "`host` bytes per second. You let it wait for the bus.",
        "size / host → size / link ;; size / link → size / host": "You swap the bandwidths: the first copy is inside "
        "main memory, the second over the bus.",
        "staged, staged + sent → staged + sent, staged": "You return the two times in the wrong order.",
    },
)


copy_seconds.variant(with_common_denominator)
