"""The exercise on attention in tensor parallelism."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64


def head_by_head(worker: CollectiveWorker, x: Tensor, qkv: Tensor, out: Tensor, heads: int) -> Tensor:
    width = out.shape[1] // heads
    mask = torch.ones(len(x), len(x)).tril().bool()
    total = torch.zeros_like(x)
    for head in range(heads):
        rows = slice(head * width, (head + 1) * width)
        q, k, v = (x @ matrix[rows].T for matrix in qkv.split(heads * width))  # type: ignore[no-untyped-call]
        scores = (q @ k.T / width**0.5).masked_fill(~mask, -torch.inf)
        total += torch.softmax(scores, -1) @ v @ out[:, rows].T
    return worker.all_reduce(total)


def _ask(name: str, random: Random, workers: int, t: int, d: int, heads: int, d_head: int, *also: str) -> Case:
    """A case in which each worker has `heads` heads. It looks at the results, and at `also`."""
    x = normal64(random, t, d)
    shares = [normal64(random, 3 * heads * d_head, d) for _ in range(workers)]
    outs = [normal64(random, d, heads * d_head) for _ in range(workers)]
    call = f"tensor_parallel_attention, [x] * len(qkvs), qkvs, outs, [{heads}] * len(qkvs), collectives=True"
    return ask(name, call, "run.results", *also, x=x, qkvs=shares, outs=outs)


SENT = ("run.collectives", "run.sent")


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("one worker", fixed, 1, 3, 4, 2, 2, *SENT),
        _ask("more workers", fixed, 4, 3, 4, 1, 1, *SENT),
        _ask("one token", fixed, 2, 1, 4, 2, 3),
        _ask("wide heads", fixed, 2, 3, 3, 1, 9, *SENT),
        _ask("many heads", fixed, 2, 4, 5, 4, 2),
        _ask("other shapes", random, 3, random.randint(2, 5), random.randint(5, 7), 2, random.randint(2, 4)),
    ]


tensor_parallel_attention = Exercise(
    "tensor_parallel_attention",
    points=3,
    minutes=9,
    difficulty=2,
    reference=head_by_head,
    cases=[
        _ask("two workers, a head each", Random(1), 2, 3, 4, 1, 2),
        _ask("two workers, two heads each", Random(2), 2, 3, 8, 2, 2, "run.changed"),
        _ask("three workers, two heads each", Random(3), 3, 4, 6, 2, 3, *SENT),
    ],
    hidden_cases=_hidden,
    hints=[
        "Heads are independent: a worker computes its own heads with its own queries, keys and values, as if there "
        "were no others.",
        "x @ qkv.T is (t, 3 · heads · d_head): queries of all its heads, then keys, then values. d_head follows from "
        "its width and from `heads`.",
        "`out` was cut along its inputs. Each worker's heads @ out.T is (t, d), and one all_reduce adds them.",
    ],
    may_use_package=True,
)
tensor_parallel_attention.variant(head_by_head)


SWAPPED = "The same two axes are swapped, named in the other order."
tensor_parallel_attention.equivalent_mutant(
    "q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in (x @ qkv.T).chunk(3, dim=1)) → "
    "q, k, v = (part.unflatten(1, (heads, -1)).transpose(1, 0) for part in (x @ qkv.T).chunk(3, dim=1))",
    SWAPPED,
)
tensor_parallel_attention.equivalent_mutant(
    "return worker.all_reduce(mixed.transpose(0, 1).flatten(1) @ out.T) → "
    "return worker.all_reduce(mixed.transpose(1, 0).flatten(1) @ out.T)",
    SWAPPED,
)


@tensor_parallel_attention.variant
def all_heads_at_once(worker: CollectiveWorker, x: Tensor, qkv: Tensor, out: Tensor, heads: int) -> Tensor:
    q, k, v = (part.reshape(len(x), heads, -1).transpose(0, 1) for part in (x @ qkv.T).chunk(3, dim=1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hidden = torch.ones(len(x), len(x)).triu(1).bool()
    mixed = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
    part = mixed.transpose(0, 1).flatten(1) @ out.T
    return worker.all_reduce(part)


tensor_parallel_attention.slips(
    all_heads_at_once,
    {
        "all_reduce(part) → all_gather(part, 1)": "You put the workers' results side by side. Add them: `out` was cut "
        "along its inputs, so each result has the full width.",
        "worker.all_reduce(part) → part": "Your result has only this worker's own heads.",
        "mixed.transpose(0, 1).flatten(1) → worker.all_reduce(mixed.transpose(0, 1).flatten(1)) ;; "
        "worker.all_reduce(part) → part": "You add the heads' results before the output matrix, but workers have "
        "different heads. Multiply by your part of `out` first, then add.",
        "q.shape[-1] → x.shape[1]": "You scale by the width of the residual stream. Scale by the width of a head, "
        "however many workers there are.",
        " / q.shape[-1] ** 0.5 → ": "Your scores are not divided by √d_head.",
        "(len(x), heads, -1) → (len(x), 1, -1)": "You treat all of a worker's features as one head. The worker has "
        "`heads` heads.",
        "(len(x), heads, -1).transpose(0, 1) → (len(x), -1, heads).permute(2, 0, 1) ;; mixed.transpose(0, 1) → "
        "mixed.permute(1, 2, 0)": "You cut the rows into d_head groups of `heads`. A head has d_head rows that follow "
        "each other: (3, heads, d_head).",
        ".transpose(0, 1) for →  for ;; torch.ones(len(x), len(x)) → torch.ones(heads, heads) ;; mixed.transpose(0, 1) "
        "→ mixed": "Your heads attend to each other, within each token. Tokens attend to tokens: move the heads "
        "before the tokens.",
        "scores.masked_fill(hidden, -torch.inf) → scores": "Tokens see their future: the mask is missing.",
        "part.reshape(len(x), heads, -1).transpose(0, 1) → part.transpose(0, 1) ;; .chunk(3, dim=1) → .reshape(len(x), "
        "heads, 3, -1).unbind(2)": "You read `qkv` as query, key and value of one head after the other. It holds all "
        "queries, then all keys, then all values.",
        "all_reduce(part) → all_reduce(part) / worker.size": "You divide the sum by the number of workers. Only add "
        "the parts.",
        "q, k, v = → qkv = torch.cat([worker.all_gather(rows) for rows in qkv.chunk(3)])\n    out, heads = "
        "worker.all_gather(out, 1), heads * worker.size\n    q, k, v = ;; worker.all_reduce(part) → part": "The "
        "result is right, but you gather whole matrices, and every worker computes all heads.",
        "mixed.transpose(0, 1).flatten(1) → mixed.reshape(len(x), -1)": "Features of different heads are mixed when "
        "you put them side by side: go back to (t, heads, d_head) first.",
        "q, k, v = → q, v, k =": "You swapped keys and values. The rows are queries, keys, values.",
        "triu(1) → triu() ;; .softmax(-1) → .softmax(-1).nan_to_num(0.0)": "Your mask hides a token from itself. It "
        "sees itself and the tokens before it.",
        "mixed.transpose(0, 1).flatten(1) @ out.T → worker.all_gather(mixed.transpose(0, 1).flatten(1), 1) @ "
        "worker.all_gather(out, 1).T ;; worker.all_reduce(part) → part": "The result is right, but you gather all "
        "heads and the whole output matrix. Multiply your heads by your part of `out`: one all-reduce adds the "
        "results.",
        "mixed.transpose(0, 1).flatten(1) @ → worker.all_gather(mixed.transpose(0, 1).flatten(1), "
        "1).split(out.shape[1], 1)[worker.rank] @": "The result is right, but you gather the heads of all workers, and "
        "then use only your own. One all-reduce is enough.",
        "all_reduce(part) → all_gather(part)": "You put the workers' results below each other. Add them: each has all "
        "tokens already.",
        "all_reduce(part) → reduce_scatter(part)": "After your reduce-scatter each worker has some tokens of the sum. "
        "Every worker returns all tokens: all-reduce.",
        "worker.all_reduce(part) → worker.all_reduce(worker.all_reduce(part))": "You add the parts up twice, so the "
        "result is too large by the number of workers.",
        "q.shape[-1] ** 0.5 → q.shape[-1]": "You divide the scores by d_head. Divide them by √d_head.",
        "q.shape[-1] → out.shape[1]": "You scale by the width of all heads of this worker. Scale by the width of one "
        "head.",
        "(len(x), heads, -1).transpose(0, 1) → (len(x), -1, heads).permute(2, 0, 1)": "A head of yours takes every "
        "`heads`-th feature of q, k and v. Its d_head features follow each other: (t, heads, d_head).",
        "part.reshape(len(x), heads, -1).transpose(0, 1) → part.reshape(heads, len(x), -1)": "Your reshape to (heads, "
        "t, d_head) mixes tokens with features. First cut the features, (t, heads, d_head), then move the heads to the "
        "front.",
        "q, k, v = → k, q, v =": "You swapped queries and keys. The rows are queries, keys, values.",
        "triu(1) → triu(2)": "Your mask is off by one: each token also sees the next one. It sees itself and the "
        "tokens before it.",
        "triu(1) → tril(-1)": "Your mask is upside down: tokens see themselves and the future. A token sees itself and "
        "the tokens before it.",
        "triu(1) → triu() ;; -torch.inf → -1e9": "Your mask hides a token from itself. It sees itself and the tokens "
        "before it.",
        "-torch.inf → 0.0": "You set hidden scores to 0, but exp(0) is 1: hidden keys keep a weight. Set them to −∞.",
        "scores.masked_fill(hidden, -torch.inf).softmax(-1) → scores.softmax(-1).masked_fill(hidden, "
        "0.0)": "You mask after the softmax, so the weights that are left no longer add up to 1. Mask the scores.",
        "softmax(-1) → softmax(-2)": "Your softmax runs over queries. Each query divides its attention among keys: the "
        "last axis.",
        "softmax(-1) → softmax(0)": "Your softmax runs over the heads. Each query divides its attention among keys: "
        "the last axis.",
        "softmax(-1) → softmax(0) ;; -torch.inf → -1e9": "Your softmax runs over the heads. Each query divides its "
        "attention among keys: the last axis.",
    },
)
