"""The exercise on a feed-forward layer in tensor parallelism, forward and backward."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def with_the_slope(worker: CollectiveWorker, x: Tensor, up: Tensor, down: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    h = x @ up.T
    below = (1 + torch.erf(h / 2**0.5)) / 2
    slope = below + h * torch.exp(-h * h / 2) / (2 * math.pi) ** 0.5
    y = (h * below) @ down.T
    dx = (dy @ down * slope) @ up
    return worker.all_reduce(y), worker.all_reduce(dx)


CALL = "tensor_parallel_ffn, [x] * len(ups), ups, downs, [dy] * len(ups), collectives=True"


def _ask(name: str, x: Tensor, up: Tensor, down: Tensor, dy: Tensor, workers: int) -> list[Case]:
    """A case for y, with a limit for the bytes, and one for dL/dx."""
    inputs = {"x": x, "ups": list(up.chunk(workers)), "downs": list(down.chunk(workers, dim=1)), "dy": dy}
    limit = 2 * 2 * (workers - 1) * x.numel() * x.element_size()
    return [
        ask(f"{name}: y", CALL, "[y for y, _ in run.results]", f"sum(run.sent) <= {limit}", **inputs),
        ask(f"{name}: dL/dx", CALL, "[dx for _, dx in run.results]", **inputs),
    ]


def _drawn(name: str, random: Random, workers: int, t: int, d: int, f: int, scale: float = 1.0) -> list[Case]:
    x, up = normal64(random, t, d, scale=scale), normal64(random, f, d)
    return _ask(name, x, up, normal64(random, d, f), normal64(random, t, d), workers)


def _t(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


SMALL = {"x": _t((1.0,)), "ups": [_t((2.0,)), _t((-1.0,))], "downs": [_t((3.0,)), _t((1.0,))], "dy": _t((2.0,))}


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        *_drawn("one worker", fixed, 1, 3, 2, 4),
        *_drawn("more workers", fixed, 4, 3, 4, 8),
        *_drawn("one token", fixed, 2, 1, 3, 4),
        *_drawn("one hidden feature each", fixed, 3, 2, 4, 3),
        *_drawn("fewer hidden features than inputs", fixed, 2, 3, 5, 2),
        *_drawn("large numbers", fixed, 2, 2, 3, 4, 30.0),
        *_drawn("other shapes", random, 2, random.randint(2, 4), random.randint(2, 5), 10),
    ]


tensor_parallel_ffn = Exercise(
    "tensor_parallel_ffn",
    points=4,
    minutes=9,
    difficulty=3,
    reference=with_the_slope,
    cases=[
        *_ask(
            "two workers, by hand",
            _t((10.0, -10.0)),
            _t((1.0, 0.0), (0.0, 1.0), (2.0, 1.0), (1.0, 2.0)),
            _t((1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)),
            _t((1.0, 0.0)),
            2,
        ),
        *_drawn("two workers, two tokens", Random(1), 2, 2, 2, 8),
        *_drawn("three workers", Random(2), 3, 2, 4, 6),
        ask("x and dy stay as they are", CALL, "run.changed", **SMALL),
    ],
    hidden_cases=_hidden,
    hints=[
        "What this worker computes alone is the whole layer with fewer hidden features: F.gelu(x @ up.T) @ down.T. How "
        "do the parts of all workers combine?",
        "Backward: L depends on x through *every* worker's hidden features. By the chain rule dL/dx is a sum "
        "over them.",
        "Let autograd do a worker's part: x.detach().requires_grad_(), compute, torch.autograd.grad(part, x, dy). The "
        "gradient of a sum with respect to one of its parts is just dy.",
    ],
    may_use_package=True,
)
tensor_parallel_ffn.variant(with_the_slope)


tensor_parallel_ffn.slips(
    with_the_slope,
    {
        "all_reduce(y) → all_gather(y, 1)": "You put the workers' results side by side. Each has the full width "
        "already: *add* them.",
        "worker.all_reduce(y), worker.all_reduce(dx) → y, dx": "You return this worker's own parts. The parts of the "
        "other workers are missing.",
        "x @ up.T → worker.all_reduce(x @ up.T) ;; worker.all_reduce(y) → y": "You add before GELU. Each worker has "
        "different hidden features, and they are complete: there is nothing to add.",
        "worker.all_reduce(dx) → torch.autograd.grad(worker.all_reduce(y), x, dy)[0] ;; h = → x = "
        "x.detach().requires_grad_()\n    h =": "You ask autograd for a gradient through an all-reduce, but messages "
        "carry no graph. Let it go back through this worker's part, with dy, and add up what it finds.",
        "dy @ down → worker.all_reduce(dy @ down) ;; worker.all_reduce(dx) → dx": "You add up the gradients of hidden "
        "features, which differ from worker to worker. The gradient of x is what all have a part of: add up dL/dx.",
        "worker.all_reduce(y), worker.all_reduce(dx) → worker.all_gather(y[None]).sum(0), "
        "worker.all_gather(dx[None]).sum(0)": "The result is right, but you gather all parts and add them up on every "
        "worker. An all-reduce sends 2 (N − 1)/N tensors in the place of N − 1.",
        "worker.all_reduce(dx) → dx": "Your dL/dx has this worker's part only. All workers read x, so each has a part "
        "of its gradient: add the parts.",
        "worker.all_reduce(y) → worker.all_reduce(worker.all_reduce(y))": "You sum y a second time, so it is too "
        "large by the number of workers.",
        "h = → up, down = worker.all_gather(up), worker.all_gather(down, 1)\n    h = ;; worker.all_reduce(y), "
        "worker.all_reduce(dx) → y, dx": "The result is right, but you gather whole matrices. Let each worker compute "
        "with its part, and add the results: d numbers a token.",
        "all_reduce(y) → all_reduce(y) / worker.size ;; all_reduce(dx) → all_reduce(dx) / worker.size": "You average "
        "the parts over the workers. Add them.",
        "all_reduce(dx) → all_reduce(dx) / worker.size": "You divide dL/dx or dy by the number of workers. Each "
        "worker has a part of dL/dx, not a copy: add the parts.",
        "all_reduce(dx) → all_reduce(dx) * worker.size": "Your dL/dx is `worker.size` times too large, as if you "
        "added up dy, or dL/dx twice. Every worker has the whole dy already.",
        "dy @ down → worker.all_reduce(dy) @ down ;; worker.all_reduce(dx) → dx": "You add up dy, which all workers "
        "have already, and leave dL/dx as it is. dL/dx is what has to be added up.",
        "* slope → * (h * below)": "You multiply the gradient by GELU(h). Multiply it by the derivative of GELU at h.",
        "* slope → * below": "Your derivative of GELU is Φ(h) alone. h · Φ(h) is a product: the second term is h "
        "times the normal density.",
        "(h * below) → h ;;  * slope → ": "y has no GELU in it.",
        "(h * below) → h.relu() ;; * slope → * (h > 0)": "Your activation is ReLU. The task says GELU.",
        " * slope → ": "The gradient passes your GELU unchanged. Multiply it by the derivative of GELU.",
        "dy @ down → torch.ones_like(dy) @ down": "Your second result is the gradient of sum(y). The loss has the "
        "gradient dy at y: pass it to autograd.",
        "worker.all_reduce(y) → y": "dL/dx is right. y has this worker's part only: it needs an all-reduce, too.",
        "x @ up.T → worker.all_reduce(x @ up.T @ down.T) ;; (h * below) @ down.T → h * below ;; (dy @ down * slope) → "
        "(dy * slope) @ down ;; worker.all_reduce(y) → y": "Your GELU comes after the second matrix and the sum. It "
        "belongs between the matrices, on each worker's features.",
        "worker.all_reduce(y), worker.all_reduce(dx) → worker.all_reduce(dx), worker.all_reduce(y)": "You return the "
        "two results in the wrong order. Return y first, then dL/dx.",
        "all_reduce(y) → all_gather(y)": "You put the workers' results below each other. Each has all tokens already: "
        "*add* them.",
        "all_reduce(y) → all_gather(y) ;; all_reduce(dx) → all_gather(dx)": "You put the workers' parts of y and of "
        "dL/dx below each other. Each has the whole shape already: *add* them.",
        "all_reduce(y) → all_gather(y, 1) ;; all_reduce(dx) → all_gather(dx, 1)": "You put the workers' parts of y and "
        "of dL/dx side by side. Each has the full width already: *add* them.",
        "all_reduce(y) → reduce_scatter(y) ;; all_reduce(dx) → reduce_scatter(dx)": "After your reduce-scatters each "
        "worker has some tokens of the sums. Every worker returns all tokens: all-reduce.",
        "y = (h * below) @ down.T → y = F.gelu(worker.all_reduce(h)) @ down.T ;; worker.all_reduce(y) → y": "You add h "
        "over the workers before GELU. Each worker has different hidden features, and they are complete: add y.",
        "(h * below) → F.silu(h) ;; * slope → * torch.sigmoid(h) * (1 + h * (1 - torch.sigmoid(h)))": "Your activation "
        "is SiLU. The task says GELU.",
        "worker.all_reduce(dx) → worker.all_reduce(worker.all_reduce(dx))": "Your dL/dx is `worker.size` times too "
        "large: you added it up twice, or dy as well. Every worker has the whole dy already.",
        "worker.all_reduce(y) → worker.all_reduce(y) + x": "You add x to y. The layer has no residual connection here: "
        "y = GELU(x Uᵀ) Dᵀ.",
        "below + h * torch.exp(-h * h / 2) / (2 * math.pi) ** 0.5 → h * torch.exp(-h * h / 2) / (2 * math.pi) ** "
        "0.5": "Your derivative of GELU lacks Φ(h). h · Φ(h) is a product: its derivative has two terms.",
        "all_reduce(y) → all_reduce(y) / worker.size": "You average the parts of y over the workers. Add them.",
        "(dy @ down * slope) @ up → dy * ((torch.ones_like(dy) @ down * slope) @ up)": "You multiply the gradient of "
        "sum(y) by dy. Each feature of y has its own gradient: pass dy to autograd.",
        '(h * below) → F.gelu(h, approximate="tanh") ;; * slope → * torch.autograd.functional.vjp(lambda z: F.gelu(z, '
        'approximate="tanh").sum(), h)[1]': "Your GELU is the approximation by tanh. The task asks for the exact one.",
    },
)
