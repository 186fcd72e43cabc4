"""The exercise on activation checkpointing."""

from __future__ import annotations

from itertools import chain
from random import Random

from lmcourse.exercises.cases import Case, case, edge, script
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


def _both(name: str, layers: int, every: int) -> list[Case]:
    """A case for each of the two numbers, so that one mistake does not cost the points of both."""
    return [
        script(f"{each}: {name}", f"compute_twice({layers}, {every})[{place}]")
        for place, each in enumerate(("units", "computed again"))
    ]


def _hidden(random: Random) -> list[Case]:
    return [
        *_both("other depths", 1, 1),
        *_both("other depths", 1, 5),
        *_both("other depths", 2, 1),
        *_both("other depths", 2, 2),
        *_both("other depths", 13, 4),
        *_both("other depths", 15, 4),
        *_both("other depths", 64, 8),
        *_both("other depths", 40, 39),
        *_both("other depths", 40, 20),
        case("bad input", 0, 3),
        case("bad input", 5, 0),
        case("bad input", -4, 2),
        case("bad input", 4, -2),
        case("bad input", -4, -2),
        # a short last segment, so that the peak is not at the end of the forward pass
        *chain.from_iterable(
            _both("other depths", every * random.randint(3, 9) + random.randint(1, every - 3), every)
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
        *_both("nine layers, segments of three", 9, 3),
        *_both("ten layers: a rest of one", 10, 3),
        *_both("fourteen layers: a rest of two", 14, 4),
        *_both("23 layers: a rest of five", 23, 9)[:1],
        *_both("a segment for each layer", 5, 1),
        *_both("one segment", 5, 5),
        *map(edge, _both("one layer", 1, 1)),
        *_both("96 layers", 96, 10),
        *_both("a segment longer than the model", 6, 9),
        case("no segment", 5, 0),
        case("minus four layers, segments of minus two", -4, -2),
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
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → max(len(lengths), every) + 1": "You add 1 "
        "to the larger of two numbers. While a segment is in memory, the inputs of all segments before it are, too.",
        "every < 1: → every < 1 or every > layers:": "You refuse a segment longer than the model. It is one segment.",
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
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → len(lengths) + every": "You add all kept "
        "inputs to `every` layers. While a whole segment is recomputed, the inputs of later segments are already "
        "released, and a model may have fewer layers.",
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → len(lengths) - 1 + every": "You leave out "
        "the last segment. If it is as long as the others, its layers and all inputs are in memory at once.",
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → every + layers // every": "You count "
        "`every` layers even if the model has fewer. Then it is one segment, with one input.",
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → every + layers / every": "You divide "
        "layers by `every` without rounding. The last segment may be shorter, and units are whole.",
        "sum(lengths[:-1]) → layers - every": "You subtract a whole segment from the layers. The last segment may be "
        "shorter.",
        "sum(lengths[:-1]) → layers - len(lengths)": "You leave out one layer of each segment. Only the last segment "
        "is not computed again; in the others every layer is.",
        "lengths, 1) → lengths, 2)": "You count one input too many: while segment k is in work, k inputs are kept.",
        "max(inputs + length for inputs, length in enumerate(lengths, 1)) → len(lengths) + layers": "You keep the "
        "inside of every segment. It is thrown away when the next segment begins.",
        "sum(lengths[:-1]) → (layers // every - 1) * every": "You leave out the layers of a shorter last segment when "
        "you count segments. Then all whole ones are computed again.",
    },
)
