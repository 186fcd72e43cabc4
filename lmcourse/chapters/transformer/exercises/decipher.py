"""The open task: read weights from files that do not say how they are written."""

from __future__ import annotations

from typing import Any

import torch

from lmcourse.chapters.transformer import stranger
from lmcourse.chapters.transformer.exercises.neighbours import with_einops as pair_neighbours
from lmcourse.chapters.transformer.stranger import CALLS, SPEAK
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask


def as_it_is(file: Any, sizes: Any, loss: Any) -> Any:
    return file


decipher = Exercise(
    "decipher",
    points=5,
    minutes=12,
    difficulty=3,
    reference=as_it_is,
    seconds=60.0,
    cases=[case("eight files", files=[*stranger.FILES])],
    hidden_cases=lambda _: [case("eight other files", files=[*stranger.HIDDEN_FILES])],
    hints=[
        "Write a reader for each habit, from weights to new weights: {**file, 'blocks': [{**layer, ...} for layer in "
        "file['blocks']]}. Try each on a file whose loss you know.",
        "Does a right reading always lower the loss? Print the loss of one file after each reading, alone and together "
        "with others.",
        "Five habits that are there or not are 32 readings, and a try costs milliseconds. If that is too many calls: "
        "which reading helps most now, and which after that? And when may you stop?",
    ],
    forbid=["sys", "inspect", "gc", "importlib", ".__self__", ".__closure__", "builtins.getattr", "builtins.open"],
    uses=["pair_neighbours"],
    task=OpenTask(
        inspect=stranger.inspect_decipher,
        measure=stranger.measure_decipher,
        baseline={"the file as it is": {SPEAK: 0, CALLS: 0.0}, "halves alone": {SPEAK: 0, CALLS: 0.0}},
        finish={SPEAK: 8, CALLS: 15.0},
        bands=[
            Band(1, at_least={SPEAK: 2}),
            Band(1, at_least={SPEAK: 5}),
            Band(1, at_least={SPEAK: 7}),
            Band(1, at_least={SPEAK: 8}),
            Band(1, "all of them, with few calls", at_least={SPEAK: 8}, at_most={CALLS: 15.0}),
        ],
        digits=1,
    ),
)
decipher.idea(0)(as_it_is)


@decipher.idea(5)
def what_helps_most(file: Any, sizes: Any, loss: Any) -> Any:
    width, heads, groups = sizes["d_head"], sizes["heads"], sizes["kv_heads"]

    def each(change: Any) -> Any:
        return lambda read: read | {"blocks": [layer | change(layer) for layer in read["blocks"]]}

    def neighbours(layer: dict[str, Any]) -> dict[str, Any]:
        rows = layer["qkv"].split([(heads + groups) * width, groups * width])
        return {"qkv": torch.cat([pair_neighbours(rows[0], width), rows[1]])}

    def in_order(layer: dict[str, Any]) -> dict[str, Any]:
        parts = layer["qkv"].unflatten(0, (groups, -1)).split([heads // groups * width, width, width], dim=1)
        return {"qkv": torch.cat([part.flatten(0, 1) for part in parts])}

    def add_1(part: dict[str, Any]) -> dict[str, Any]:
        return {name: part[name] + 1 for name in ("norm_1", "norm_2", "norm") if name in part}

    readers = [lambda read: each(add_1)(read) | add_1(read), each(lambda w: {"gate": w["up"], "up": w["gate"]})]
    readers += [each(lambda w: {"out": w["out"].T}), each(in_order), each(neighbours)]

    def read(chosen: list[int]) -> dict[str, Any]:
        weights = file
        for number in sorted(chosen):
            weights = readers[number](weights)
        return weights

    chosen: list[int] = []
    least = loss(file)
    for _ in readers:
        losses = {number: loss(read([*chosen, number])) for number in range(5) if number not in chosen}
        best = min(losses, key=losses.__getitem__)
        if losses[best] >= least:
            break
        chosen, least = [*chosen, best], losses[best]
    return read(chosen)


_START = "    chosen: list[int] = []\n"
"""Where the search begins. What an idea returns here leaves the rest unused."""
_SWEEP = f"""{_START} → {_START}    least = loss(file)
    for number in {{order}}:
        other = [each for each in chosen if each != number] if number in chosen else [*chosen, number]
        if (now := loss(read(other))) < least:
            chosen, least = other, now
    return read(chosen)
"""
_ALL = f"{_START} →     every = [[n for n in range(5) if bits >> n & 1] for bits in range(32)]\n"
_PAGE = "[4, 3, 2, 1, 0]"
decipher.edited_ideas(
    what_helps_most,
    {
        "one after the other": (1, _SWEEP.format(order=_PAGE)),
        "the last habit first": (2, _SWEEP.format(order="range(5)")),
        "one after the other, three times": (3, _SWEEP.format(order=f"3 * {_PAGE}")),
        "all 32": (4, f"{_ALL}    return min(map(read, every), key=loss)\n"),
    },
)
decipher.slips(
    what_helps_most,
    {
        "    return read(chosen)\n → ": stranger.NO_WEIGHTS.format(what="is of the type NoneType"),
        "return read(chosen) → return read(chosen), chosen": stranger.NO_WEIGHTS.format(what="is of the type tuple"),
        'return read(chosen) → return {"weights": read(chosen)}': stranger.NO_WEIGHTS.format(what="has other names"),
        'return read(chosen) → return each(lambda layer: {"out": layer["out"][:9]})(file)': stranger.NO_WEIGHTS.format(
            what="has other shapes"
        ),
        "return {name: part[name] + 1 for → return {name: part[name].add_(1) for": stranger.CHANGED,
        f"{_START} →     return read([4])\n": stranger.ENDED,
        f"{_ALL}    return min(map(read, every), key=loss)\n": stranger.ALL_TRIED,
        "least = loss(file) → least = min(loss(file) for _ in range(300))": stranger.TOO_MANY,
        "least = loss(file) → least = loss({})": stranger.UNREADABLE.format(what="KeyError"),
    },
)
