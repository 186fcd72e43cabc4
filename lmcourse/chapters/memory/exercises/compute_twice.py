"""The exercise on activation checkpointing."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _simulated(layers: int, every: int) -> tuple[int, int]:
    """Run forward and back, layer by layer, and count the tensors that are alive."""
    if layers < 1 or every < 1:
        raise ValueError("there must be at least one layer, and at least one layer per segment")
    alive: set[tuple[str, int]] = set()
    most = again = 0
    for layer in range(layers):
        if layer % every == 0:
            alive = {item for item in alive if item[0] == "input"} | {("input", layer)}
        alive.add(("inside", layer))
        most = max(most, len(alive))
    for layer in reversed(range(layers)):
        if ("inside", layer) not in alive:
            for earlier in range(layer - layer % every, layer + 1):
                alive.add(("inside", earlier))
                again += 1
                most = max(most, len(alive))
        alive -= {("inside", layer), ("input", layer)}
    return most, again


def _hidden(random: Random) -> list[Case]:
    return [
        case("one layer", 1, 1),
        case("one layer", 1, 5),
        case("two layers", 2, 1),
        case("two layers", 2, 2),
        case("the last segment is one layer", 13, 4),
        case("the last segment is nearly whole", 15, 4),
        case("segments of equal length", 64, 8),
        case("only one boundary", 40, 39),
        case("only one boundary", 40, 20),
        case("bad input", 0, 3),
        case("bad input", 5, 0),
        case("bad input", -4, 2),
        case("bad input", 4, -2),
        case("bad input", -4, -2),
        # a short last segment, so that the peak is not at the end of the forward pass
        *(
            case("other depths", every * random.randint(3, 9) + random.randint(1, every - 3), every)
            for every in random.sample(range(6, 30), 3)
        ),
    ]


compute_twice = Exercise(
    "compute_twice",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_simulated,
    cases=[
        case("nine layers, segments of three", 9, 3),
        case("ten layers: a rest of one", 10, 3),
        case("eleven layers: a rest of two", 11, 3),
        case("a segment for each layer", 5, 1),
        case("one segment", 5, 5),
        case("96 layers", 96, 10),
        case("a segment longer than the model", 6, 9),
        case("no segment", 5, 0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write down the lengths of the segments: for 10 layers and every 3 they are 3, 3, 3, 1.",
        "While the backward pass is in segment number k (from 1), the inputs of k segments are still in memory, and "
        "all activations inside that segment. Which k has the most?",
        "The last segment was never discarded, so it is not recomputed: the answer is layers minus its length.",
    ],
)


compute_twice.equivalent_mutant("if every < 1: → if every < 0:", "range refuses a step of 0 with the same exception.")
compute_twice.equivalent_mutant(
    "lengths = [min(every, layers - start) for start in range(0, layers, every)] → "
    "lengths = [min(layers - start, every) for start in range(0, layers, every)]",
    "The smaller of two numbers does not depend on their order.",
)


@compute_twice.variant
def lengths_of_segments(layers: int, every: int) -> tuple[int, int]:
    if layers < 1 or every < 1:
        raise ValueError("there must be at least one layer, and at least one layer per segment")
    lengths = [min(every, layers - start) for start in range(0, layers, every)]
    peak = max(inputs + length for inputs, length in enumerate(lengths, 1))
    return peak, sum(lengths[:-1])


compute_twice.slips(
    lengths_of_segments,
    {
        "inputs + length for → len(lengths) + length for": "You add all kept inputs to a whole segment. During the "
        "backward pass, the inputs of later segments are already released.",
        "inputs + length for → inputs for": "You count the inputs alone. While a segment is recomputed, its "
        "activations take memory, too.",
        "inputs + length for → length for": "You count only the activations of one segment. The kept inputs take "
        "memory as well.",
        "lengths[:-1] → lengths": "You recompute the last segment. It is still in memory when the backward pass "
        "begins.",
        "sum(lengths[:-1]) → len(lengths[:-1])": "You count segments. Count the layers in them.",
        "sum(lengths[:-1]) → len(lengths)": "You count all segments. Count the layers that are computed again.",
        "sum(lengths[:-1]) → layers - lengths[0]": "You subtract a whole segment from the layers. The last segment "
        "may be shorter.",
        "sum(lengths[:-1]) → layers - layers % every": "You subtract the remainder of the layers. If it is 0, the "
        "last segment is a whole one, and is not computed again.",
        "lengths, 1 → lengths": "The input of the segment in work is missing. It stays in memory until the gradient "
        "has passed.",
        'lengths = [ → if every > layers:\n        raise ValueError("the segment is longer than the model")\n    '
        "lengths = [": "You reject a segment that is longer than the model. It is allowed: there is one segment.",
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → len(lengths) + lengths[-1]": "You look "
        "only at the end of the forward pass. The peak may come in the backward pass.",
        "layers, every)] → layers, every)][: layers // every or 1]": "You leave out the leftover layers. They are a "
        "segment as well, with their own input.",
        "sum(lengths[:-1]) → 0": "You recompute nothing. Everything that was discarded must be computed again.",
        'raise ValueError("there must be at least one layer, and at least one layer per segment") → return 0, 0': "You "
        "accept a segment of no layers, or no layers at all. Raise ValueError.",
    },
)
