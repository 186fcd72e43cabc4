"""The exercise on activation checkpointing."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _check(layers: int, every: int) -> None:
    if layers < 1 or every < 1:
        raise ValueError("there must be at least one layer, and at least one layer per segment")


def _simulated(layers: int, every: int) -> tuple[int, int]:
    """Run forward and back, layer by layer, and count the tensors that are alive."""
    _check(layers, every)
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
    fixed = [
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
    ]
    drawn = []
    # a short last segment, so that the peak is not at the end of the forward pass
    for every in random.sample(range(6, 30), 3):
        drawn.append(case("other depths", every * random.randint(3, 9) + random.randint(1, every - 3), every))
    return [*fixed, *drawn]


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


def _segments(layers: int, every: int) -> list[int]:
    return [end - start for start, end in pairwise([*range(0, layers, every), layers])]


@compute_twice.misconception(
    "You add all kept inputs to a whole segment. During the backward pass, the inputs of later segments are already "
    "released."
)
def all_inputs(layers: int, every: int) -> tuple[int, int]:
    lengths = _segments(layers, every)
    return len(lengths) + min(every, layers), _simulated(layers, every)[1]


@compute_twice.misconception(
    "You count the inputs alone. While a segment is recomputed, its activations take memory, too."
)
def inputs_only(layers: int, every: int) -> tuple[int, int]:
    return len(_segments(layers, every)), _simulated(layers, every)[1]


@compute_twice.misconception("You count only the activations of one segment. The kept inputs take memory as well.")
def insides_only(layers: int, every: int) -> tuple[int, int]:
    return max(_segments(layers, every)), _simulated(layers, every)[1]


@compute_twice.misconception("You recompute the last segment. It is still in memory when the backward pass begins.")
def all_twice(layers: int, every: int) -> tuple[int, int]:
    return _simulated(layers, every)[0], layers


@compute_twice.misconception("You count segments. Count the layers in them.")
def segments_counted(layers: int, every: int) -> tuple[int, int]:
    return _simulated(layers, every)[0], len(_segments(layers, every)) - 1


@compute_twice.misconception("You count all segments. Count the layers that are computed again.")
def all_segments_counted(layers: int, every: int) -> tuple[int, int]:
    return _simulated(layers, every)[0], len(_segments(layers, every))


@compute_twice.misconception("You subtract a whole segment from the layers. The last segment may be shorter.")
def last_segment_whole(layers: int, every: int) -> tuple[int, int]:
    lengths = _segments(layers, every)
    return _simulated(layers, every)[0], sum(lengths) - min(every, layers)


@compute_twice.misconception(
    "You subtract the remainder of the layers. If it is 0, the last segment is a whole one, and is not computed again."
)
def remainder_of_zero(layers: int, every: int) -> tuple[int, int]:
    return _simulated(layers, every)[0], layers - layers % every if every else 0


@compute_twice.misconception(
    "The input of the segment in work is missing. It stays in memory until the gradient has passed."
)
def own_input_forgotten(layers: int, every: int) -> tuple[int, int]:
    most, again = _simulated(layers, every)
    return most - 1, again


@compute_twice.misconception("You reject a segment that is longer than the model. It is allowed: there is one segment.")
def refuses_long_segments(layers: int, every: int) -> tuple[int, int]:
    if every > layers:
        raise ValueError("the segment is longer than the model")
    return _simulated(layers, every)


@compute_twice.misconception("You look only at the end of the forward pass. The peak may come in the backward pass.")
def end_of_forward(layers: int, every: int) -> tuple[int, int]:
    lengths = _segments(layers, every)
    return len(lengths) + lengths[-1], _simulated(layers, every)[1]


@compute_twice.misconception("You leave out the leftover layers. They are a segment as well, with their own input.")
def rest_forgotten(layers: int, every: int) -> tuple[int, int]:
    whole = max(layers // every, 1)
    return whole + min(every, layers), (whole - 1) * every


@compute_twice.misconception("You recompute nothing. Everything that was discarded must be computed again.")
def nothing_twice(layers: int, every: int) -> tuple[int, int]:
    return _simulated(layers, every)[0], 0


@compute_twice.misconception("You accept a segment of no layers, or no layers at all. Raise ValueError.")
def never_refuses(layers: int, every: int) -> tuple[int, int]:
    return _simulated(layers, every) if layers > 0 and every > 0 else (0, 0)


@compute_twice.variant
def segment_by_segment(layers: int, every: int) -> tuple[int, int]:
    if min(layers, every) < 1:
        raise ValueError("at least 1")
    most, again = 0, 0
    for number, start in enumerate(range(0, layers, every)):
        length = min(every, layers - start)
        most = max(most, number + 1 + length)
        if start + length < layers:
            again += length
    return most, again


@compute_twice.variant
def in_closed_form(layers: int, every: int) -> tuple[int, int]:
    if layers <= 0 or every <= 0:
        raise ValueError(f"{layers} layers, a segment of {every}")
    whole, rest = divmod(layers, every)
    if rest == 0:
        return whole + every, layers - every
    return max(whole + 1 + rest, whole + every if whole else 0), layers - rest


@compute_twice.variant
def from_the_end(layers: int, every: int) -> tuple[int, int]:
    if every < 1 or layers < 1:
        raise ValueError
    lengths = [every] * (layers // every) + [layers % every] * bool(layers % every)
    alive = [index + length for index, length in zip(range(len(lengths), 0, -1), reversed(lengths), strict=True)]
    return max(alive), sum(lengths[:-1])
