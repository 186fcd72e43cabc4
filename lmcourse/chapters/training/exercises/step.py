"""The exercise on one step of training, with a loss scaler and clipping."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.training.exercises.right_step import RIGHT_STEPS
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal

BEGIN = """\
import torch
first, last = torch.nn.Embedding.from_pretrained(e.clone(), freeze=False), torch.nn.Linear(2, 3, bias=False)
model = torch.nn.Sequential(first, last)
last.weight.data.copy_(w)
"""
SGD = BEGIN + "optimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n"
ADAM = BEGIN + "optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)\n"
SCALED = "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0, growth_interval=1)\n"
PLAIN = "scaler = torch.amp.GradScaler('cpu', enabled=False)\n"
HUGE = "scaler = torch.amp.GradScaler('cpu', init_scale=2.0**126)\n"
CALL = "train_step(model, x, y, optimizer, scaler, {limit})\n"
LOOK = "first.weight\nlast.weight"


def _weights(random: Random) -> dict[str, Any]:
    return {"e": normal(random, 3, 2), "w": normal(random, 3, 2)}


X, Y = torch.tensor([[0, 1, 2]]), torch.tensor([[1, 2, 0]])
GIVEN: dict[str, Any] = {
    "e": torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]),
    "w": torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.5, 1]]),
}


def _ask(name: str, lines: str, *, limit: float = 100.0, **inputs: Tensor) -> Case:
    return script(name, lines.replace("{limit}", f"{limit}") + LOOK, **{**GIVEN, "x": X, "y": Y, **inputs})


STEEP: dict[str, Any] = {"e": 18 * GIVEN["e"], "w": -18 * GIVEN["w"]}
"""The largest entry of their gradient is 6: times 2¹²⁶ it overflows in fp32, and times 2¹²⁵ it does not."""

STALE = "last.weight.grad = 3 * torch.ones(3, 2)\n"
OVERFLOW = SGD + HUGE + CALL + "scaler.get_scale() < 2.0**126\n"


def _hidden(random: Random) -> list[Case]:
    one: dict[str, Any] = {"x": torch.tensor([[2]]), "y": torch.tensor([[2]])}
    two: dict[str, Any] = {"x": torch.tensor([[0, 1], [2, 2]]), "y": torch.tensor([[1, 1], [0, 2]])}
    return [
        _ask("a limit that binds", SGD + SCALED + CALL + CALL, limit=0.3, **two),
        _ask("a limit that binds", SGD + PLAIN + CALL, limit=0.05, **one),
        _ask("gradients from before", SGD + SCALED + STALE + CALL, limit=0.5),
        _ask("gradients from before", ADAM + PLAIN + STALE + CALL + CALL),
        _ask("Adam", ADAM + SCALED + CALL + CALL + CALL, limit=0.2, **two),
        _ask("an overflow", OVERFLOW, **STEEP, **two),
        _ask("an overflow, then a good step", OVERFLOW + 3 * CALL, limit=0.4, **STEEP),
        _ask("the scale after a good step", SGD + SCALED + CALL + "scaler.get_scale()\n"),
        _ask("the mode of the model", SGD + SCALED + CALL + "model.training\n"),
        _ask("an infinite limit", SGD + SCALED + CALL, limit=1e30, **STEEP),
        *(
            _ask(
                "other steps",
                SGD + SCALED + CALL + CALL,
                limit=random.uniform(0.01, 0.04),
                x=torch.tensor([[random.randrange(3) for _ in range(4)]]),
                y=torch.tensor([random.sample([0, 1, 2, 2], 4)]),
                **_weights(random),
            )
            for _ in range(2)
        ),
    ]


class Step:
    """The right step, a part a method, so that wrong ones can differ in one part."""

    def __call__(self, model: Any, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float) -> Any:
        self.zero(optimizer)
        loss = self.loss(model(inputs), targets)
        self.backward(loss, scaler, optimizer)
        self.bound(model, optimizer, scaler, limit)
        self.finish(optimizer, scaler)
        return self.result(loss, scaler)

    def zero(self, optimizer: Any) -> None:
        """Before the forward pass."""
        optimizer.zero_grad()

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean over all targets."""
        return -logits.log_softmax(-1).gather(-1, targets[..., None]).mean()

    def backward(self, loss: Tensor, scaler: Any, optimizer: Any) -> None:
        """Backpropagate the scaled loss."""
        scaler.scale(loss).backward()

    def bound(self, model: Any, optimizer: Any, scaler: Any, limit: float) -> None:
        """Unscale, then clip."""
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), limit)

    def finish(self, optimizer: Any, scaler: Any) -> None:
        """Step, then update."""
        scaler.step(optimizer)
        scaler.update()

    def result(self, loss: Tensor, scaler: Any) -> Any:
        """Return the result of the step."""
        return loss.item()


def _reference(model: Any, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float) -> float:
    return Step()(model, inputs, targets, optimizer, scaler, limit)  # type: ignore[no-any-return]


train_step = Exercise(
    "train_step",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_reference,
    cases=[
        _ask("fp32, nothing to clip", SGD + PLAIN + CALL),
        _ask("a scaled loss", SGD + SCALED + CALL),
        _ask("a limit that binds", SGD + SCALED + CALL, limit=0.1),
        _ask("two steps", SGD + SCALED + CALL + CALL, limit=0.5),
        _ask("a gradient from before", SGD + PLAIN + STALE + CALL),
        _ask("an overflow", OVERFLOW, **STEEP),
        _ask("the loss keeps no graph", SGD + PLAIN + "getattr(" + CALL.strip() + ", 'requires_grad', False)\n"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Seven things happen, each in a line. Which of them need a gradient, and which gradient: the scaled one?",
        "The limit is meant for the gradient itself: scaler.unscale_(optimizer) comes before clip_grad_norm_.",
        "zero_grad; loss; scaler.scale(loss).backward(); unscale_; clip_grad_norm_; scaler.step(optimizer); update.",
    ],
    tolerance=Tolerance(1e-5, 1e-6),  # torch adds 1e-6 to the norm that it divides by
    seconds=30.0,  # the first optimizer of a process makes torch import its compiler
)

for right_answer in RIGHT_STEPS:
    train_step.variant(right_answer)


def _wrong(sentence: str) -> Callable[[type[Step]], type[Step]]:
    """Register a class whose instances answer wrongly."""

    def register(kind: type[Step]) -> type[Step]:
        def answer(model: Any, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float) -> Any:
            return kind()(model, inputs, targets, optimizer, scaler, limit)

        answer.__name__ = kind.__name__
        train_step.misconception(sentence)(answer)
        return kind

    return register


@_wrong("You clip the *scaled* gradient: the limit then means something else at every scale.")
class ClipsScaled(Step):
    def bound(self, model: Any, optimizer: Any, scaler: Any, limit: float) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        scaler.unscale_(optimizer)


@_wrong("Gradients are added to what is there: clear them, or every step has all earlier ones in it.")
class NeverZeroes(Step):
    def zero(self, optimizer: Any) -> None:
        pass


@_wrong("You clear the gradients after the backward pass: nothing is left to step along.")
class ZeroesTooLate(Step):
    def backward(self, loss: Tensor, scaler: Any, optimizer: Any) -> None:
        scaler.scale(loss).backward()
        optimizer.zero_grad(set_to_none=False)


@_wrong(
    "The limit has no effect in yours. Before the step, a gradient whose norm is above it is scaled down to that norm."
)
class NeverClips(Step):
    def bound(self, model: Any, optimizer: Any, scaler: Any, limit: float) -> None:
        scaler.unscale_(optimizer)


@_wrong("You clip each entry by itself, which turns the gradient. Scale it down as a whole: clip_grad_norm_.")
class ClipsEntries(Step):
    def bound(self, model: Any, optimizer: Any, scaler: Any, limit: float) -> None:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_value_(model.parameters(), limit)


@_wrong("You step along the scaled gradient, past the scaler, which would have divided it.")
class StepsScaled(Step):
    def bound(self, model: Any, optimizer: Any, scaler: Any, limit: float) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), limit * scaler.get_scale())

    def finish(self, optimizer: Any, scaler: Any) -> None:
        optimizer.step()


@_wrong(
    "After an overflow you step all the same: `optimizer.step()` does not know of it, `scaler.step(optimizer)` does."
)
class StepsAfterOverflow(Step):
    def finish(self, optimizer: Any, scaler: Any) -> None:
        optimizer.step()
        scaler.update()


@_wrong(
    "The scaler is updated before the step: it forgets that it has divided already, and `scaler.step` does it again."
)
class UpdatesFirst(Step):
    def finish(self, optimizer: Any, scaler: Any) -> None:
        scaler.update()
        scaler.step(optimizer)


@_wrong("The scaler is never updated: after an overflow the scale stays too large, for ever.")
class NeverUpdates(Step):
    def finish(self, optimizer: Any, scaler: Any) -> None:
        scaler.step(optimizer)


@_wrong("You return the scaled loss. Nobody wants to plot that.")
class ReturnsScaled(Step):
    def result(self, loss: Tensor, scaler: Any) -> Any:
        return scaler.scale(loss).item()


@_wrong(
    "The loss that you return has its graph: a list of such losses keeps the activations of every step. Take `.item()`."
)
class ReturnsGraph(Step):
    def result(self, loss: Tensor, scaler: Any) -> Any:
        return loss


@_wrong("You sum over the targets: the rate would have to change with the batch. Take the mean.")
class SumsTargets(Step):
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
