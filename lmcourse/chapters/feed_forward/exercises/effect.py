"""The exercise on what a text loses without some hidden units."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

Units = Sequence[tuple[int, int]]


def _effect(loss: Any, units: Units, wanted: Tensor) -> tuple[float, float]:
    """Compute with masks of the units, and sums in place of means."""

    def change(layer: int, hidden: Tensor) -> Tensor:
        off = torch.tensor([(layer, unit) in units for unit in range(hidden.shape[-1])])
        return torch.where(off, 0.0, hidden)

    rise = loss(change) - loss()
    on, places = (rise * wanted).sum().item(), int(wanted.sum())
    return on / max(places, 1), (rise.sum().item() - on) / max(wanted.numel() - places, 1)


def _case(name: str, rule: str, units: Units, *places: int) -> Case:
    """Return a case in which the effect is asked for at these of the six places."""
    lines = f"""
from lmcourse.chapters.feed_forward.units import toy_loss
loss = toy_loss(lambda layer0, layer1: {rule})
unit_effect(loss, {units}, wanted)
"""
    return script(name, lines, wanted=_at(*places))


def _at(*places: int) -> Tensor:
    return torch.isin(torch.arange(6), torch.tensor(places)).view(2, 3)


def _afterwards(name: str, unit: tuple[int, int]) -> Case:
    """A case that looks at the loss after the answer has run: hidden numbers changed in place spoil it."""
    lines = f"""
from lmcourse.chapters.feed_forward.units import toy_loss
loss = toy_loss(lambda layer0, layer1: 9 - 2 * layer0[1] - layer1[2])
unit_effect(loss, [{unit}], wanted)
loss()
"""
    return script(name, lines, wanted=_at(0, 4))


def _cases(random: Random) -> list[Case]:
    rule = "9 - layer0[0] * layer0[2] + layer1[1] * layer0[1]"
    pairs = [(layer, unit) for layer in range(2) for unit in range(3)]
    places = [sorted(random.sample(range(6), count)) for count in (2, 3, 4)]
    return [
        *(_case("other units", rule, sorted(random.sample(pairs, 3)), *one) for one in places),
        _case("no unit", rule, [], 1, 4),
        _case("no wanted place", rule, [(1, 1)]),
        _case("every place is wanted", rule, [(0, 1)], *range(6)),
        _afterwards("the loss after the call", (1, 2)),
    ]


unit_effect = Exercise(
    "unit_effect",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_effect,
    cases=[
        _case("one unit", "9 - 2 * layer0[1] - layer0[2]", [(0, 1)], 0, 4),
        _case("the same unit of the other layer", "9 - 2 * layer0[1] - layer1[1]", [(1, 1)], 0, 4, 5),
        _case("two units of one layer", "9 - layer0[0] * (1 + layer0[2]) - 2 * layer0[2]", [(0, 0), (0, 2)], 1, 2),
        _case("units of two layers: one helps, one harms", "9 - 3 * layer0[2] + layer1[0]", [(0, 2), (1, 0)], 0, 3, 5),
        _case("a unit that harms", "5 + layer0[1] + layer1[2] * layer0[0]", [(1, 2)], 1, 3, 4),
        _case("one place is wanted", "4 - layer1[2] / (1 + layer0[0])", [(1, 2)], 3),
        _case("no unit", "9 - 2 * layer0[1]", [], 2, 3),
        _case("no wanted place", "9 - 2 * layer0[1]", [(0, 1)]),
        _case("every place is wanted", "9 - 2 * layer0[1]", [(0, 1)], *range(6)),
        _afterwards("the loss after the call is that before it", (0, 1)),
    ],
    hidden_cases=_cases,
    tolerance=Tolerance(1e-6, 1e-6),  # means in float32
    hints=[
        "Two calls: `loss()` and `loss(change)`. Subtract before you average: the difference has a number for each "
        "place.",
        "`change` is called once for each layer. It returns a clone of `hidden` with `[..., unit]` set to 0 for the "
        "units of that layer.",
        "`rise[wanted].mean()` and `rise[~wanted].mean()`. The mean of no number is NaN: return 0 there.",
    ],
)


@unit_effect.variant
def clone_and_set(loss: Any, units: Any, wanted: Tensor) -> tuple[float, float]:
    def change(layer: int, hidden: Tensor) -> Tensor:
        hidden = hidden.clone()
        for place, unit in units:
            if place == layer:
                hidden[..., unit] = 0
        return hidden

    before = loss()
    rise = loss(change) - before
    on, off = rise[wanted], rise[~wanted]
    return on.mean().item() if len(on) else 0.0, off.mean().item() if len(off) else 0.0


_IN_PLACE = (
    "Your `change` writes into the hidden numbers that it was given, and the next call starts with the spoilt ones. "
    "Work on a clone."
)
_FROM_0 = "Your layers are off by one. `layer` and the layers in `units` both count from 0: compare them as they are."
unit_effect.slips(
    clone_and_set,
    {
        "        hidden = hidden.clone()\n →  ;; before = loss()\n    rise = loss(change) - before → after = "
        "loss(change)\n    rise = after - loss() ||         hidden = hidden.clone()\n → ": _IN_PLACE,
        "        return hidden\n\n → \n": "Your `change` returns nothing. Return the hidden numbers to go on with.",
        "hidden[..., unit] = 0\n        return hidden → hidden[..., unit] = 0\n                return hidden": "Where "
        "`units` has none of a layer, your `change` returns nothing. Return the hidden numbers there, too.",
        "hidden[..., unit] = 0\n        return hidden → hidden[..., unit] = 0\n            return hidden": "Your "
        "`change` returns within its loop, after the first pair, and without any pair nothing. Return after the loop.",
        "hidden[..., unit] = 0 → hidden[..., unit] = 0\n                return hidden": "Only the first of a layer's "
        "units is switched off. If you return within the loop, the others stay on: return after it.",
        "for place, unit in units: → for place, unit in dict(units).items():": "Only the last of a layer's units is "
        "switched off. A dict keeps one unit for each layer; a clone made within a loop forgets the units before.",
        "if place == layer → if place == layer + 1 || if place == layer → if place + 1 == layer": _FROM_0,
        "if place == layer → if True": "You switch the unit off in every layer. `change` is called for each: "
        "compare `layer` with the pair's.",
        "for place, unit in units: → for unit, place in units:": "You take a pair for (unit, layer). The layer comes "
        "first.",
        "hidden[..., unit] = 0 → hidden[..., unit] = torch.where(wanted, 0.0, hidden[..., unit])": "You switch the "
        "units off only where `wanted` is True. Switch them off everywhere: other places may need them, too.",
        "hidden[..., unit] = 0 → hidden[...] = 0": "You switch off the whole layer. Only the units "
        "in `units` are to be 0.",
        "hidden[..., unit] = 0 → hidden[unit] = 0 || hidden[..., unit] = 0 → hidden[:, unit] = 0": "You index the "
        "texts or the tokens. The units are the last axis: [..., unit].",
        "hidden[..., unit] = 0 → hidden[..., unit] = hidden[..., unit].mean()": "You put in the unit's mean. Here a "
        "unit that is switched off is 0.",
        "loss(change) - before → loss(change) / before": "You divide by the loss. Asked is by how much it rises: a "
        "difference, in nats.",
        "on, off = rise[wanted], rise[~wanted] → "
        "on, off = (rise[at] / before[at].mean() for at in (wanted, ~wanted))": "You divide the rise by the loss. "
        "Asked is a difference, in nats.",
        "loss(change) - before → before - loss(change)": "Your signs are reversed: a unit that the text needs has a "
        "positive effect.",
        "loss(change) - before → (loss(change) - before).abs()": "You drop the sign of the rise. Without a "
        "unit that harms, the loss falls: the effect is negative.",
        "loss(change) - before → (loss(change) - before).clamp(min=0)": "You count a fall of the loss as 0. Without "
        "a unit that harms, the effect is negative.",
        "before = loss() → if not wanted.any():\n        return 0.0, 0.0\n    before = loss()": "Where no place "
        "is wanted, only the first number is 0. The second is the mean rise of all places.",
        "loss(change) - before → loss(change)": "Those are the losses without the units. Subtract those with them.",
        "on, off = rise[wanted], rise[~wanted] → on, off = rise[wanted], rise.flatten()": "Your second number "
        "averages over all places. It belongs to those where `wanted` is False.",
        "on, off = rise[wanted], rise[~wanted] → on, off = rise.flatten(), rise.flatten()": "You average "
        "over all places. The first number is the mean where `wanted` is True, the second the mean elsewhere.",
        "on, off = rise[wanted], rise[~wanted] → on, off = rise[~wanted], rise[wanted]": "You have swapped the two "
        "numbers: first where `wanted` is True, then elsewhere.",
        "on.mean().item() if len(on) else 0.0, off.mean().item() if len(off) else 0.0 → on.mean().item(), "
        "off.mean().item()": "Where no place is wanted, or every place, a mean has nothing to average, and gives NaN. "
        "Return 0 there.",
        "on.mean().item() if len(on) else 0.0, off.mean().item() if len(off) else 0.0 → on.sum().item(), "
        "off.sum().item()": "You add up over the places. Return means.",
        "on.mean().item() if len(on) else 0.0, off.mean().item() if len(off) else 0.0 → (rise * "
        "wanted).mean().item(), (rise * ~wanted).mean().item()": "You divide both sums by the number of all places. "
        "Each mean has its own number of places.",
        "on, off = rise[wanted], rise[~wanted] → on, off = (torch.tensor([row[at].mean() for row, at in zip(rise, "
        "places) if at.any()]) for places in (wanted, ~wanted))": "You average the means of the texts. Every place "
        "counts alike: take one mean over the places of all texts.",
        "for place, unit in units: → for place, unit in [one]: ;; rise = loss(change) - before → rise = 0 * "
        "before\n    for one in units:\n        rise = rise + loss(change) - before": "You switch the units off one "
        "after another and add up. All are off in one run: some matter only together.",
        "for place, unit in units: → for place, unit in units[:1]: || for place, unit in units: → for place, unit in "
        "units[-1:]:": "You switch off one unit only. All of `units` are off in one run.",
    },
)
