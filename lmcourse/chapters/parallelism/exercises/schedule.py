"""The exercise on the order in which a stage of a pipeline works."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def one_forward_one_backward(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule not in ("gpipe", "1f1b") or not 0 <= rank < stages or micro < 1:
        raise ValueError((rank, stages, micro, schedule))
    warm = micro if schedule == "gpipe" else min(micro, stages - rank - 1)
    order = [f"F{i}" for i in range(warm)]
    for i in range(micro - warm):
        order += [f"F{warm + i}", f"B{i}"]
    return order + [f"B{i}" for i in range(micro - warm, micro)]


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
    reference=one_forward_one_backward,
    cases=[
        case("GPipe", 0, 3, 4, "gpipe"),
        edge(case("GPipe, one micro-batch", 1, 3, 1, "gpipe")),
        case("1F1B, the last of three stages", 2, 3, 4, "1f1b"),
        case("1F1B, the stage before", 1, 3, 4, "1f1b"),
        case("1F1B, the first stage", 0, 3, 4, "1f1b"),
        case("1F1B, the second of four", 1, 4, 6, "1f1b"),
        case("1F1B with many micro-batches", 2, 4, 8, "1f1b"),
        case("1F1B with fewer micro-batches than stages", 0, 4, 2, "1f1b"),
        case("another word", 0, 3, 4, "1F1B"),
        case("no micro-batch", 0, 3, 0, "1f1b"),
        case("a rank that does not exist", 3, 3, 4, "1f1b"),
        case("rank −1", -1, 3, 4, "1f1b"),
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
stage_order.variant(one_forward_one_backward)


stage_order.equivalent_mutant(
    "alive = micro if schedule == 'gpipe' else min(stages - rank, micro) → "
    "alive = micro if schedule == 'gpipe' else min(micro, stages - rank)",
    "The smaller of two numbers is the same in either order.",
)


@stage_order.variant
def in_three_parts(rank: int, stages: int, micro: int, schedule: str) -> list[str]:
    if schedule not in ("gpipe", "1f1b") or rank not in range(stages) or micro < 1:
        raise ValueError((rank, stages, micro, schedule))
    started = micro if schedule == "gpipe" else min(micro, stages - rank)
    order = [f"F{i}" for i in range(started)]
    for i in range(started, micro):
        order += [f"B{i - started}", f"F{i}"]
    order += [f"B{i}" for i in range(micro - started, micro)]
    return order


stage_order.slips(
    in_three_parts,
    {
        'micro if schedule == "gpipe" else min(micro, stages - rank) → micro': "Your 1F1B is GPipe: all forwards come "
        "before the first backward.",
        "stages - rank → stages": "Every stage starts as many micro-batches as the first one does. The later a stage, "
        "the sooner gradients come back.",
        "stages - rank → rank + 1": "Your first stage starts the fewest micro-batches. The last stage can start its "
        "backward pass at once.",
        "stages - rank → max(stages - rank - 1, 1)": "Your stages start one micro-batch too few before their first "
        "backward, so later stages wait.",
        "stages - rank → stages - rank + 1": "One micro-batch more than needed is alive in each stage.",
        "min(micro, stages - rank) → 1": "You alternate forward and backward from the beginning. Only the last stage "
        "can do that.",
        "stages - rank → 2 * (stages - rank) - 1": "Your stages start enough micro-batches, 2(p − r) − 1, to never "
        "wait for a gradient. 1F1B starts p − r.",
        "min(micro, stages - rank) → stages - rank ;; range(micro - started → range(max(micro - started, 0)": "With "
        "fewer micro-batches than stages you start some that do not exist: there are only `micro`.",
        "range(micro - started, micro) → range(micro - started, micro - started + 1)": "You leave out the backward "
        "passes at the end: each micro-batch needs one.",
        'return order → return order[:micro] + order[:micro - 1 : -1] if schedule == "gpipe" else order': "In GPipe "
        "your backward passes run in reverse order. Both kinds go through the micro-batches in order.",
        " or rank not in range(stages) or micro < 1 → ": "You accept a rank that does not exist, and fewer than one "
        "micro-batch. Raise ValueError.",
        " or rank not in range(stages) → ": "You accept a rank that does not exist. Raise ValueError.",
        " or micro < 1 → ": "You accept fewer than one micro-batch. Raise ValueError.",
        'schedule not in ("gpipe", "1f1b") or →  ;; schedule == "gpipe" → schedule != "1f1b"': "You treat an unknown "
        "schedule as GPipe: raise a ValueError.",
        "stages - rank → stages - rank - 1": "Your stages start one micro-batch too few before their first backward: "
        "the last stage begins with a backward pass, of which there was no forward.",
        "stages - rank → rank": "Your first stages start the fewest micro-batches, and stage 0 none. Stage r of p "
        "starts p − r before its first backward.",
        'schedule not in → schedule.lower() not in ;; schedule == "gpipe" → schedule.lower() == "gpipe"': "You accept "
        "a schedule in capitals. Only the two words as they are written are known: raise ValueError.",
        'order += [f"B{i - started}", f"F{i}"] → order += [f"B{i - 1}", f"F{i}"]': "Each backward pass of yours takes "
        "the micro-batch that was started last. Both kinds go through the micro-batches in order: the oldest is due.",
    },
)


stage_order.slips(
    one_forward_one_backward,
    {
        'f"B{i}"]\n → f"B{warm + i}"]\n ;; range(micro - warm, micro) → range(warm)': "In 1F1B each backward pass "
        "takes the micro-batch of the forward pass just before it. The oldest one is due."
    },
)
