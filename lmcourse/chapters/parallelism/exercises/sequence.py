"""The exercise on sequence parallelism: half a block whose tokens are divided outside of its two matrices."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def _block(worker: CollectiveWorker, x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    normed = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return x + worker.reduce_scatter(F.gelu(worker.all_gather(normed) @ up.T) @ down.T)


def _ask(name: str, random: Random, workers: int, t: int, d: int, f: int, scale: float = 1.0) -> Case:
    """A case in which each worker has `t` tokens and `f` features."""
    xs = [normal64(random, t, d, scale=scale) for _ in range(workers)]
    ups, downs = ([normal64(random, *shape) for _ in range(workers)] for shape in ((f, d), (d, f)))
    call = "sequence_parallel_ffn, xs, ups, downs, collectives=True"
    looked_at = ("run.results", "run.collectives", "run.sent", "run.changed")
    return ask(name, call, *looked_at, xs=xs, ups=ups, downs=downs)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("one worker", fixed, 1, 3, 2, 4),
        _ask("more workers", fixed, 4, 2, 4, 3),
        _ask("one token each", fixed, 3, 1, 3, 2),
        _ask("one feature each", fixed, 2, 2, 3, 1),
        _ask("small numbers, where ε counts", fixed, 2, 2, 3, 4, 1e-3),
        _ask("zeros", fixed, 2, 2, 2, 2, 0.0),
        _ask("other shapes", random, random.randint(2, 3), random.randint(2, 4), random.randint(2, 5), 3),
    ]


sequence_parallel_ffn = Exercise(
    "sequence_parallel_ffn",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_block,
    cases=[
        _ask("two workers, a token each", Random(1), 2, 1, 2, 2),
        _ask("two workers, two tokens each", Random(2), 2, 2, 4, 3),
        _ask("three workers", Random(3), 3, 2, 2, 2),
        _ask("small numbers", Random(4), 2, 2, 2, 2, 0.002),
    ],
    hidden_cases=_hidden,
    hints=[
        "Norm and addition work on one token at a time: they need no messages. The matrices need all tokens, because "
        "no other worker has this worker's features.",
        "Gather the normalized tokens. The second matrix gives a part of *all* tokens. Sum the parts over the workers; "
        "you need your own rows of the sum.",
        "x + worker.reduce_scatter(…): the sum and the split are one collective.",
    ],
    may_use_package=True,
)


@sequence_parallel_ffn.variant
def in_one_line(worker: CollectiveWorker, x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return x + worker.reduce_scatter(F.gelu(worker.all_gather(F.rms_norm(x, x.shape[1:], eps=1e-6)) @ up.mT) @ down.mT)


@sequence_parallel_ffn.variant
def the_stream_goes_along(worker: CollectiveWorker, x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    n = x.shape[0]
    tokens = worker.all_gather(x / (x * x).mean(1, keepdim=True).add(1e-6).sqrt())
    part = torch.zeros_like(tokens)
    for feature in range(len(up)):
        part += torch.outer(F.gelu(tokens @ up[feature]), down[:, feature])
    part[worker.rank * n : (worker.rank + 1) * n] += x  # the worker that has a token adds its stream
    return worker.reduce_scatter(part)


@sequence_parallel_ffn.variant
def step_by_step(worker: CollectiveWorker, x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    read = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    hidden = F.gelu(worker.all_gather(read) @ up.T)
    part = hidden @ down.T
    return x + worker.reduce_scatter(part)


sequence_parallel_ffn.slips(
    step_by_step,
    {
        "worker.reduce_scatter(part) → worker.all_reduce(part).chunk(worker.size)[worker.rank]": "The result is "
        "right, but an all-reduce sends all tokens to each worker, and you keep your own. Send only those.",
        "worker.all_gather(read) → read ;; reduce_scatter → all_reduce": "Your tokens meet this worker's features "
        "only, and you add them to other workers' tokens. Gather them first.",
        "worker.reduce_scatter(part) → part.chunk(worker.size)[worker.rank]": "Your result has only this worker's "
        "features. Add the results of the other workers.",
        "return x → return worker.size * x": "You add all of x before the sum over the workers, so it is in the "
        "result once for each worker. Add it after the sum.",
        "mean(-1, keepdim=True) → mean()": "You take one mean of squares for all tokens. The norm looks at one token "
        "at a time: a mean for each row.",
        "return x + → return": "x is missing: this half block returns x *plus* the layer.",
        "mean(-1 → sum(-1": "You divide by the length of the token, the root of the *sum* of squares. N(x) has the "
        "root of their mean.",
        '@ up.T → @ up.T, approximate="tanh"': "Your GELU is the approximation by tanh. Exercise 5 has the exact one.",
        "all_gather(read) → all_gather(x)": "Your matrices read x itself. They read the normalized x.",
        "return x → return read": "You add to the *normalized* x. Only the matrices read it; add to x itself.",
        "x + worker.reduce_scatter(part) → worker.all_gather(x + worker.reduce_scatter(part))": "You return all "
        "tokens. Each worker keeps its own: that is what saves the memory.",
        " + 1e-6 → ": "Your norm has no ε under its root.",
        " + 1e-6).sqrt() → .sqrt() + 1e-6)": "Your ε is outside the root. It belongs inside, added to the mean of the "
        "squares.",
        "mean(-1 → mean(0": "Your norm is taken over the tokens. Each token has its own, over its features.",
        "return x + worker.reduce_scatter(part) → x += worker.reduce_scatter(part)\n    return x": "You change x in "
        "place: it now holds other numbers. Write x + …, not x += ….",
    },
)
