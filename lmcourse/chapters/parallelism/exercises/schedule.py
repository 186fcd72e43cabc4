"""The exercise on the order in which a stage of a pipeline works."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _by_counting(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    """Run a forward pass if one is left and fewer micro-batches are alive than allowed; else run a backward pass."""
    if schedule not in ("gpipe", "1f1b") or not 0 <= rank < stages or micro < 1:
        raise ValueError((rank, stages, micro, schedule))
    allowed = micro if schedule == "gpipe" else stages - rank
    order: list[str] = []
    forward = backward = 0
    while backward < micro:
        if forward < micro and forward - backward < allowed:
            order.append(f"F{forward}")
            forward += 1
        else:
            order.append(f"B{backward}")
            backward += 1
    return order


def _hidden(random: Random) -> list[Case]:
    return [
        *(case("other stages", rank, 3, 5, "1f1b") for rank in range(3)),
        *(case("other stages", rank, 5, 7, "1f1b") for rank in (0, 2, 3, 4)),
        *(case("fewer micro-batches than stages", rank, 5, 3, "1f1b") for rank in (0, 1, 2, 3, 4)),
        *(case("as many micro-batches as stages", rank, 3, 3, "1f1b") for rank in (0, 1, 2)),
        *(case("one stage", 0, 1, micro, schedule) for micro in (1, 3) for schedule in ("gpipe", "1f1b")),
        *(case("one micro-batch", rank, 4, 1, "1f1b") for rank in (0, 3)),
        *(case("other GPipe stages", rank, 3, micro, "gpipe") for rank, micro in ((0, 1), (1, 5), (2, 12))),
        *(case("bad input", *bad) for bad in ((0, 2, 2, "GPipe"), (2, 2, 2, "1f1b"), (-1, 2, 2, "gpipe"))),
        *(case("bad input", *bad) for bad in ((0, 2, 0, "1f1b"), (0, 2, -1, "gpipe"), (0, 0, 2, "gpipe"))),
        case("many micro-batches", random.randint(0, 3), 6, random.randint(7, 20), "1f1b"),
        case("many micro-batches", random.randint(0, 5), 6, random.randint(7, 20), "gpipe"),
    ]


stage_order = Exercise(
    "stage_order",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_by_counting,
    cases=[
        case("GPipe", 0, 3, 4, "gpipe"),
        case("1F1B, the last of three stages", 2, 3, 4, "1f1b"),
        case("1F1B, the stage before", 1, 3, 4, "1f1b"),
        case("1F1B, the first stage", 0, 3, 4, "1f1b"),
        case("1F1B, the second of four", 1, 4, 6, "1f1b"),
        case("1F1B with many micro-batches", 2, 4, 8, "1f1b"),
        case("1F1B with fewer micro-batches than stages", 0, 4, 2, "1f1b"),
        case("another word", 0, 3, 4, "zigzag"),
        case("a rank that does not exist", 3, 3, 4, "1f1b"),
    ],
    hidden_cases=_hidden,
    hints=[
        "The last stage can run the backward pass of a micro-batch right after its forward pass. How many more must "
        "the stage before it start before the first gradient comes back?",
        "Stage r of p starts p − r micro-batches before its first backward: one for each stage from here to the end.",
        "After that, alternate backward and forward passes until there is nothing left to start. Then run the "
        "remaining backward passes.",
    ],
)


stage_order.equivalent_mutant(
    "alive = micro if schedule == 'gpipe' else min(stages - rank, micro) → "
    "alive = micro if schedule == 'gpipe' else min(micro, stages - rank)",
    "The smaller of two numbers is the same in either order.",
)


@stage_order.variant
def in_three_parts(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule not in ("gpipe", "1f1b") or rank not in range(stages) or micro < 1:
        raise ValueError("unknown stage or schedule")
    started = micro if schedule == "gpipe" else min(micro, stages - rank)
    order = [f"F{i}" for i in range(started)]
    for i in range(started, micro):
        order += [f"B{i - started}", f"F{i}"]
    return order + [f"B{i}" for i in range(micro - started, micro)]


@stage_order.variant
def one_forward_one_backward(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule == "gpipe":
        warm = micro
    elif schedule == "1f1b":
        warm = min(stages - rank - 1, micro)
    else:
        raise ValueError(schedule)
    if rank < 0 or rank >= stages or micro <= 0:
        raise ValueError(rank, stages, micro)
    order = [f"F{index}" for index in range(warm)]
    for index in range(micro - warm):
        order.append(f"F{warm + index}")
        order.append(f"B{index}")
    for index in range(micro - warm, micro):
        order.append(f"B{index}")
    return order


@stage_order.variant
def by_sorting(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    allowed = {"gpipe": micro, "1f1b": stages - rank}.get(schedule)
    if allowed is None or micro < 1 or not -1 < rank < stages:
        raise ValueError(f"stage {rank} of {stages}, {micro} micro-batches, {schedule}")
    forwards = [(2 * i, f"F{i}") for i in range(micro)]
    backwards = [(2 * (i + min(allowed, micro)) - 1, f"B{i}") for i in range(micro)]
    return [name for _, name in sorted(forwards + backwards)]


@stage_order.variant
def recursively(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule not in {"gpipe", "1f1b"} or not (0 <= rank <= stages - 1) or micro <= 0:
        raise ValueError("bad input")

    def rest(f: int, b: int) -> list[str]:
        if b == micro:
            return []
        full = f - b == stages - rank and schedule == "1f1b"
        return [f"B{b}", *rest(f, b + 1)] if f == micro or full else [f"F{f}", *rest(f + 1, b)]

    return rest(0, 0)


def _with(alive: int, rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    """Return the right order for GPipe, and for 1F1B an order that keeps `alive` micro-batches alive."""
    if schedule != "1f1b":
        return _by_counting(rank, stages, micro, schedule)
    return _by_counting(0, max(alive, 1), micro, schedule)


@stage_order.misconception("Your 1F1B is GPipe: all forwards come before the first backward.")
def always_gpipe(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _by_counting(rank, stages, micro, "gpipe" if schedule == "1f1b" else schedule)


@stage_order.misconception(
    "Every stage starts as many micro-batches as the first one does. The later a stage, the sooner gradients come back."
)
def same_on_all(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(stages, rank, stages, micro, schedule)


@stage_order.misconception(
    "Your first stage starts the fewest micro-batches. The last stage can start its backward pass at once."
)
def from_the_wrong_end(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(rank + 1, rank, stages, micro, schedule)


@stage_order.misconception(
    "Your stages start one micro-batch too few before their first backward, so later stages wait."
)
def one_too_few(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(stages - rank - 1, rank, stages, micro, schedule)


@stage_order.misconception("One micro-batch more than needed is alive in each stage.")
def one_too_many(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(stages - rank + 1, rank, stages, micro, schedule)


@stage_order.misconception("You alternate forward and backward from the beginning. Only the last stage can do that.")
def in_turns(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(1, rank, stages, micro, schedule)


@stage_order.misconception(
    "Your stages start enough micro-batches, 2(p − r) − 1, to never wait for a gradient. 1F1B starts p − r."
)
def there_and_back(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(2 * (stages - rank) - 1, rank, stages, micro, schedule)


@stage_order.misconception(
    "You count a backward pass as two forwards and start 3(p − r) − 2 micro-batches. 1F1B starts p − r, however long a "
    "pass takes."
)
def there_and_back_in_time(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _with(3 * (stages - rank) - 2, rank, stages, micro, schedule)


@stage_order.misconception(
    "With fewer micro-batches than stages you start some that do not exist: there are only `micro`."
)
def more_than_there_are(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    order = _by_counting(rank, stages, micro, schedule)
    extra = max(0, stages - rank - micro) if schedule == "1f1b" else 0
    return order[:micro] + [f"F{micro + i}" for i in range(extra)] + order[micro:] if extra else order


@stage_order.misconception("You leave out the backward passes at the end: each micro-batch needs one.")
def no_end(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    order = _by_counting(rank, stages, micro, schedule)
    last = max(index for index, step in enumerate(order) if step[0] == "F")
    return order[: last + 2]


@stage_order.misconception("Your gradients come back last in, first out. Here they come in the order of the forwards.")
def last_in_first_out(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    alive: list[str] = []
    order = []
    for step in _by_counting(rank, stages, micro, schedule):
        if step[0] == "F":
            alive.append(step[1:])
        order.append(step if step[0] == "F" else f"B{alive.pop()}")
    return order


@stage_order.misconception(
    "In GPipe your backward passes run in reverse order. Both kinds go through the micro-batches in order."
)
def gpipe_in_reverse(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    order = _by_counting(rank, stages, micro, schedule)
    return order[:micro] + order[micro:][::-1] if schedule == "gpipe" else order


@stage_order.misconception(
    "In 1F1B each backward pass takes the micro-batch of the forward pass just before it. The oldest one is due."
)
def newest_first(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule != "1f1b":
        return _by_counting(rank, stages, micro, schedule)
    warm = min(stages - rank - 1, micro)
    _by_counting(rank, stages, micro, schedule)
    steady = [f"{kind}{i}" for i in range(warm, micro) for kind in "FB"]
    return [*(f"F{i}" for i in range(warm)), *steady, *(f"B{i}" for i in range(warm))]


@stage_order.misconception("You accept a rank that does not exist, or fewer than one micro-batch. Raise ValueError.")
def any_numbers(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule not in ("gpipe", "1f1b"):
        raise ValueError(schedule)
    started = micro if schedule == "gpipe" else min(stages - rank, micro)
    order = [f"F{i}" for i in range(started)]
    for i in range(micro):
        order.append(f"B{i}")
        if started + i < micro:
            order.append(f"F{started + i}")
    return order


@stage_order.misconception("You count micro-batches from 1. Count them from 0.")
def from_one(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return [f"{step[0]}{int(step[1:]) + 1}" for step in _by_counting(rank, stages, micro, schedule)]


@stage_order.misconception("You treat an unknown schedule as GPipe: raise a ValueError.")
def any_schedule(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    return _by_counting(rank, stages, micro, "1f1b" if schedule == "1f1b" else "gpipe")
