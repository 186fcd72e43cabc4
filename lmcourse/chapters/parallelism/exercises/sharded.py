"""The exercise on a step of a sharded optimizer, the idea of ZeRO."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask, whole_numbers
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers

Step = tuple[Tensor, Tensor]


def _step(
    worker: CollectiveWorker, weights: Tensor, gradient: Tensor, momentum: Tensor, rate: float, beta: float
) -> Step:
    """Compute the step with the worker's own reduce-scatter and all-gather, picking its weights index by index."""
    mine = [i for i in range(len(weights)) if i * worker.size // len(weights) == worker.rank]
    summed = worker.reduce_scatter(gradient)
    velocity = momentum * beta + summed
    return worker.all_gather(weights[mine] - velocity * rate), velocity


ARGUMENTS = "sharded_step, {}, {}, {}, [{rate}] * {n}, [{beta}] * {n}, collectives=True"


def _ask(name: str, random: Random, workers: int, share: int, rate: float, beta: float, momentum: bool = True) -> Case:
    weights = integers(random, workers * share, low=-9, high=9, dtype=torch.float64)
    gradients = whole_numbers(random, workers, workers * share)
    call = ARGUMENTS.format("[w] * len(gs)", "gs", "ms", rate=rate, beta=beta, n=workers)
    ms = whole_numbers(random, workers, share) if momentum else [torch.zeros(share).double()] * workers
    return ask(name, call, "run.results", "run.sent", "run.changed", w=weights, gs=gradients, ms=ms)


def _twice(name: str, random: Random, workers: int, share: int) -> Case:
    weights = integers(random, workers * share, low=-9, high=9, dtype=torch.float64)
    first, second = (whole_numbers(random, workers, workers * share) for _ in range(2))
    numbers = {"rate": 0.25, "beta": 0.5, "n": workers}
    ms = [torch.zeros(share).double()] * workers
    again = ARGUMENTS.format("[r[0] for r in run.results]", "hs", "[r[1] for r in run.results]", **numbers)
    call = ARGUMENTS.format("[w] * len(gs)", "gs", "ms", **numbers)
    return ask(name, call, f"simulate({again}).results", w=weights, gs=first, hs=second, ms=ms)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("more workers", fixed, 4, 2, 0.5, 0.75),
        _ask("one worker", fixed, 1, 3, 0.5, 0.5),
        _ask("one weight each", fixed, 3, 1, 0.25, 0.5),
        _ask("a rate of zero", fixed, 2, 2, 0.0, 0.5),
        _twice("two steps", fixed, 3, 2),
        _ask("other numbers", random, 3, random.randint(2, 4), 0.125, 0.9),
    ]


sharded_step = Exercise(
    "sharded_step",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_step,
    cases=[
        _ask("two workers, the first step", Random(1), 2, 2, 0.5, 0.5, momentum=False),
        _ask("two workers, with momentum", Random(2), 2, 2, 0.25, 0.5),
        _ask("three workers", Random(3), 3, 2, 0.5, 0.25),
        _twice("two steps", Random(4), 2, 3),
        _ask("no momentum", Random(5), 2, 3, 0.5, 0.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Which collective gives this worker the sum of all gradients, but only for its own part of the weights?",
        "With this part of the gradient: momentum ← beta · momentum + gradient, and the same part of the weights takes "
        "a step of rate · momentum.",
        "weights.chunk(worker.size)[worker.rank] is this worker's part. After the step join all parts again: "
        "all_gather.",
    ],
    may_use_package=True,
)


@sharded_step.variant
def with_chunks(
    worker: CollectiveWorker, weights: Tensor, gradient: Tensor, momentum: Tensor, rate: float, beta: float
) -> tuple[Tensor, Tensor]:
    share = weights.chunk(worker.size)[worker.rank]
    summed = worker.reduce_scatter(gradient)
    velocity = beta * momentum + summed
    return worker.all_gather(share - rate * velocity), velocity


sharded_step.slips(
    with_chunks,
    {
        "worker.reduce_scatter(gradient) → gradient.chunk(worker.size)[worker.rank]": "Each worker steps along its "
        "own gradient, and the copies drift apart. First sum the gradients of all workers.",
        "worker.reduce_scatter(gradient) → worker.all_reduce(gradient).chunk(worker.size)[worker.rank]": "The result "
        "is right, but you send more than a reduce-scatter and an all-gather do. An all-reduce gives each worker the "
        "whole sum, and you use a part of it.",
        "velocity), velocity → velocity), worker.all_gather(velocity)": "You return the whole momentum. Each worker "
        "keeps only its *part*: that saves the memory.",
        "return worker.all_gather(share - rate * velocity), velocity → weights = weights.clone()"
        "\n    weights.chunk(worker.size)[worker.rank].sub_(rate * velocity)\n    return weights, velocity": "Each "
        "worker of yours has new weights in its own part, and old ones elsewhere. Gather the parts.",
        "reduce_scatter(gradient) → reduce_scatter(gradient / worker.size)": "You average the gradients. The task "
        "asks for their sum.",
        "weights.chunk(worker.size)[worker.rank] → weights[: len(momentum)]": "Each worker updates the first part of "
        "the weights. Part r belongs to rank r.",
        "+ summed → + rate * summed ;; share - rate * velocity → share - velocity": "The rate is in your momentum. "
        "The momentum is beta · momentum + gradient; multiply by the rate in the step of the weights.",
        "+ summed → + (1 - beta) * summed": "You multiply the gradient by 1 − beta. Add it unscaled, as torch's SGD "
        "does.",
        "share - rate → share + rate": "You add the step to the weights. Subtract it.",
        "rate * velocity → rate * momentum": "You step along the old momentum. First update it, then take the step "
        "along the new one.",
        "rate * velocity → rate * (summed + beta * velocity)": "You step along gradient + beta · momentum, as "
        "Nesterov does. The task steps along momentum.",
        "beta * momentum + summed → momentum.mul_(beta).add_(summed)": "You change an input in place (`mul_`, `sub_` "
        "or `+=`). torch's optimizers do that; here compute a new tensor.",
    },
)
