"""The exercises on shares of time: the time of each call without the calls inside it, and the law of Amdahl."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np

from lmcourse.chapters.gpu_timing.profiler_calls import Event
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Events = list[Event]
Shares = dict[str, float]


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


def _recorded_cases(random: Random) -> list[Case]:
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
    reference=search_for_the_parent,
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
    hidden_cases=_recorded_cases,
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


time_shares.variant(search_for_the_parent)

BY_NAME = "You sort by name. Sort by begin, the longer call first where two begin together."
FROM_IDLE = "You subtract nested calls from idle, too. Idle is the span without the *outermost* calls."

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
        'return {name → own["idle"] = sum(max(0.0, after[1] - before[2]) for before, after in zip(calls, calls[1:]))'
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
        "calls = sorted(events, key=lambda event: (event[1], -event[2])) → calls = sorted(events)": BY_NAME,
        "calls = sorted(events, key=lambda event: (event[1], -event[2])) → calls = sorted(events) ;; min(begin for _, "
        "begin, _ in calls) → calls[0][1]": BY_NAME,
        "(event[1], -event[2]) → (event[1], event[2])": "Of two calls that begin together you take the shorter one "
        "first. The longer one contains it, so it comes first.",
        'return {name → own["idle"] = last - first - sum(end - begin for _, begin, end in calls)\n    return '
        "{name": FROM_IDLE,
        'return {name → own["idle"] = max(0.0, last - first - sum(end - begin for _, begin, end in calls))\n    return '
        "{name": FROM_IDLE,
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


Offers = dict[str, list[Any]]
"""Maps an offer to `[names, factor]`: the operations it makes faster, and how many times as fast."""


def what_is_saved(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    saved = {}
    for offer, (names, factor) in offers.items():
        share = sum(shares.get(name, 0.0) for name in names)
        saved[offer] = share - share / factor
    speedups = {offer: 1 / (1 - part) for offer, part in saved.items()}
    speedups["all"] = 1 / (1 - sum(saved.values()))
    return speedups


def _offers_cases(random: Random) -> list[Case]:
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
    reference=what_is_saved,
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
    hidden_cases=_offers_cases,
    tolerance=Tolerance(1e-6),  # float32 is enough
    hints=[
        "A step takes 1. How much of it is left if half of it runs twice as fast? The speed-up is 1 over that.",
        "An offer with the share s and the factor f leaves 1 − s + s/f. Its share is the sum over its names.",
        'Speed-ups do not multiply. For "all", subtract what each offer saves, and divide 1 by what is left.',
    ],
)


@speedup_bounds.variant
def in_numpy(shares: dict[str, float], offers: dict[str, list[Any]]) -> dict[str, float]:
    parts = np.array([sum(shares.get(name, 0) for name in names) for names, _ in offers.values()], dtype=np.float64)
    factors = np.array([factor for _, factor in offers.values()], dtype=np.float64)
    left = 1 - parts + parts / factors
    return {**dict(zip(offers, 1 / left, strict=True)), "all": float(1 / (1 - np.sum(1 - left)))}


speedup_bounds.variant(what_is_saved)

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
