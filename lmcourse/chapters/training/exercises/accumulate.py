"""The exercise on the loss and the gradient of a text that does not fit into memory at once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.training.exercises.right_accumulate import RIGHT_SUMS
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64

MODEL = """\
import torch
first, second = torch.nn.Embedding.from_pretrained(e.clone(), freeze=False), torch.nn.Linear(2, 3).double()
second.weight.data.copy_(w)
second.bias.data.zero_()
model = torch.nn.Sequential(first, torch.nn.Tanh(), second)
"""
UNUSED = """\
model.unused = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
model.forward = lambda x: second(first(x))
"""
OLD = "for p in model.parameters():\n    p.grad = torch.ones_like(p)\n"
WATCHED = """\
import weakref
rows, inside, most = [], [], []
def watch(module, given, output):
    rows.append(len(output))
    inside.append(weakref.ref(output))
    most.append(sum(each() is not None for each in inside))
model[1].register_forward_hook(watch)
"""
"""Script that finds how many activations inside the model are alive at the same time."""
COUNTS = "\nmax(rows)\nmax(most)"


def _text(*rows: list[int]) -> Tensor:
    return torch.tensor(rows)


GIVEN = {
    "e": torch.tensor([[1.0, 0.0], [0.5, 1.0], [-1.0, 0.5]], dtype=torch.float64),
    "w": torch.tensor([[1.0, 0.0], [0.0, -1.0], [0.5, 2.0]], dtype=torch.float64),
}
A = {"x1": _text([0, 1], [2, 1]), "y1": _text([1, 2], [1, 0])}
B = {"x2": _text([2, 2], [0, 1]), "y2": _text([0, 1], [2, 2])}
SHORT = {"x2": _text([2, 0, 1], [1, 1, 0]), "y2": _text([1, -100, -100], [-100, -100, -100])}
SILENT = {"x2": _text([2, 0]), "y2": _text([-100, -100])}
TWO = "accumulate(model, [(x1, y1), (x2, y2)])"

Batches = list[tuple[Tensor, Tensor]]
Result = tuple[float, list[Tensor]]


def _ask(name: str, lines: str, **inputs: Tensor) -> Case:
    return script(name, MODEL + lines, **{**GIVEN, **inputs})


def _drawn(random: Random) -> Case:
    batches: dict[str, Tensor] = {"e": normal64(random, 3, 2), "w": normal64(random, 3, 2)}
    for number in (1, 2, 3):
        shape = (number, random.randint(3, 5))
        batches[f"x{number}"] = torch.tensor([[random.randrange(3) for _ in range(shape[1])] for _ in range(shape[0])])
        targets = torch.tensor([[random.randrange(3) for _ in range(shape[1])] for _ in range(shape[0])])
        batches[f"y{number}"] = targets if number > 1 else torch.cat([targets[:, :1], 0 * targets[:, 1:] - 100], 1)
    return _ask("other batches", "accumulate(model, [(x1, y1), (x2, y2), (x3, y3)])", **batches)


def _hidden(random: Random) -> list[Case]:
    none = {"x1": _text([0, 1]), "y1": _text([-100, -100])}
    return [
        _ask("another order", "accumulate(model, [(x2, y2), (x1, y1)])", **A, **SHORT),
        _ask("gradients from before", OLD + TWO, **A, **SHORT),
        _ask("asked twice", TWO + "\n" + TWO, **A, **SHORT),
        _ask("an unused parameter", UNUSED + TWO, **A, **B),
        _ask("nothing at all", "accumulate(model, [])"),
        _ask("a batch without targets first", TWO, **none, **B),
        _ask("a single target", "accumulate(model, [(x2, y2)])", **SHORT),
        _ask("what is in memory", WATCHED + "accumulate(model, [(x1, y1), (x2, y2), (x1, y1)])" + COUNTS, **A, **SHORT),
        _ask("targets of token 0 alone", TWO, x1=_text([1, 2]), y1=_text([0, 0]), x2=_text([2]), y2=_text([0])),
        *(_drawn(random) for _ in range(3)),
    ]


class Accumulated:
    """A right answer with a method for each part: wrong answers replace one part."""

    def __call__(self, model: Any, batches: Batches) -> Result:
        parameters = list(model.parameters())
        total, losses = [torch.zeros_like(p) for p in parameters], []
        for inputs, targets in batches:
            loss = self.loss(model(inputs).flatten(0, 1), targets.flatten(), batches)
            losses.append(loss.item())
            for number, gradient in enumerate(torch.autograd.grad(loss, parameters, allow_unused=True)):
                if gradient is not None:
                    total[number] = self.add(total[number], gradient)
        return sum(losses), total

    def count(self, batches: Batches) -> int:
        """Return the divisor of the sum of all losses."""
        return max(1, sum(int((targets >= 0).sum()) for _, targets in batches))

    def loss(self, logits: Tensor, targets: Tensor, batches: Batches) -> Tensor:
        """Return the contribution of a batch to the mean."""
        return F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum") / self.count(batches)

    def add(self, total: Tensor, gradient: Tensor) -> Tensor:
        """Add a gradient to the sum of the earlier ones."""
        return total + gradient


def _reference(model: Any, batches: Batches) -> Result:
    """Use the softmax: compute each target's log-probability separately, and differentiate once per batch."""
    parameters = list(model.parameters())
    found, whole = [torch.zeros_like(p) for p in parameters], 0.0
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    for inputs, targets in batches:
        log_p = model(inputs).log_softmax(-1)
        surprise = [-log_p[r, c, t] for r, row in enumerate(targets.tolist()) for c, t in enumerate(row) if t != -100]
        if surprise:
            whole += torch.stack(surprise).sum().item() / count
            gradients = torch.autograd.grad(torch.stack(surprise).sum(), parameters, allow_unused=True)
            for total, gradient in zip(found, gradients, strict=True):
                if gradient is not None:
                    total += gradient / count
    return whole, found


accumulate = Exercise(
    "accumulate",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_reference,
    cases=[
        _ask("two equal batches", TWO, **A, **B),
        _ask("four targets and one", TWO, **A, **SHORT),
        _ask("a batch without targets", TWO, **A, **SILENT),
        _ask("no target counts", "accumulate(model, [(x2, y2), (x2, y2)])", **SILENT),
        _ask("a single batch", "accumulate(model, [(x1, y1)])", **A),
        _ask("gradients from before", OLD + TWO, **A, **B),
        _ask("one target and four", TWO, x1=SHORT["x2"], y1=SHORT["y2"], x2=A["x1"], y2=A["y1"]),
        _ask("one batch in memory at a time", WATCHED + TWO + COUNTS, **A, **B),
        _ask("a parameter that is not used", UNUSED + TWO, **A, **B),
    ],
    hidden_cases=_hidden,
    tolerance=Tolerance(1e-6, 1e-9),  # a weight such as `counts.sum() / total` is a tensor in single precision
    seconds=30.0,  # torch.func, which an answer may use, takes seconds to import
    hints=[
        "What is the denominator of the mean over all targets? You know it before the first forward pass.",
        "F.cross_entropy has arguments for both halves of the problem: ignore_index and reduction. Take the gradient "
        "of one batch's part of the mean before you run the next batch.",
        "torch.autograd.grad(loss, parameters, allow_unused=True) does not touch .grad; it gives None for a parameter "
        "that nothing uses.",
    ],
)


LOOP = "for found, gradient in zip(total, torch.autograd.grad(loss, parameters, allow_unused=True){}):"
for _strict in ("", ", strict=False"):
    accumulate.equivalent_mutant(
        f"{LOOP.format(', strict=True')} → {LOOP.format(_strict)}", "Autograd gives one gradient for each parameter."
    )

accumulate.equivalent_mutant(
    "count = max(1, sum(((targets != -100).sum() for _, targets in batches))) → "
    "count = max(sum(((targets != -100).sum() for _, targets in batches)), 1)",
    "The larger of two numbers does not depend on their order.",
)

for right_answer in RIGHT_SUMS:
    accumulate.variant(right_answer)


def _wrong(sentence: str) -> Callable[[type[Accumulated]], type[Accumulated]]:
    """Register a class whose instances answer wrongly."""

    def register(kind: type[Accumulated]) -> type[Accumulated]:
        def answer(model: Any, batches: Batches) -> Result:
            return kind()(model, batches)

        answer.__name__ = kind.__name__
        accumulate.misconception(sentence)(answer)
        return kind

    return register


@_wrong(
    "You average the means of the batches: a token in a batch with few targets counts too much. Weight each mean by "
    "its number of targets."
)
class MeanOfMeans(Accumulated):
    def loss(self, logits: Tensor, targets: Tensor, batches: Batches) -> Tensor:
        own = (targets >= 0).sum().clamp(min=1)
        return F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum") / own / len(batches)


@_wrong("You average the means of the batches, and the mean of a batch without targets is 0/0. Add up sums instead.")
class NanMeans(Accumulated):
    def loss(self, logits: Tensor, targets: Tensor, batches: Batches) -> Tensor:
        return F.cross_entropy(logits, targets) / len(batches)


@_wrong("You add up the means of the batches: loss and gradient grow with the number of batches.")
class SumOfMeans(Accumulated):
    def loss(self, logits: Tensor, targets: Tensor, batches: Batches) -> Tensor:
        own = (targets >= 0).sum().clamp(min=1)
        return F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum") / own


@_wrong("You add up the losses of all targets and never divide. The task asks for the mean.")
class NeverDivided(Accumulated):
    def count(self, batches: Batches) -> int:
        return 1


@_wrong("Only the gradient of the last batch is left: you clear the gradients between batches, or overwrite the sum.")
class LastOnly(Accumulated):
    def add(self, total: Tensor, gradient: Tensor) -> Tensor:
        return gradient


@_wrong("You divide by the number of batches as well. Divide by the number of targets only.")
class TwiceDivided(Accumulated):
    def count(self, batches: Batches) -> int:
        return super().count(batches) * max(1, len(batches))


@_wrong("Your denominator includes targets of −100. They do not count.")
class IgnoredCounted(Accumulated):
    def count(self, batches: Batches) -> int:
        return max(1, sum(targets.numel() for _, targets in batches))


@_wrong("You turn a target of −100 into token 0 and count it. It does not count at all.")
class IgnoredIsZero(Accumulated):
    def count(self, batches: Batches) -> int:
        return max(1, sum(targets.numel() for _, targets in batches))

    def loss(self, logits: Tensor, targets: Tensor, batches: Batches) -> Tensor:
        return super().loss(logits, targets.clamp(min=0), batches)


@_wrong("You add up in float32, whatever the parameters are. Return each gradient in the dtype of its parameter.")
class InFloat32(Accumulated):
    def add(self, total: Tensor, gradient: Tensor) -> Tensor:
        return total.float() + gradient.float()


@_wrong("You leave out targets that are token 0. It is a token like any other; only −100 does not count.")
class ZeroIgnored(Accumulated):
    def loss(self, logits: Tensor, targets: Tensor, batches: Batches) -> Tensor:
        count = max(1, sum(int((t > 0).sum()) for _, t in batches))
        return F.cross_entropy(logits, targets.masked_fill(targets == 0, -100), reduction="sum") / count


@accumulate.misconception("The gradients are right, but you return the loss of the last batch alone.")
def loss_of_the_last(model: Any, batches: Batches) -> Result:
    return Accumulated()(model, batches[-1:])[0], Accumulated()(model, batches)[1]


@accumulate.misconception(
    "The gradients are right, but your loss is the mean of the batches' means. Return the mean over all targets that "
    "count."
)
def loss_is_mean_of_means(model: Any, batches: Batches) -> Result:
    return MeanOfMeans()(model, batches)[0], Accumulated()(model, batches)[1]


@accumulate.misconception("The gradients are right, but your loss is the sum over all targets. Return their mean.")
def loss_is_the_sum(model: Any, batches: Batches) -> Result:
    return NeverDivided()(model, batches)[0], Accumulated()(model, batches)[1]


@accumulate.misconception("Your result includes the gradients that were in `.grad` before.")
def old_gradients(model: Any, batches: Batches) -> Result:
    loss, new = Accumulated()(model, batches)
    for gradient, p in zip(new, model.parameters(), strict=True):
        p.grad = gradient if p.grad is None else p.grad.add_(gradient)
    return loss, [p.grad for p in model.parameters() if p.grad is not None]


@_wrong("If no target counts, you divide by 0. The loss and all gradients should be 0 then.")
class DividesByZero(Accumulated):
    def count(self, batches: Batches) -> int:
        return sum(int((targets >= 0).sum()) for _, targets in batches)


@accumulate.misconception(
    "You weight each batch by its number of texts. Weight it by the number of targets that count."
)
def weighted_by_texts(model: Any, batches: Batches) -> Result:
    found, whole = [torch.zeros_like(p) for p in model.parameters()], 0.0
    texts = sum(len(targets) for _, targets in batches)
    for inputs, targets in batches:
        loss, gradients = Accumulated()(model, [(inputs, targets)])
        whole += loss * len(targets) / texts
        found = [total + gradient * len(targets) / texts for total, gradient in zip(found, gradients, strict=True)]
    return whole, found


@accumulate.misconception(
    "You weight the mean of each batch by all of its targets. Those of −100 do not count: weight it by the others."
)
def weighted_by_all_targets(model: Any, batches: Batches) -> Result:
    found, whole = [torch.zeros_like(p) for p in model.parameters()], 0.0
    tokens = max(1, sum(targets.numel() for _, targets in batches))
    for inputs, targets in batches:
        loss, gradients = Accumulated()(model, [(inputs, targets)])
        weight = targets.numel() / tokens
        whole += loss * weight
        found = [total + gradient * weight for total, gradient in zip(found, gradients, strict=True)]
    return whole, found


@accumulate.misconception("The loss is right, but your gradients are those of the sum: divide them by the same number.")
def gradients_of_the_sum(model: Any, batches: Batches) -> Result:
    return Accumulated()(model, batches)[0], NeverDivided()(model, batches)[1]


@accumulate.misconception(
    "The numbers are right, but several graphs are alive at once. That is the memory you were meant to save. Take the "
    "gradient of a batch before you run the next one."
)
def one_backward(model: Any, batches: Batches) -> Result:
    right = Accumulated()
    losses = [right.loss(model(inputs).flatten(0, 1), targets.flatten(), batches) for inputs, targets in batches]
    parameters = list(model.parameters())
    if not losses:
        return 0.0, [torch.zeros_like(p) for p in parameters]
    whole = torch.stack(losses).sum()
    found = torch.autograd.grad(whole, parameters, allow_unused=True)
    return whole.item(), [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


def _without_unused(model: Any, batches: Batches) -> tuple[float, list[Tensor | None]]:
    """Return the right result, with None for the parameter that is called "unused"."""
    loss, found = Accumulated()(model, batches)
    names = [name for name, _ in model.named_parameters()]
    return loss, [None if name == "unused" else gradient for name, gradient in zip(names, found, strict=True)]


@accumulate.misconception("You return None for a parameter that nothing uses. Return zeros.")
def none_for_unused(model: Any, batches: Batches) -> tuple[float, list[Tensor | None]]:
    return _without_unused(model, batches)


@accumulate.misconception("You leave out parameters that nothing uses. Return zeros for them: one tensor a parameter.")
def unused_left_out(model: Any, batches: Batches) -> tuple[float, list[Tensor | None]]:
    loss, found = _without_unused(model, batches)
    return loss, [gradient for gradient in found if gradient is not None]
