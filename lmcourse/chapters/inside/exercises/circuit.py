"""The open task: as few parts as possible that still name the hero."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.inside.circuits import (
    CHANGED,
    NO_LISTS,
    NO_PART,
    SPARED,
    TWICE,
    inspect_circuit,
    measure_circuit,
)
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask

KEPT, PRICE = "odds kept", "price"


def gradients_along_the_way(odds: Any, means: Any) -> Any:
    scores = {place: torch.zeros(len(mean)) for place, mean in means.items()}
    for a in (0.1, 0.3, 0.5, 0.7, 0.9):
        on = {place: torch.full((len(mean),), a, requires_grad=True) for place, mean in means.items()}

        def change(kind: str, layer: int, values: Tensor, on: Any = on) -> Tensor:
            mean, mask = means[kind, layer], on[kind, layer]
            if kind == "heads":
                mean, mask = mean[:, None], mask[:, None, None]
            return mean + mask * (values - mean)

        gradients = torch.autograd.grad(odds(change).mean(), list(on.values()))
        for place, gradient in zip(on, gradients, strict=True):
            scores[place] += gradient

    prices = {"heads": 16, "units": 1}
    parts = [(kind, layer, number) for kind, layer in means for number in range(len(means[kind, layer]))]
    parts.sort(key=lambda part: scores[part[:2]][part[2]].item() / prices[part[0]], reverse=True)

    def keeping(best: Any) -> Any:
        def change(kind: str, layer: int, values: Tensor) -> Tensor:
            mask = torch.tensor([(kind, layer, number) in best for number in range(len(means[kind, layer]))])
            if kind == "heads":
                return torch.where(mask[:, None, None], values, means[kind, layer][:, None])
            return torch.where(mask, values, means[kind, layer])

        return change

    low, count = 20, len(parts)
    with torch.no_grad():
        enough = 0.95 * odds().mean()
        while count - low > 1:
            middle = (low + count) // 2
            if odds(keeping({*parts[:middle]})).mean() < enough:
                low = middle
            else:
                count = middle
    return tuple([part[1:] for part in parts[:count] if part[0] == kind] for kind in ("heads", "units"))


circuit = Exercise(
    "circuit",
    points=5,
    minutes=12,
    difficulty=3,
    reference=gradients_along_the_way,
    seconds=60.0,
    cases=[case("seeds 0 and 1", seeds=[0, 1])],
    hidden_cases=lambda _: [case("seeds 2 and 3", seeds=[2, 3])],
    hints=[
        "Give each part a score, divide it by the part's price, and keep the best ones until 0.9 of the odds are "
        "there on your own texts. Leave room: on new texts it is up to 0.03 less.",
        "What would the odds lose without a part? One backward pass estimates it for all parts at once: the gradient "
        "times (value − mean). But that is the slope while all parts are on, and parts stand in for each other.",
        "Replace every part by mean + a · (value − mean), with one a for each part. You may take the gradient by a at "
        "several a between 0 and 1. Or you learn the a's, with the price as a penalty.",
    ],
    task=OpenTask(
        inspect=inspect_circuit,
        measure=measure_circuit,
        baseline={
            "everything": {KEPT: 1.0, PRICE: 384},
            "all heads, 200 units at random (mean of ten)": {KEPT: 0.83, PRICE: 328},
        },
        finish={KEPT: 0.9, PRICE: 200},
        bands=[
            Band(1, at_least={KEPT: 0.9}),
            Band(1, at_least={KEPT: 0.9}, at_most={PRICE: 340}),
            Band(1, at_least={KEPT: 0.9}, at_most={PRICE: 270}),
            Band(2, at_least={KEPT: 0.9}, at_most={PRICE: 200}),
        ],
    ),
)

circuit.idea(5)(gradients_along_the_way)


@circuit.idea(1)
def everything(odds: Any, means: Any) -> Any:
    heads = [(layer, head) for layer in range(2) for head in range(4)]
    units = [(layer, unit) for layer in range(2) for unit in range(128)]
    return heads, units


circuit.edited_ideas(
    gradients_along_the_way,
    {
        "one gradient, with everything on": (1, "(0.1, 0.3, 0.5, 0.7, 0.9) → (1.0,)"),
        "one gradient, at 0.7": (2, "(0.1, 0.3, 0.5, 0.7, 0.9) → (0.7,)"),
    },
)
circuit.slips(
    everything,
    {
        "    return heads, units →  || return heads, units → return [*heads, *units] || return heads, units → return "
        "[head for _, head in heads], units": NO_LISTS,
        "return heads, units → return heads, [*units, (2, 0)]": NO_PART.format(kind="unit", part=(2, 0)),
        "return heads, units → return [(1, 4)], units": NO_PART.format(kind="head", part=(1, 4)),
        "return heads, units → return heads, [*units, units[0]]": TWICE,
        "return heads, units → means['units', 0][:] = 0.5\n    return heads, units": CHANGED,
    },
)
circuit.slips(
    gradients_along_the_way,
    {
        "part[1:] for part in parts[:count] → part[1:] for part in parts[count:] || += gradient → -= gradient ;; "
        "while count - low > 1: → while False: ;; low, count = 20, len(parts) → low, count = 20, 120": SPARED,
    },
)
