"""The exercise on static and continuous batches."""

from __future__ import annotations

import heapq
from collections import deque
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _step_by_step(lengths: list[int], slots: int, continuous: bool) -> float:
    """Count the steps of every slot, one by one."""
    if slots < 1:
        raise ValueError("a batch has at least one slot")
    waiting, left = deque(lengths), [0] * slots
    written = steps = 0
    while waiting or any(left):
        if continuous or not any(left):
            left = [n or (waiting.popleft() if waiting else 0) for n in left]
        written += sum(n > 0 for n in left)
        left = [max(n - 1, 0) for n in left]
        steps += 1
    return written / (steps * slots) if steps else 1.0


def _hidden(random: Random) -> list[Case]:
    cases = [
        *(case("static", [3, 9, 2, 2, 8, 1, 1], slots, False) for slots in (1, 2, 3, 5)),
        *(case("continuous", [3, 9, 2, 2, 8, 1, 1], slots, True) for slots in (1, 2, 3, 5)),
        case("continuous", [2, 2, 2, 2, 9], 2, True),
        case("continuous", [9, 2, 2, 2, 2], 3, True),
        case("continuous", [5, 4, 3, 3, 3], 2, True),
        *(case("more slots than requests", [4, 2], 7, continuous) for continuous in (False, True)),
        *(case("more slots than requests", [1], 3, continuous) for continuous in (False, True)),
        *(case("all alike", [5] * 7, 3, continuous) for continuous in (False, True)),
        *(case("as many slots as requests", [6, 1, 3], 3, continuous) for continuous in (False, True)),
        *(case("no requests", [], slots, continuous) for slots, continuous in ((1, True), (4, False))),
        case("a long one among many", [1] * 30 + [40] + [1] * 5, 4, True),
        case("a long one among many", [1] * 30 + [40] + [1] * 5, 4, False),
        *(
            case("bad input", [2, 3], slots, continuous)
            for slots, continuous in ((0, True), (0, False), (-2, True), (-2, False))
        ),
        *(case("bad input", [], 0, continuous) for continuous in (False, True)),
    ]
    for continuous in (False, True):
        factor, more = random.randint(20, 60), random.randint(1, 9)
        cases.append(case("other requests", [factor * n + more for n in (3, 9, 2, 2, 8, 1, 1)], 3, continuous))
    return cases


FIVE = [4, 1, 1, 1, 1]

batch_use = Exercise(
    "batch_use",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_step_by_step,
    cases=[
        case("two slots, static", FIVE, 2, False),
        case("two slots, continuous", FIVE, 2, True),
        case("the long one comes last, continuous", [1, 1, 2, 6], 2, True),
        case("short, long, short, long", [1, 5, 1, 5], 2, False),
        case("one request, four slots", [5], 4, False),
        case("one request, four slots, continuous", [5], 4, True),
        case("the next goes where a slot gets free first", [5, 2, 2, 6], 2, True),
        case("nothing to do", [], 3, True),
        case("no slot", [1, 2], 0, False),
    ],
    hidden_cases=_hidden,
    hints=[
        "sum(lengths) slot-steps write a token, of slots · steps in all. So you only need the number of steps.",
        "Static: divide the requests into groups of `slots`, in order; a group takes as many steps as its longest "
        "request. `range(0, len(lengths), slots)` gives the starts.",
        "Continuous: keep for every slot the step at which it becomes free, all 0 at first. Each request goes to "
        "the slot "
        "that is free first, and adds its length to it. In the end the largest number is the number of steps.",
    ],
)


@batch_use.variant
def with_a_heap(lengths: list[int], slots: int, continuous: bool) -> float:
    if slots <= 0:
        raise ValueError("slots")
    if not lengths:
        return 1.0
    if continuous:
        free = [0] * slots
        for n in lengths:
            heapq.heapreplace(free, free[0] + n)
        steps = max(free)
    else:
        steps = sum(max(lengths[i : i + slots]) for i in range(0, len(lengths), slots))
    return sum(lengths) / (steps * slots)


@batch_use.variant
def recursive(lengths: list[int], slots: int, continuous: bool) -> float:
    if slots < 1:
        raise ValueError(slots)

    def static_steps(rest: list[int]) -> int:
        return max(rest[:slots]) + static_steps(rest[slots:]) if rest else 0

    def continuous_steps(rest: list[int], ends: list[int]) -> int:
        if not rest:
            return max(ends)
        first, *others = sorted(ends)
        return continuous_steps(rest[1:], [first + rest[0], *others])

    steps = continuous_steps(lengths, [0] * slots) if continuous else static_steps(lengths)
    return 1.0 if steps == 0 else sum(lengths) / steps / slots


@batch_use.variant
def by_the_clock(lengths: list[int], slots: int, continuous: bool) -> float:
    if slots < 1:
        raise ValueError("a batch has at least one slot")
    queue: list[int] = list(lengths)
    running: list[int] = []
    steps = useful = 0
    while queue or running:
        if continuous or not running:
            while queue and len(running) < slots:
                running.append(queue.pop(0))
        useful += len(running)
        steps += 1
        running = [n - 1 for n in running if n > 1]
    return useful / (slots * steps) if steps else 1.0


def _checked(lengths: list[int], slots: int) -> list[list[int]]:
    """The groups of a static batch, after a check of the input."""
    if slots < 1:
        raise ValueError("a batch has at least one slot")
    return [lengths[start : start + slots] for start in range(0, len(lengths), slots)]


def _static(lengths: list[int], slots: int) -> float:
    return _step_by_step(lengths, slots, False)


def _continuous(lengths: list[int], slots: int) -> float:
    return _step_by_step(lengths, slots, True)


@batch_use.misconception("You take the mean length of a group. A static batch runs until its longest text is done.")
def mean_length(lengths: list[int], slots: int, continuous: bool) -> float:
    groups = _checked(lengths, slots)
    if continuous or not lengths:
        return _step_by_step(lengths, slots, continuous)
    return sum(lengths) / (slots * sum(sum(group) / len(group) for group in groups))


@batch_use.misconception("You leave out slots that get no request. They count as well.")
def empty_slots_free(lengths: list[int], slots: int, continuous: bool) -> float:
    groups = _checked(lengths, slots)
    if continuous or not lengths:
        return _step_by_step(lengths, min(slots, max(len(lengths), 1)), continuous)
    return sum(lengths) / sum(len(group) * max(group) for group in groups)


@batch_use.misconception(
    "In a static batch you count only the slots that have a request. The slots of a last, smaller group count as well."
)
def empty_static_slots_free(lengths: list[int], slots: int, continuous: bool) -> float:
    groups = _checked(lengths, slots)
    if continuous or not lengths:
        return _step_by_step(lengths, slots, continuous)
    return sum(lengths) / sum(len(group) * max(group) for group in groups)


@batch_use.misconception("You sort the requests. They are served in the order in which they come.")
def longest_first(lengths: list[int], slots: int, continuous: bool) -> float:
    return _step_by_step(sorted(lengths, reverse=True), slots, continuous)


@batch_use.misconception("You sort the requests, the shortest first. They are served in the order in which they come.")
def shortest_first(lengths: list[int], slots: int, continuous: bool) -> float:
    return _step_by_step(sorted(lengths), slots, continuous)


@batch_use.misconception("You ignore `continuous`: your batches are always static.")
def always_static(lengths: list[int], slots: int, continuous: bool) -> float:
    return _static(lengths, slots)


@batch_use.misconception("You ignore `continuous`: your batches are always continuous.")
def always_continuous(lengths: list[int], slots: int, continuous: bool) -> float:
    return _continuous(lengths, slots)


@batch_use.misconception(
    "Your number of steps is the tokens divided by the slots, or the longest text if that is more. A long text that "
    "starts late runs on alone, and needs more steps."
)
def no_tail(lengths: list[int], slots: int, continuous: bool) -> float:
    if not continuous or not lengths:
        return _step_by_step(lengths, slots, continuous)
    _checked(lengths, slots)
    steps = max(-(-sum(lengths) // slots), max(lengths))
    return sum(lengths) / (slots * steps)


@batch_use.misconception(
    "You give request i to slot i modulo `slots`. The next request goes to the slot that becomes free first."
)
def in_turns(lengths: list[int], slots: int, continuous: bool) -> float:
    _checked(lengths, slots)
    if not continuous or not lengths:
        return _static(lengths, slots)
    return sum(lengths) / (slots * max(sum(lengths[slot::slots]) for slot in range(slots)))


@batch_use.misconception(
    "All your groups run as long as the longest request overall. A static batch ends with the longest text of its own "
    "group."
)
def longest_of_all(lengths: list[int], slots: int, continuous: bool) -> float:
    groups = _checked(lengths, slots)
    if continuous or not lengths:
        return _step_by_step(lengths, slots, continuous)
    return sum(lengths) / (slots * max(lengths) * len(groups))


@batch_use.misconception(
    "You sort the requests before you group them. They are served in the order in which they come."
)
def sorted_groups(lengths: list[int], slots: int, continuous: bool) -> float:
    return _step_by_step(lengths if continuous else sorted(lengths), slots, continuous)


@batch_use.misconception("You divide the tokens by the slots, rounded up. The last text may run alone for longer.")
def perfect_packing(lengths: list[int], slots: int, continuous: bool) -> float:
    _checked(lengths, slots)
    if not continuous or not lengths:
        return _step_by_step(lengths, slots, continuous)
    return sum(lengths) / (slots * -(-sum(lengths) // slots))


@batch_use.misconception("Your continuous batch is always fully used. At the end some slots are empty.")
def always_full(lengths: list[int], slots: int, continuous: bool) -> float:
    _checked(lengths, slots)
    return 1.0 if continuous else _static(lengths, slots)


@batch_use.misconception(
    "In your schedule a free slot waits for one step. It should take the next request at the very next step."
)
def a_step_between(lengths: list[int], slots: int, continuous: bool) -> float:
    _checked(lengths, slots)
    if not continuous or not lengths:
        return _static(lengths, slots)
    free = [0] * slots
    for length in lengths:
        heapq.heapreplace(free, free[0] + length + (free[0] > 0))
    return sum(lengths) / (slots * max(free))


@batch_use.misconception("You average the fractions of the groups. A long group has more steps than a short one.")
def averaged(lengths: list[int], slots: int, continuous: bool) -> float:
    groups = _checked(lengths, slots)
    if continuous or not lengths:
        return _step_by_step(lengths, slots, continuous)
    return sum(sum(group) / (slots * max(group)) for group in groups) / len(groups)


@batch_use.misconception("You return the number of steps. Return the fraction of slot-steps that write a token.")
def steps_returned(lengths: list[int], slots: int, continuous: bool) -> float:
    use = _step_by_step(lengths, slots, continuous)
    return sum(lengths) / (slots * use) if lengths else use


@batch_use.misconception("You count requests. Count tokens.")
def requests_counted(lengths: list[int], slots: int, continuous: bool) -> float:
    use = _step_by_step(lengths, slots, continuous)
    return use * len(lengths) / sum(lengths) if lengths else use


@batch_use.misconception("You return the fraction that is idle. Return the fraction that is used.")
def idle(lengths: list[int], slots: int, continuous: bool) -> float:
    return 1 - _step_by_step(lengths, slots, continuous) if lengths else _step_by_step(lengths, slots, continuous)


@batch_use.misconception("Without requests you return 0. Return 1.0.")
def nothing_is_zero(lengths: list[int], slots: int, continuous: bool) -> float:
    return _step_by_step(lengths, slots, continuous) if lengths or slots < 1 else 0.0
