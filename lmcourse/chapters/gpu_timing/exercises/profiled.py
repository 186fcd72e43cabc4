"""The exercise on the time of each profiled call without the calls inside it."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any

from lmcourse.chapters.gpu_timing.events import Event
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Events = list[Event]
Shares = dict[str, float]


def _shares(events: Events) -> Shares:
    """Assign the time between two neighbouring begins or ends to the shortest call that is running then."""
    if not events:
        return {}
    own = dict.fromkeys(["idle", *(name for name, _, _ in events)], 0.0)
    borders = sorted({border for _, begin, end in events for border in (begin, end)})
    for before, after in pairwise(borders):
        around = [event for event in events if event[1] <= before and event[2] >= after]
        innermost = min(around, key=lambda event: event[2] - event[1])[0] if around else "idle"
        own[innermost] += after - before
    return {name: time / (borders[-1] - borders[0]) for name, time in own.items()}


def _recorded(random: Random, names: str, depth: int, calls: int, *, shuffled: bool = False) -> Events:
    """Return random calls, one after the other, with gaps of 0 to 4 µs, and calls nested in them to this depth."""
    events: Events = []

    def fill(begin: int, end: int, depth: int) -> None:
        at = begin
        while depth and end - at > 6:
            start = at + random.randint(0, 4)
            stop = min(end, start + random.randint(3, max(4, (end - begin) // 2)))
            if (start, stop) == (begin, end) or stop <= start:
                break
            events.append([random.choice(names), float(start), float(stop)])
            fill(start, stop, depth - 1)
            at = stop

    at = random.randint(5, 50)
    for _ in range(calls):
        end = at + random.randint(20, 40)
        events.append([random.choice(names), float(at), float(end)])
        fill(at, end, depth - 1)
        at = end + random.choice([0, random.randint(1, 9)])
    if shuffled:
        random.shuffle(events)
    return events


def _cases(random: Random) -> list[Case]:
    borders = [["a", 4.0, 10.0], ["b", 4.0, 7.0], ["c", 7.0, 10.0], ["b", 10.0, 12.0]]
    recursion = [["a", 1.0, 17.0], ["a", 2.0, 9.0], ["a", 3.0, 5.0], ["b", 10.0, 11.0], ["a", 20.0, 21.0]]
    return [
        case("equal borders", borders),
        case("equal borders", list(reversed(borders))),
        case("a name inside itself", recursion),
        case("a name inside itself", _recorded(random, "ab", 3, 2)),
        edge(case("one call", [["a", 100.0, 101.0]])),
        case("a long gap", [["a", 1.0, 2.0], ["b", 90.0, 91.0], ["a", 92.0, 96.0]]),
        *(case("calls side by side", _recorded(random, "abcd", 1, 6)) for _ in range(2)),
        *(case("deep calls", _recorded(random, "abcdef", 4, 2)) for _ in range(2)),
        case("not in order", _recorded(random, "abcd", 3, 3, shuffled=True)),
    ]


time_shares = Exercise(
    "time_shares",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_shares,
    cases=[
        case("a product inside a layer", [["linear", 10.0, 20.0], ["addmm", 12.0, 19.0]]),
        case("a name twice, and a gap", [["mm", 5.0, 8.0], ["add", 8.0, 9.0], ["mm", 13.0, 15.0]]),
        case(
            "three deep",
            [
                ["step", 10.0, 50.0],
                ["linear", 12.0, 30.0],
                ["mm", 14.0, 28.0],
                ["add", 32.0, 36.0],
                ["mul", 52.0, 60.0],
            ],
        ),
        case("a name inside itself", [["to", 3.0, 11.0], ["to", 4.0, 8.0], ["copy_", 5.0, 7.0], ["to", 12.0, 13.0]]),
        case("not in order", [["mm", 2.0, 6.0], ["add", 8.0, 10.0], ["step", 1.0, 11.0]]),
        case(
            "three deep, not in order, and two end together",
            [["mm", 3.0, 5.0], ["linear", 2.0, 8.0], ["step", 1.0, 11.0], ["add", 9.0, 11.0], ["mul", 5.0, 6.0]],
        ),
        case("three side by side", [["mm", 3.0, 5.0], ["add", 5.0, 9.0], ["exp", 9.0, 10.0]]),
        case("two begin together", [["mul", 3.0, 5.0], ["norm", 3.0, 8.0], ["add", 8.0, 11.0], ["exp", 8.0, 9.0]]),
        edge(case("one call", [["mm", 7.0, 9.0]])),
        case("nothing was recorded", []),
    ],
    hidden_cases=_cases,
    tolerance=Tolerance(1e-6, 1e-6),  # float32 is enough, and a time of 1e-17 counts as 0
    hints=[
        "Draw the calls as bars over time, the inner ones above the outer. At each moment only the topmost counts.",
        "So a call's own time is its length minus the lengths of the calls directly inside it. Deeper calls are "
        "already part of those.",
        "Sort by begin, the longer first where two begin together. Keep a list of the open calls, and remove those "
        "that have ended. The last one left is the parent: subtract the new call's length from its time.",
        'Let "idle" be the parent of the outermost calls, with the whole span as its length.',
    ],
)


@time_shares.variant
def search_for_the_parent(events: list[list[Any]]) -> dict[str, float]:
    if len(events) == 0:
        return {}
    total = max(event[2] for event in events) - min(event[1] for event in events)
    shares = {"idle": 1.0}
    for name, begin, end in events:
        shares[name] = shares.get(name, 0.0) + (end - begin) / total
        parent, length = "idle", float("inf")
        for other, first, last in events:
            if first <= begin and end <= last and (first, last) != (begin, end) and last - first < length:
                parent, length = other, last - first
        shares[parent] = shares.get(parent, 0.0) - (end - begin) / total
    return shares


@time_shares.variant
def walk_over_the_borders(events: list[list[Any]]) -> dict[str, float]:
    borders = [(begin, 1, begin - end, name) for name, begin, end in events]
    borders += [(end, 0, begin - end, name) for name, begin, end in events]
    borders.sort(key=lambda border: (border[0], border[1], border[2] if border[1] else -border[2]))
    own, stack = {name: 0.0 for name, _, _ in events}, ["idle"]
    own |= {"idle": 0.0} if events else {}
    for number, (moment, opens, _, name) in enumerate(borders):
        if number:
            own[stack[-1]] += moment - borders[number - 1][0]
        if opens:
            stack.append(name)
        else:
            stack.pop()
    return {name: time / (borders[-1][0] - borders[0][0]) for name, time in own.items()}


@time_shares.variant
def recursion_over_the_tree(events: list[list[Any]]) -> dict[str, float]:
    left = sorted(events, key=lambda event: (event[1], -event[2]), reverse=True)
    own: dict[str, float] = {}

    def call() -> float:
        name, begin, end = left.pop()
        inside = 0.0
        while left and left[-1][1] < end:
            inside += call()
        own[name] = own.get(name, 0.0) + end - begin - inside
        return float(end - begin)

    if not left:
        return {}
    first, last = left[-1][1], max(end for _, _, end in events)
    busy = 0.0
    while left:
        busy += call()
    own["idle"] = last - first - busy
    return {name: time / (last - first) for name, time in own.items()}


@time_shares.variant
def stack_of_open_calls(events: list[list[Any]]) -> dict[str, float]:
    if not events:
        return {}
    calls = sorted(events, key=lambda event: (event[1], -event[2]))
    first, last = min(begin for _, begin, _ in calls), max(end for _, _, end in calls)
    own = {name: 0.0 for name, _, _ in calls} | {"idle": last - first}
    stack = [("idle", math.inf)]
    for name, begin, end in calls:
        while stack[-1][1] <= begin:
            stack.pop()
        own[stack[-1][0]] -= end - begin
        own[name] += end - begin
        stack.append((name, end))
    return {name: time / (last - first) for name, time in own.items()}


time_shares.slips(
    stack_of_open_calls,
    {
        'own[stack[-1][0]] -= → if len(stack) == 1:\n            own["idle"] -=': "Your shares add up to more than 1: "
        "you count nested calls a second time in the call around them. Subtract the calls directly inside.",
        'own[stack[-1][0]] -= → own["idle"] -=': "You return total times, and the rest of the span as idle. Nested "
        "calls make that too small: first subtract from each call the calls directly inside it.",
        "own[stack[-1][0]] -= → for around, _ in stack[1:] or stack:\n            own[around] -=": "You subtract "
        "every nested call, at any depth. A grandchild is already part of the child's time: subtract only direct "
        "children.",
        'own.items() → own.items() if name != "idle"': 'You leave out "idle": the time between the first begin and '
        "the last end in which no call is open. It is there even if it is 0.",
        '(last - first) for → (last - first - own["idle"] * (name != "idle")) for': "You divide by the time in which "
        "something runs. Divide by the whole span, from the first begin to the last end: on a GPU the gaps are what "
        "you are looking for.",
        "/ (last - first) → / (last - first) / max(1, [call[0] for call in calls].count(name))": "You take the mean "
        "over the calls of a name. Add up the calls: how often it is called counts, too.",
        "min(begin for _, begin, _ in calls) → 0.0": "Your span begins at 0. It begins with the first call.",
        "own[stack[-1][0]] -= → if stack[-1][0] != name:\n            own[stack[-1][0]] -=": "You count a call inside "
        "a call of the same name twice. Subtract its time from the outer call, even if the names are equal.",
        "time / (last - first) → time": "You return µs. Divide by the span, from the first begin to the last end.",
        "time / (last - first) → 100 * time / (last - first)": "You return percentages. Return fractions: 0.5 for a "
        "half.",
        "for name, begin, end in calls: → for (name, begin, end), (_, after, _) in zip(calls, "
        '[*calls[1:], ("", math.inf, 0.0)]):\n        if after < end:\n            continue ;; own[stack[-1][0]] -= → '
        'own["idle"] -=': "You count only the calls that hold no other call. A call that holds others also takes time "
        "itself: before, between and after them.",
        'own[stack[-1][0]] -= end - begin\n        own → own ;; own.items() → own.items() if name != "idle"': "You "
        "return total times, and no idle. Subtract from each call the calls directly inside it, and add the time in "
        "which no call is open.",
        'own[stack[-1][0]] -= end - begin\n        own → own ;; {"idle": last - first} → {"idle": 0.0} ;; (last - '
        "first) for → sum(own.values()) for": "You divide total times by their sum. The shares then add up to 1, but "
        "still count nested calls twice.",
        "sorted(events, key=lambda event: (event[1], -event[2])) → events": "You take the events in the order of the "
        "list. They come in any order, the outer call sometimes last: sort them first, by begin.",
        "(event[1], -event[2]) → event[1]": "You sort by begin only. Of two calls that begin together, the longer one "
        "contains the shorter one, so it comes first.",
        "<= begin → < begin": "You treat a call that begins exactly when another ends as nested. It comes after that "
        "call: compare with ≤.",
        "max(end for _, _, end in calls) → calls[-1][2]": "Your span ends with the call that begins last. A call "
        "around it ends later: take the last end of all.",
        'return {name → own["idle"] = sum(max(0.0, after[1] - before[2]) for before, after in pairwise(calls))'
        "\n    return {name": "You count the gap after the previous call as idle. A longer call around it may still "
        "be open: idle is the time in which *no* call is open.",
        '(last - first) for → (last - first - own["idle"]) for': "Your whole is the time in which a call is open. The "
        "gaps belong to it, too: it lasts from the first begin to the last end.",
        'return {name → own["idle"] = last - first\n    for call, after in zip(calls, [*calls[1:], ("", math.inf)]):'
        '\n        own["idle"] -= call[2] - call[1] if after[1] >= call[2] else 0\n    return {name': "You count all "
        "time outside of the innermost calls as idle. A call that holds others is open, too.",
        "own[name] += → own[name] =": "You keep the last call of a name only. Add up all calls of the name.",
        "own.items() → own.items() if time > 0": 'You leave out a share of 0. "idle" is always there, and every name '
        "that was called.",
        "own[stack[-1][0]] -= end - begin\n        own → own": "You return total times, and the whole span as idle. "
        "Subtract each call from the call around it, or from idle if there is none.",
        "own[stack[-1][0]] -= end - begin → for around, _ in stack:\n            own[around] -= end - "
        "begin": "You subtract each call from all calls around it, and from idle. It is part of the innermost of them "
        "only.",
        "while stack → if stack": "You close one call at most before the next begins. Several may have ended: `while`, "
        "not `if`.",
        "/ (last - first) for → / sum(end - begin for _, begin, end in calls) for": "You divide by the sum of all "
        "lengths. Nested calls count several times in it: divide by the span, from the first begin to the last end.",
        "calls = sorted(events, key=lambda event: (event[1], -event[2])) → calls = sorted(events)": "You sort by name. "
        "Sort by begin, the longer call first where two begin together.",
        "(event[1], -event[2]) → (event[1], event[2])": "Of two calls that begin together you take the shorter one "
        "first. The longer one contains it, so it comes first.",
        'return {name → own["idle"] = last - first - sum(end - begin for _, begin, end in calls)\n    return '
        "{name": "You subtract nested calls from idle, too. Idle is the span without the *outermost* calls.",
        "own[stack[-1][0]] -= → around = [call for call in calls if call[1] < begin and end < call[2]]\n        "
        'own[min(around, key=lambda call: call[2] - call[1])[0] if around else "idle"] -=': "A call that begins or "
        "ends together with another one is not inside it for you. It is, if the other one lasts longer.",
        "own[stack[-1][0]] -= → for around, _ in stack[1:] or stack:\n            own[around] -= ;; return {name → "
        'own["idle"] = last - first - sum(time for name, time in own.items() if name != "idle")\n    return '
        "{name": "You subtract every nested call, at any depth, and take what is left of the span for idle. A "
        "grandchild is already part of the child's time: subtract only direct children.",
        "max(end for _, _, end in calls) → min(begin for _, begin, _ in calls) + sum(end - begin for _, begin, end in "
        "calls)": "Your span is the sum of all lengths. Nested calls count several times in it: it lasts from the "
        "first begin to the last end.",
        'own[stack[-1][0]] -= → own["idle"] -= ;; return {name → own["idle"] = max(0.0, own["idle"])\n    return '
        "{name": "You return total times, and the rest of the span as idle, at least 0. Nested calls make that too "
        "small: first subtract from each call the calls directly inside it.",
    },
)
