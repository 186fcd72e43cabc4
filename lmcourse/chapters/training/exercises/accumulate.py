"""The exercise on the loss and the gradient of a text that does not fit into memory at once."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.exercises.cases import Case, edge, script
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
GRAPHS = """\
import weakref
graphs, most = [], []
def watch(module, given, output):
    if output.grad_fn is not None:
        mark = lambda *gradients: None
        output.grad_fn.register_hook(mark)
        graphs.append(weakref.ref(mark))
    most.append(sum(each() is not None for each in graphs))
model[1].register_forward_hook(watch)
"""
"""Script that finds how many graphs are alive at the same time: one may still belong to the last loss."""
FOUR = "y = accumulate(model, [(x1, y1), (x2, y2), (x1, y1), (x2, y2)])\nmax(most) <= 2"


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
        _ask("gradients from before", OLD + TWO + "[1]", **A, **SHORT),
        _ask("asked twice", TWO + "[0]\n" + TWO + "[0]", **A, **SHORT),
        _ask("an unused parameter", UNUSED + TWO + "[1]", **A, **B),
        _ask("nothing at all", "accumulate(model, [])"),
        _ask("a batch without targets first", TWO, **none, **B),
        _ask("a single target", "accumulate(model, [(x2, y2)])", **SHORT),
        _ask(
            "what is in memory",
            WATCHED + "y = accumulate(model, [(x1, y1), (x2, y2), (x1, y1)])" + COUNTS,
            **A,
            **SHORT,
        ),
        _ask("old graphs", GRAPHS + FOUR, **A, **SHORT),
        _ask("targets of token 0 alone", TWO, x1=_text([1, 2]), y1=_text([0, 0]), x2=_text([2]), y2=_text([0])),
        *(_drawn(random) for _ in range(3)),
    ]


def _reference(model: Any, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, list[Tensor]]:
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
        _ask("two equal batches: the loss", TWO + "[0]", **A, **B),
        _ask("two equal batches: the gradient", TWO + "[1]", **A, **B),
        _ask("four targets and one: the loss", TWO + "[0]", **A, **SHORT),
        _ask("four targets and one: the gradient", TWO + "[1]", **A, **SHORT),
        _ask("a batch without targets", TWO, **A, **SILENT),
        _ask("no target counts", "accumulate(model, [(x2, y2), (x2, y2)])", **SILENT),
        _ask("a single batch: the loss", "accumulate(model, [(x1, y1)])[0]", **A),
        _ask("the loss is a plain number", "isinstance(" + TWO + "[0], int | float)", **A, **B),
        edge(_ask("a single target", "accumulate(model, [(x2, y2)])", **SHORT)),
        _ask("gradients from before", OLD + TWO + "[1]", **A, **B),
        _ask("one target and four: the gradient", TWO + "[1]", x1=SHORT["x2"], y1=SHORT["y2"], x2=A["x1"], y2=A["y1"]),
        _ask("one batch in memory at a time", WATCHED + "y = " + TWO + COUNTS, **A, **B),
        _ask("four batches, and no old graphs", GRAPHS + FOUR, **A, **B),
        edge(_ask("a parameter that is not used", UNUSED + TWO + "[1]", **A, **B)),
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


accumulate.equivalent_mutant(
    "count = max(1, sum(((targets != -100).sum() for _, targets in batches))) → "
    "count = max(sum(((targets != -100).sum() for _, targets in batches)), 1)",
    "The larger of two numbers does not depend on their order.",
)


@accumulate.variant
def sums_over_the_count(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, list[Tensor]]:
    parameters = list(model.parameters())
    count = max(1, sum(int((targets != -100).sum()) for _, targets in batches))
    whole, total = 0.0, [torch.zeros_like(p) for p in parameters]
    for inputs, targets in batches:
        logits = model(inputs).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), reduction="sum") / count
        whole += loss.item()
        for i, gradient in enumerate(torch.autograd.grad(loss, parameters, allow_unused=True)):
            if gradient is not None:
                total[i] = total[i] + gradient
    return whole, total


@accumulate.variant
def with_backward(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, list[Tensor]]:
    count = sum((targets != -100).sum().item() for _, targets in batches)
    model.zero_grad()
    whole = 0.0
    for inputs, targets in batches:
        logits = model(inputs)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), reduction="sum")
        (loss / max(count, 1)).backward()  # type: ignore[no-untyped-call]
        whole += loss.item() / max(count, 1)
    return whole, [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]


accumulate.slips(
    sums_over_the_count,
    {
        "/ count → / (targets >= 0).sum().clamp(min=1) / len(batches)": "You average the means of the batches: a token "
        "in a batch with few targets counts too much. Weight each mean by its number of targets.",
        ', reduction="sum") / count → ) / len(batches)': "You average the means of the batches, and the mean of a "
        "batch without targets is 0/0. Add up sums instead.",
        "/ count → / (targets >= 0).sum().clamp(min=1)": "You add up the means of the batches: loss and gradient grow "
        "with the number of batches.",
        " / count → ": "You add up the losses of all targets and never divide. The task asks for the mean.",
        "total[i] + gradient → gradient": "Only the gradient of the last batch is left: you clear the gradients "
        "between batches, or overwrite the sum.",
        "/ count → / count / len(batches)": "You divide by the number of batches as well. Divide by the number of "
        "targets only.",
        "int((targets != -100).sum()) → targets.numel()": "Your denominator includes targets of −100. They do not "
        "count.",
        "int((targets != -100).sum()) → targets.numel() ;; targets.flatten() → targets.flatten().clamp(min=0)": "You "
        "turn a target of −100 into token 0 and count it. It does not count at all.",
        "total[i] + gradient → total[i].float() + gradient.float()": "You add up in float32, whatever the parameters "
        "are. Return each gradient in the dtype of its parameter.",
        "targets != -100 → targets > 0 ;; targets.flatten() → torch.where(targets > 0, targets, -100).flatten()": "You "
        "leave out targets that are token 0. It is a token like any other; only −100 does not count.",
        "whole += loss.item() → whole = loss.item() * count / max(1, int((targets != -100).sum()))": "The gradients "
        "are right, but you return the loss of the last batch alone.",
        "whole += loss.item() → whole += loss.item() * count / max(1, int((targets != -100).sum())) / "
        "len(batches)": "The gradients are right, but your loss is the mean of the batches' means. Return the mean "
        "over all targets that count.",
        "whole += loss.item() → whole += loss.item() * count": "The gradients are right, but your loss is the sum over "
        "all targets. Return their mean.",
        "max(1, → (": "If no target counts, you divide by 0. The loss and all gradients should be 0 then.",
        "/ count → / (targets >= 0).sum().clamp(min=1) * len(targets) / sum(len(y) for _, y in batches)": "You weight "
        "each batch by its number of texts. Weight it by the number of targets that count.",
        "/ count → / (targets >= 0).sum().clamp(min=1) * targets.numel() / sum(y.numel() for _, y in batches)": "You "
        "weight the mean of each batch by all of its targets. Those of −100 do not count: weight it by the others.",
        "grad(loss, → grad(loss * count,": "The loss is right, but your gradients are those of the sum: divide them by "
        "the same number.",
        "whole, total = 0.0 → whole, total = torch.zeros((), requires_grad=True) ;; whole += loss.item()\n        for "
        "→ whole = whole + loss\n    for ;; grad(loss → grad(whole ;; return whole → return whole.item()": "The "
        "numbers are right, but several graphs are alive at once. That is the memory you were meant to save. Take the "
        "gradient of a batch before you run the next one.",
        "if gradient is not None:\n                total[i] = total[i] + gradient → total[i] = None if gradient is "
        "None else total[i] + gradient": "You return None for a parameter that nothing uses. Return zeros.",
        "if gradient is not None:\n                total[i] = total[i] + gradient → total[i] = None if gradient is "
        "None else total[i] + gradient ;; return whole, total → return whole, [gradient for gradient in total if "
        "gradient is not None]": "You leave out parameters that nothing uses. Return zeros for them: one tensor a "
        "parameter.",
        "whole += loss.item() → whole += loss.detach()": "Your loss is a tensor. Return a plain number: `loss.item()`.",
        "whole += loss.item() → whole = whole + loss": "You add up the losses with their graphs, so the graphs of "
        "all batches stay alive to the end. Add up numbers: `loss.item()`.",
        "whole += loss.item() → whole = loss.item()": "The gradients are right, but you return the last batch's part "
        "of the loss alone. Add up the parts.",
        ", allow_unused=True → ": "A parameter that nothing uses raises an error in `torch.autograd.grad`. Its "
        "gradient is zeros.",
    },
)


accumulate.slips(
    with_backward,
    {
        "    model.zero_grad()\n →  ;; p.grad.clone() → p.grad": "Your result includes the gradients that were in "
        "`.grad` before."
    },
)
