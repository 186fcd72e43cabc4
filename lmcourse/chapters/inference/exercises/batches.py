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
        case("short, short, long, long", [2, 1, 5, 4], 2, False),
        case("one request, four slots", [5], 4, False),
        case("one request, four slots, continuous", [5], 4, True),
        case("the next goes where a slot gets free first", [4, 2, 2, 3, 9], 2, True),
        case("nothing to do, one slot", [], 1, True),
        case("fewer than one slot", [1, 2], -1, False),
        case("no slot, continuous", [1, 2], 0, True),
    ],
    hidden_cases=_hidden,
    hints=[
        "sum(lengths) slot-steps write a token, of slots · steps in all. So you only need the number of steps.",
        "Static: divide the requests into groups of `slots`, in order; a group takes as many steps as its longest "
        "request. `range(0, len(lengths), slots)` gives the starts.",
        "Continuous: keep for every slot the step at which it becomes free, all 0 at first. Each request goes to the "
        "slot that is free first, and adds its length to it. In the end the largest number is the number of steps.",
    ],
)


batch_use.equivalent_mutant(
    "if slots < 1: → if slots < 0:",
    "With 0 slots and a request, `range` and `min` raise ValueError, too. Without requests the text leaves it open.",
)


@batch_use.variant
def groups_or_a_heap(lengths: list[int], slots: int, continuous: bool) -> float:
    if slots < 1:
        raise ValueError("a batch has at least one slot")
    if not lengths:
        return 1.0
    if continuous:
        free = [0] * slots
        for n in lengths:
            heapq.heapreplace(free, free[0] + n)
        steps = max(free)
    else:
        groups = [lengths[i : i + slots] for i in range(0, len(lengths), slots)]
        steps = sum(max(group) for group in groups)
    return sum(lengths) / (steps * slots)


batch_use.slips(
    groups_or_a_heap,
    {
        "max(group) → sum(group) / len(group)": "You take the mean length of a group. A static batch runs until its "
        "longest text is done.",
        "[0] * slots → [0] * (slots := min(slots, len(lengths))) ;; max(group) → "
        "max(group) * len(group) / slots": "You leave out slots that get no request. They count as well.",
        "max(group) → max(group) * len(group) / slots": "In a static batch you count only the slots that have a "
        "request. The slots of a last, smaller group count as well.",
        "if continuous: → lengths = sorted(lengths, reverse=True)\n    if continuous:": "You sort the requests. They "
        "are served in the order in which they come.",
        "if continuous: → lengths = sorted(lengths)\n    if continuous:": "You sort the requests, the shortest "
        "first. They are served in the order in which they come.",
        "for n in lengths → for n in sorted(lengths, reverse=True)": "You sort the requests. They are served in the "
        "order in which they come.",
        "for n in lengths → for n in sorted(lengths)": "You sort the requests, the shortest first. They are served "
        "in the order in which they come.",
        "if continuous: → if False:": "You ignore `continuous`: your batches are always static.",
        "if continuous: → if True:": "You ignore `continuous`: your batches are always continuous.",
        "max(free) → max(-(-sum(lengths) // slots), max(lengths))": "Your number of steps is the tokens divided by the "
        "slots, or the longest text if that is more. A long text that starts late runs on alone, and needs more steps.",
        "max(free) → max(sum(lengths[slot::slots]) for slot in range(slots))": "You give request i to slot i modulo "
        "`slots`. The next request goes to the slot that becomes free first.",
        "if continuous: → if not continuous:": "You swapped the two: your static batches are continuous, and your "
        "continuous ones static.",
        "(steps * slots) → (steps * min(slots, len(lengths)))": "You leave out slots that get no request. They count "
        "as well.",
        "(steps * slots) → steps": "You divide by the steps alone. A step has `slots` slot-steps.",
        "max(free) → min(free)": "You stop when the first slot is idle for good. Count the steps until the *last* "
        "request is done.",
        "free[0] + n → free[0] + n + 1": "You count a step too many for each request: it takes lengths[i] steps.",
        "heapq.heapreplace(free, free[0] + n) → free[free.index(max(free))] += n": "You give each request to the "
        "slot that is free *last*. It goes to the one that is free first.",
        "max(free) → max(sum(lengths[i : i - (-len(lengths) // slots)]) for i in range(0, len(lengths), "
        "-(-len(lengths) // slots)))": "You give each slot a block of neighbouring requests. The next request goes "
        "to the slot that becomes free first.",
        "range(0, len(lengths), slots) → range(0, len(lengths) - slots + 1, slots)": "A last group with fewer "
        "requests than slots is missing in your static batches.",
        "slots < 1 → slots <= 1": "You reject a single slot. It is allowed.",
        "if slots < 1: → if False:": "You accept fewer than one slot. Raise ValueError.",
        "max(group) → max(lengths)": "All your groups run as long as the longest request overall. A static batch "
        "ends with the longest text of its own group.",
        "lengths[i : → sorted(lengths)[i :": "You sort the requests before you group them. They are served in the "
        "order in which they come.",
        "max(free) → -(-sum(lengths) // slots)": "You divide the tokens by the slots, rounded up. The last text may "
        "run alone for longer.",
        "max(free) → sum(lengths) / slots": "Your continuous batch is always fully used. At the end some slots are "
        "empty.",
        "free[0] + n → free[0] + (free[0] > 0) + n": "In your schedule a free slot waits for one step. It should "
        "take the next request at the very next step.",
        "steps = sum(max(group) for group in groups) → return sum(sum(group) / max(group) / slots for group in "
        "groups) / len(groups)": "You average the fractions of the groups. A long group has more steps than a short "
        "one.",
        "sum(lengths) / (steps * slots) → steps": "You return the number of steps. Return the fraction of slot-steps "
        "that write a token.",
        "return sum(lengths) → return len(lengths)": "You count requests. Count tokens.",
        "return sum(lengths) → return 1 - sum(lengths)": "You return the fraction that is idle. Return the fraction "
        "that is used.",
        "return 1.0 → return 0.0": "Without requests you return 0. Return 1.0.",
    },
)
