"""The exercise on what a head does: take its result from another run."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise

Effect = tuple[float, float]
Signals = list[list[float]]


def _effect(loss: Any, clean: Tensor, corrupted: Tensor, layer: int, head: int) -> Effect:
    """Compute with a mask of the one head, and the results of every layer kept by layer."""

    def run(text: Tensor, other: dict[int, Tensor]) -> tuple[float, dict[int, Tensor]]:
        kept = {}

        def change(place: int, results: Tensor) -> Tensor:
            kept[place] = results.clone()
            ours = torch.arange(results.shape[1]) == head
            return torch.where(ours[:, None, None], other[place], results) if place in other else results

        return loss(text, change), kept

    (low, of_clean), (high, of_corrupted) = run(clean, {}), run(corrupted, {})
    restored, _ = run(corrupted, {layer: of_clean[layer]})
    destroyed, _ = run(clean, {layer: of_corrupted[layer]})
    return (high - restored) / (high - low), (destroyed - low) / (high - low)


def _text(signals: Signals) -> Tensor:
    """Return a text of a toy loss in which the results of each head have its own root mean square, and vary."""
    varies = torch.tensor([0.2, 1.4]).repeat(6).reshape(4, 3).T[:, None, :, None]  # by text and token
    return torch.tensor(signals)[:, None, :, None, None] * varies.expand(-1, 1, -1, 2)


def _toy(name: str, rule: str, clean: Signals, corrupted: Signals, layer: int, head: int) -> Case:
    return _case(name, rule, _text(clean), _text(corrupted), layer, head)


def _case(name: str, rule: str, clean: Tensor, corrupted: Tensor, layer: int, head: int) -> Case:
    lines = f"""
from lmcourse.chapters.attention.patching import toy_loss
loss = toy_loss(lambda layer0, layer1: {rule})
head_effect(loss, clean, corrupted, {layer}, {head})
"""
    return script(name, lines, clean=clean, corrupted=corrupted)


def _cases(random: Random) -> list[Case]:
    def text(heads: int) -> Tensor:
        numbers = [random.uniform(0.5, 1.5) for _ in range(2 * 2 * heads * 3 * 2)]
        return torch.tensor(numbers).reshape(2, 2, heads, 3, 2)

    three, four = (text(3) + 1, text(3)), (text(4) + 1, text(4))
    return [
        _case("three heads", "9 - layer0[0] * layer0[2] - layer1[1]", *three, 0, 2),
        _case("three heads", "9 - layer0[0] * layer0[2] - layer1[1]", *three, 1, 1),
        _case("a head that harms", "9 - layer0[0] - layer0[1] + layer1[3]", *four, 1, 3),
        _case("every layer reads the one below", "9 - layer1[0] * layer1[3]", *four, 0, 3),
    ]


_ON, _OFF = [[2.0, 2.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]  # B's results are not 0: setting 0 differs
_LATE = [[1.0, 1.0], [0.0, 1.0]]

head_effect = Exercise(
    "head_effect",
    points=3,
    minutes=8,
    difficulty=3,
    reference=_effect,
    cases=[
        _toy("one head does it all", "9 - 4 * layer0[1]", _ON, _OFF, 0, 1),
        _toy("a head that does nothing", "9 - 4 * layer0[1]", _ON, _OFF, 0, 0),
        _toy("two heads, only together", "5 - 4 * (layer0[0] - 1) * (layer0[1] - 1)", _ON, _OFF, 0, 0),
        _toy("two heads, one is enough", "9 - 4 * max(layer0)", _ON, _OFF, 0, 1),
        _toy("a head of layer 1 does it all", "9 - 4 * layer1[1]", _LATE, _OFF, 1, 1),
        _toy("the same head of layer 0", "9 - 4 * layer1[1]", _LATE, _OFF, 0, 1),
        _toy("layer 1 reads layer 0", "9 - 3 * layer1[0] - layer1[1]", _ON, _OFF, 0, 0),
    ],
    hidden_cases=_cases,
    hints=[
        "Two kinds of runs: one that only writes down what a layer's heads give, and one that puts one head's result "
        "in. For both you pass a function as `change`.",
        "To write down, append `results` to a list and return them. To put in, return `results` for other layers; for "
        "this one, return a clone with [:, head] from the other run's list.",
        "restored = (loss(B) − patched B) / (loss(B) − loss(A)) with A's results put into B; destroyed = (patched A − "
        "loss(A)) / (loss(B) − loss(A)) with B's results put into A.",
    ],
)


@head_effect.variant
def keep_then_put_in(loss: Any, clean: Tensor, corrupted: Tensor, layer: int, head: int) -> tuple[float, float]:
    def kept(text: Tensor) -> Tensor:
        found = []

        def keep(place: int, results: Tensor) -> Tensor:
            found.append(results)
            return results

        loss(text, keep)
        return found[layer]

    def patched(text: Tensor, source: Tensor) -> float:
        def change(place: int, results: Tensor) -> Tensor:
            if place != layer:
                return results
            results = results.clone()
            results[:, head] = source[:, head]
            return results

        return loss(text, change)

    a, b = loss(clean), loss(corrupted)
    restored = b - patched(corrupted, kept(clean))
    destroyed = patched(clean, kept(corrupted)) - a
    return restored / (b - a), destroyed / (b - a)


head_effect.slips(
    keep_then_put_in,
    {
        "return restored / (b - a), destroyed / (b - a) → return destroyed / (b - a), restored / (b - a)": "You have "
        "swapped the two numbers, or the texts: *restored* puts a result of A, the clean text, into the run on B.",
        "    def kept(text: Tensor) -> Tensor:\n        found = [] →     found = []\n\n    def kept(text: Tensor) -> "
        "Tensor:": "Your *destroyed* is 0: you put A's own result back into A. If both runs fill one list, it begins "
        "with the results of the first.",
        "patched(clean, kept(corrupted)) → patched(clean, torch.zeros_like(kept(corrupted)))": "Your *destroyed* sets "
        "the head's result to zero. Take it from the run on B: zero may be something that no text gives.",
        "return found[layer] → return found[-1]": "You keep the results of the last layer for every layer. `change` is "
        "called once for each layer: keep them all, in order.",
        "results[:, head] = source[:, head] → results[:] = source": "You take over the whole layer. Put in the result "
        "of one head, [:, head].",
        "if place != layer → if False": "You put the head in at every layer: `layer` is not used. The other layers "
        "compute with what they get.",
        "return found[layer] → return found ;; if place != layer → if False ;; = source[:, head] → = source[place][:, "
        "head]": "You put the head in at every layer, each time with its own result there: `layer` is not used.",
        "= source[:, head] → = source[:1, head]": "You put the head's result for the first text into all texts. Each "
        "text gets the result of its own counterpart.",
        "restored / (b - a), destroyed / (b - a) → restored / b, destroyed / b": "You divide by the loss of B. Divide "
        "by what there is to restore or to destroy: loss(B) − loss(A).",
        "b - patched(corrupted, kept(clean)) → patched(corrupted, kept(clean)) - a": "Your *restored* is what is still "
        "missing. It is what is regained: loss(B) − the loss of B with A's result.",
        "patched(clean, kept(corrupted)) - a → b - patched(clean, kept(corrupted))": "Your *destroyed* is what is "
        "left. It is what is lost: the loss of A with B's result − loss(A).",
        "kept(clean)) → kept(corrupted)) ;; kept(corrupted)) - a → kept(clean)) - a": "You put a run's own result back "
        "into it, which changes nothing. Take the head's result from the run on the other text.",
        "results[:, head] = source[:, head] → results[head] = source[head]": "You index the first axis, the texts. The "
        "heads are the second axis: [:, head].",
        "results[:, head] = source[:, head] → results[:, :, head] = source[:, :, head]": "You index the third axis, "
        "the tokens. The heads are the second axis: [:, head].",
        "results[:, head] = source[:, head] → results[:, head] = 0": "You set the head's result to zero. Take it from "
        "the run on the other text: zero may be something that no text gives.",
        "results[:, head] = source[:, head] → results[:, head] = source[:, head].mean(dim=(0, 1))": "You put in an "
        "average of the head's results. Put in the results themselves, text by text and token by token.",
        "results[:, head] = source[:, head] → results[:, head] = results[:, head].mean(dim=(0, 1))": "You put in an "
        "average of the run's own results. Take the head's result from the run on the other text.",
        "return found[layer] → return found[0]": "You keep the results of layer 0 for every layer. `change` is called "
        "once for each layer, in order.",
        "restored / (b - a), destroyed / (b - a) → restored, destroyed": "You return differences of losses. Divide "
        "them by loss(B) − loss(A), the difference between the texts.",
    },
)


@head_effect.variant
def one_function_for_both_ways(loss: Any, clean: Any, corrupted: Any, layer: int, head: int) -> tuple[float, float]:
    def moved(into: Any, source: Any) -> float:
        memory: dict[int, Any] = {}

        def remember(at: int, results: Any) -> Any:
            memory[at] = torch.clone(results)
            return results

        def swap(at: int, results: Any) -> Any:
            heads = list(results.unbind(1))
            if at == layer:
                heads[head] = memory[at][:, head]
            return torch.stack(heads, dim=1)

        start = loss(source, remember)
        return (loss(into) - loss(into, swap)) / (loss(into) - start)

    return moved(corrupted, clean), moved(clean, corrupted)


head_effect.equivalent_mutant(
    "changed = results.clone() → changed = results", "The results are those of this run alone: nothing else reads them."
)
