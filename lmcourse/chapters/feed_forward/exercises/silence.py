"""The open task: the eight hidden units that carry the closing brackets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.feed_forward.units import (
    FEWER,
    IDLE,
    LARGEST,
    NO_LIST,
    NO_UNIT,
    OUTSIDE,
    REVERSED,
    SAME,
    SLOPES,
    TOO_MANY,
    TWICE,
    inspect_silence,
    measure_silence,
)
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask

BRACKETS, REST, OTHER = "brackets", "other tokens", "another kind"


def by_gradient_two_at_a_time(loss: Any, wanted: Tensor, k: int) -> Any:
    units: list[tuple[int, int]] = []
    while len(units) < k:
        kept: list[Tensor] = []

        def keep(layer: int, hidden: Tensor, kept: list[Tensor] = kept, off: Any = units) -> Tensor:
            on = torch.ones(hidden.shape[-1])
            on[[unit for place, unit in off if place == layer]] = 0
            kept.append((hidden * on).requires_grad_())
            return kept[-1]

        gradients = torch.autograd.grad(loss(keep)[wanted].mean(), kept)
        scores = torch.stack([-(h * g).sum(dim=(0, 1)) for h, g in zip(kept, gradients, strict=True)]).detach()
        best = scores.flatten().argsort(descending=True).tolist()
        pairs = [divmod(at, scores.shape[1]) for at in best]
        units += [pair for pair in pairs if pair not in units][: min(2, k - len(units))]
    return units


silence = Exercise(
    "silence",
    points=5,
    minutes=12,
    difficulty=3,
    reference=by_gradient_two_at_a_time,
    seconds=60.0,
    cases=[case("brackets, then quotes", part="public", other="quote")],
    hidden_cases=lambda _: [case("brackets, then whole numbers", part="hidden", other="whole number")],
    hints=[
        "What does a good unit have that a large one need not have? A unit may be large at every place, and what it "
        "says may be cancelled later. Ask what the *loss* would do.",
        "By how much does the loss rise if a hidden number h goes to 0? If its slope dL/dh stayed the same all the "
        "way, by −h · dL/dh. One backward pass gives that for all units and all places.",
        "That estimate is for one unit, while all others are on. Then seven others go. How could you ask again?",
    ],
    task=OpenTask(
        inspect=inspect_silence,
        measure=measure_silence,
        baseline={
            "eight at random (mean of five)": {BRACKETS: 0.01, REST: 0.01, OTHER: 0.00},
            "the largest where a bracket comes": {BRACKETS: 0.75, REST: 0.03, OTHER: 0.26},
        },
        finish={BRACKETS: 2.2, REST: 0.06, OTHER: 0.3},
        bands=[
            Band(1, "at most k units of the model"),
            Band(1, at_least={BRACKETS: 1.4}, at_most={REST: 0.06}),
            Band(1, at_least={BRACKETS: 1.4, OTHER: 0.3}, at_most={REST: 0.06}),
            Band(2, at_least={BRACKETS: 2.2, OTHER: 0.3}, at_most={REST: 0.06}),
        ],
    ),
)


@silence.idea(1)
@silence.misconception(LARGEST)
def the_largest(loss: Any, wanted: Tensor, k: int) -> Any:
    kept: list[Tensor] = []

    def keep(layer: int, hidden: Tensor) -> Tensor:
        kept.append(hidden)
        return hidden

    loss(keep)
    scores = torch.stack([hidden.abs()[wanted].mean(dim=0) for hidden in kept])
    return [divmod(at, scores.shape[1]) for at in scores.flatten().topk(k).indices.tolist()]


silence.edited_ideas(
    the_largest,
    {
        "a list that was looked up": (
            2,
            "[divmod( → [(1, 165), (3, 226), (1, 123), (0, 59), (0, 192), (0, 142), (3, 25), (0, 139)][:k] or [divmod(",
        ),
    },
)

silence.slips(the_largest, {"scores.flatten().topk(k).indices → torch.randperm(scores.numel())[:k]": IDLE})


@silence.idea(3)
def by_gradient(loss: Any, wanted: Tensor, k: int) -> Any:
    kept: list[Tensor] = []

    def keep(layer: int, hidden: Tensor) -> Tensor:
        kept.append(hidden.requires_grad_())
        return hidden

    gradients = torch.autograd.grad(loss(keep)[wanted].mean(), kept)
    scores = torch.stack([-(h * g).sum(dim=(0, 1)) for h, g in zip(kept, gradients, strict=True)]).detach()
    best = [divmod(at, scores.shape[1]) for at in scores.flatten().topk(2 * k).indices.tolist()]

    @torch.no_grad()
    def rise(*off: tuple[int, int]) -> float:
        on = torch.ones(scores.shape)
        on[tuple(torch.tensor(off).T)] = 0
        return float(loss(lambda layer, hidden: hidden * on[layer], 30)[wanted[:30]].mean())

    units = best[:k] if rise(*best[:k]) else []
    return units


silence.edited_ideas(
    by_gradient,
    {"each measured alone": (5, "best[:k] if rise(*best[:k]) else [] → sorted(best, key=rise)[-k:]")},
)

silence.idea(5)(by_gradient_two_at_a_time)


silence.slips(
    by_gradient_two_at_a_time,
    {
        "    return units →  || return units → return [unit for _, unit in units]": NO_LIST,
        "return units → return [*units, (2, 0)]": TOO_MANY.format(count=4, k=3),
        "return units → return units[:1] * 2": TWICE,
        "return units → return [(4, 0)]": NO_UNIT.format(unit=(4, 0)),
        "loss(keep)[wanted] → loss(keep, 20)[wanted]": FEWER.format(mask=60, read=20),
        "loss(keep)[wanted] → loss(keep)[torch.ones(60, 127, dtype=torch.bool)]": OUTSIDE.format(
            mask=(60, 127), wanted=(2, 32)
        ),
        "-(h * g) → (h * g)": REVERSED,
        "-(h * g) → g || -(h * g) → -g || -(h * g) → g.abs()": SLOPES,
        "units: list[tuple[int, int]] = [] → return [(1, 165), (3, 226), (1, 123), (0, 59), (0, 192), (0, 142), "
        "(3, 25), (0, 139)][:k]\n    units = []": SAME,
    },
)
