"""The open task of notebook 23: keep as few parts of a story model as possible.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.chapters.inside.cut import HEADS, LAYERS, UNITS, Change, Place, edited, mean_parts
from lmcourse.chapters.inside.models import story_model
from lmcourse.chapters.inside.words import Paragraphs, paragraphs
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Remark, Unfit

Part = tuple[int, int]
"""A head or a unit: its layer and its number there, both from 0."""

HEAD_PRICE = 16
BUDGET = 10_000
"""So many texts may a model read while an answer looks for a circuit."""

NO_LISTS = "`circuit` must return two lists, heads and units, of pairs (layer, number) with whole numbers."
NO_PART = "There is no {kind} {part}: layers are counted from 0 to 1, heads from 0 to 3, units from 0 to 127."
TWICE = "A part is in your lists twice."
CHANGED = "You write into `means`, which belongs to the caller. Work on a clone."
SPENT = "Your search has read {budget:,} texts, and more are not allowed."
SPARED = (
    "You keep parts that a model can spare, and leave out all that it needs: a toy showed it. Is a sign reversed, or "
    "the selection?"
)


class Odds:
    """The odds of texts in a model whose parts may be replaced: `odds(change, rows)`. They can be differentiated.

    Args:
        model: a model of the course, which is handed over for good.
        test: the texts.
        budget: the number of texts that the model may read.
    """

    def __init__(self, model: Any, test: Paragraphs, budget: int = BUDGET) -> None:
        self.__model, self.__test, self.__left = model, test, budget
        self.budget = budget

    def __len__(self) -> int:
        return len(self.__test.texts)

    @one_thread()
    def __call__(self, change: Change | None = None, rows: Any = slice(None)) -> Float[Tensor, " b"]:
        """Return the odds of each text, or of these rows. `change` replaces the results of heads and units."""
        test = self.__test[rows]
        self.__left -= len(test.texts)
        if self.__left < 0:
            raise Unfit(SPENT.format(budget=self.budget))
        with edited(self.__model, change):
            return test.odds(self.__model(test.texts))


def kept(heads: Iterable[Part], units: Iterable[Part], means: dict[Place, Tensor]) -> Change:
    """Return the change after which only these parts compute: all others are replaced by their means."""
    on = {(kind, layer): torch.zeros(count) for kind, count in (("heads", HEADS), ("units", UNITS)) for layer in (0, 1)}
    for kind, parts in (("heads", heads), ("units", units)):
        for layer, number in parts:
            on[kind, layer][number] = 1

    def change(kind: str, layer: int, values: Tensor) -> Tensor:
        mask, mean = on[kind, layer].bool(), means[kind, layer]
        if kind == "heads":
            return torch.where(mask[:, None, None], values, mean[:, None])
        return torch.where(mask, values, mean)

    return change


def price(heads: Iterable[Part], units: Iterable[Part]) -> int:
    """Return the price of a circuit: 16 for a head, 1 for a unit, 384 for everything."""
    return HEAD_PRICE * len([*heads]) + len([*units])


@torch.no_grad()
def fraction_kept(model: Any, heads: Iterable[Part], units: Iterable[Part], means: dict[Place, Tensor]) -> float:
    """Return the fraction of the model's odds that a circuit keeps on 400 paragraphs that no search has seen."""
    odds = Odds(model, paragraphs(177, 400))
    return (odds(kept(heads, units, means)).mean() / odds().mean()).item()


def _checked(found: Any) -> tuple[list[Part], list[Part]]:
    """Return the two lists of an answer; raise Unfit if they are not parts of the model."""
    try:
        heads, units = ([(int(layer), int(number)) for layer, number in parts] for parts in found)
    except (TypeError, ValueError):
        raise Unfit(NO_LISTS) from None
    for kind, parts, count in (("head", heads, HEADS), ("unit", units, UNITS)):
        for part in parts:
            if not (0 <= part[0] < LAYERS and 0 <= part[1] < count):
                raise Unfit(NO_PART.format(kind=kind, part=part))
        if len(set(parts)) < len(parts):
            raise Unfit(TWICE)
    return heads, units


def _asked(circuit: Callable[..., Any], odds: Any, means: dict[Place, Tensor]) -> tuple[list[Part], list[Part]]:
    """Return the circuit that an answer finds; raise Unfit if it is not valid."""
    given = {place: mean.clone() for place, mean in means.items()}
    found = _checked(circuit(odds, given))
    if given.keys() != means.keys() or not all(torch.equal(given[place], means[place]) for place in means):
        raise Unfit(CHANGED)
    return found


@one_thread()
def measure_circuit(circuit: Callable[..., Any], seeds: list[int]) -> dict[str, float]:
    """Return the smallest fraction of the odds that the circuits in the models of these seeds keep, and their price."""
    fractions, prices = [], []
    for seed in seeds:
        means = mean_parts(story_model(seed))
        torch.manual_seed(seed)
        heads, units = _asked(circuit, Odds(story_model(seed), paragraphs(77, 256)), means)
        fractions.append(fraction_kept(story_model(seed), heads, units, means))
        prices.append(price(heads, units))
    return {"odds kept": min(fractions), "price": -(-sum(prices) // len(prices))}


NEEDED: dict[str, list[Part]] = {"heads": [(1, 2)], "units": [(0, 5), (0, 90), (1, 3), (1, 40), (1, 77)]}
"""The parts of the toy that speak for the right hero. All others say next to nothing."""


class _ToyOdds:
    """The odds of a toy with the shapes of the models, in which few parts do everything. A call takes a millisecond."""

    def __init__(self) -> None:
        drawn = torch.Generator().manual_seed(0)
        shapes = {"heads": (256, HEADS, 1, HEAD_PRICE), "units": (256, 1, UNITS)}
        places = [(kind, layer) for kind in shapes for layer in (0, 1)]
        self.values: dict[Place, Tensor] = {one: 0.2 * torch.randn(shapes[one[0]], generator=drawn) for one in places}
        self.weights = {one: torch.full_like(values[0], 0.001) for one, values in self.values.items()}
        for kind, layer, number in ((one, *part) for one in NEEDED for part in NEEDED[one]):
            at = (number,) if kind == "heads" else (slice(None), number)
            self.values[kind, layer][:, *at] += 1
            self.weights[kind, layer][at] = 1 / HEAD_PRICE if kind == "heads" else 1
        self.means = {one: torch.zeros((HEADS, HEAD_PRICE) if one[0] == "heads" else (UNITS,)) for one in places}

    def __len__(self) -> int:
        return 256

    def __call__(self, change: Change | None = None, rows: Any = slice(None)) -> Tensor:
        odds = torch.zeros(256)[rows]
        for (kind, layer), values in self.values.items():
            used = change(kind, layer, values[rows]) if change else values[rows]
            odds = odds + (used * self.weights[kind, layer]).flatten(1).sum(dim=1)
        return odds


@one_thread()
def inspect_circuit(circuit: Callable[..., Any]) -> None:
    """Raise Unfit if an answer does not return parts of a model, tried with a toy. Known mistakes are remarks."""
    toy = _ToyOdds()
    torch.manual_seed(0)
    found = dict(zip(("heads", "units"), _asked(circuit, toy, toy.means), strict=True))
    if any(found.values()) and not any({*found[kind]} & {*NEEDED[kind]} for kind in NEEDED):
        warnings.warn(SPARED, Remark, stacklevel=1)
