"""The exercise on a custom operation in PyTorch: a cross-entropy that never holds all its logits."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


class _ByTorch:
    """Torch's own loss, chunk by chunk; its backward pass computes each chunk again."""

    @staticmethod
    def apply(h: Tensor, W: Tensor, y: Tensor, rows: int) -> Tensor:
        parts = zip(torch.split(h, rows), torch.split(y, rows), strict=True)
        return sum((checkpoint(_part, *part, W, use_reentrant=False) for part in parts), h.new_zeros(())) / len(y)


def _part(h: Tensor, y: Tensor, W: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(h @ W.T, y, reduction="sum")


def _inputs(random: Random, n: int, d: int, v: int, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    h, W = normal(random, n, d, dtype=dtype), normal(random, v, d, dtype=dtype)
    return {"h": h, "W": W, "y": torch.tensor([random.randrange(v) for _ in range(n)])}


_CALL = (
    "h, W = h.clone().requires_grad_(), W.clone().requires_grad_()\nloss = ChunkedCrossEntropy.apply(h, W, y, {rows})"
)


def _loss(name: str, rows: int, inputs: dict[str, Any], outside: str = "loss") -> Case:
    """A case that asks for the loss, and for the gradients of an expression of it."""
    lines = f"import torch\n{_CALL.format(rows=rows)}\nloss\nlist(torch.autograd.grad({outside}, [h, W]))"
    return script(name, lines, **inputs)


_MEMORY = f"""
from lmcourse.accounting.live import live_bytes
{_CALL.format(rows=8)}
from lmcourse.exercises.work import largest_tensor
step = lambda: ChunkedCrossEntropy.apply(h, W, y, 8).backward()
largest_tensor(step) < len(y) * len(W) / 2
live_bytes(step).peak < 8 * len(y) * len(W) / 2
"""
_KEPT = f"""
from lmcourse.accounting.saved import saved_tensors  # in the notebook
{_CALL.format(rows=8)}
saved_tensors(lambda: ChunkedCrossEntropy.apply(h, W, y, 8), without=[W]).total <= 8 * (h.numel() + 5 * len(y))
"""


def _frozen(name: str, random: Random, which: str) -> Case:
    other = "W" if which == "h" else "h"
    lines = f"import torch\n{which} = {which}.clone().requires_grad_()\n"
    lines += f"loss = ChunkedCrossEntropy.apply(h, W, y, 2)\n*torch.autograd.grad(loss, [{which}]), {other}.grad"
    return script(name, lines, **_inputs(random, 5, 3, 4))


def _far() -> dict[str, Any]:
    h = torch.tensor([[1000.0, 0.0], [0.0, -1000.0], [500.0, 500.0]], dtype=torch.float64)
    W = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0], [0.5, 0.5]], dtype=torch.float64)
    return {"h": h, "W": W, "y": torch.tensor([1, 0, 3])}


def _others(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _loss("other sizes", 3, _inputs(fixed, 7, 2, 5)),
        _loss("other sizes", 4, _inputs(random, random.randint(5, 11), 4, random.randint(3, 9))),
        _loss("single precision", 4, _inputs(fixed, 6, 8, 10, dtype=torch.float32)),
        _loss("more rows than examples", 50, _inputs(fixed, 5, 3, 4)),
        edge(_loss("one example", 2, _inputs(fixed, 1, 3, 4))),
        _loss("a loss that is only a part", 2, _inputs(fixed, 5, 3, 4), outside="loss ** 2 - loss"),
        edge(_loss("logits of ±1000", 1, _far())),
        _frozen("a gradient for one of them", fixed, "h"),
        _frozen("a gradient for one of them", fixed, "W"),
    ]


_FIXED = Random(3)

ChunkedCrossEntropy = Exercise(
    "ChunkedCrossEntropy",
    points=4,
    minutes=18,
    difficulty=3,
    reference=_ByTorch,
    cases=[
        _loss("six examples, two at a time", 2, _inputs(_FIXED, 6, 3, 5)),
        _loss("seven examples, three at a time", 3, _inputs(_FIXED, 7, 3, 5)),
        _loss("one at a time", 1, _inputs(_FIXED, 4, 2, 3)),
        _loss("more rows than examples", 9, _inputs(_FIXED, 4, 3, 5)),
        _loss("three times the loss", 2, _inputs(_FIXED, 4, 3, 5), outside="3 * loss"),
        _frozen("W alone asks for a gradient", _FIXED, "W"),
        _frozen("h alone asks for a gradient", _FIXED, "h"),
        edge(_loss("logits of ±1000", 2, _far())),
        edge(script("keeps h, y and a few numbers for each row", _KEPT, **_inputs(_FIXED, 64, 4, 256))),
        edge(script("never half of the logits at once", _MEMORY, **_inputs(_FIXED, 256, 4, 512))),
    ],
    hidden_cases=_others,
    hints=[
        "For one row, loss = log Σⱼ exp(zⱼ) − z_y. Differentiate it with respect to one logit: the first term gives a "
        "probability, the second a 1 at the right word. And the mean gives 1/n.",
        "The rest is the backward pass of a product, from dz to h and W: fill the rows of dh chunk by chunk, and add "
        "up dW over the chunks.",
        "ctx.save_for_backward(h, W, y, lse) with lse = z.logsumexp(-1) of each row. Backward: z of the chunk again, "
        "p = (z − lse).exp(), subtract 1 at y, times upstream / n. Return dh, dW, None, None.",
    ],
    forbid=[".requires_grad_", "torch.autograd.grad", "torch.autograd.backward", "torch.enable_grad", "torch.func"],
)


ChunkedCrossEntropy.equivalent_mutant(
    "lse[chunk] = z.logsumexp(-1) → lse[chunk] = z.logsumexp(1)", "The logits of a chunk have two axes."
)


@ChunkedCrossEntropy.variant
class OnlyWhatIsAskedFor(torch.autograd.Function):
    @staticmethod
    def forward(h: Any, W: Any, y: Any, rows: Any) -> Any:
        losses = []
        for first in range(0, h.shape[0], rows):
            z = torch.nn.functional.linear(h[first : first + rows], W)
            top = z.amax(1, keepdim=True)
            right = z.gather(1, y[first : first + rows, None])
            losses.append((z - top).exp().sum(1).log() + top[:, 0] - right[:, 0])
        return torch.cat(losses).mean()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        h, W, y, ctx.rows = inputs
        ctx.save_for_backward(h, W, y)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        h, W, y = ctx.saved_tensors
        dh = torch.zeros_like(h) if ctx.needs_input_grad[0] else None
        dW = torch.zeros_like(W) if ctx.needs_input_grad[1] else None
        for first in range(0, len(h), ctx.rows):
            z = torch.nn.functional.linear(h[first : first + ctx.rows], W)
            dz = torch.nn.functional.log_softmax(z, -1).exp_()
            dz.scatter_add_(1, y[first : first + ctx.rows, None], -torch.ones_like(dz[:, :1]))
            dz *= upstream / len(h)
            if dh is not None:
                dh[first : first + ctx.rows] = dz.mm(W)
            if dW is not None:
                dW.addmm_(dz.T, h[first : first + ctx.rows])
        return dh, dW, None, None


@ChunkedCrossEntropy.variant
class ChunkAfterChunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Any, W: Any, y: Any, rows: Any) -> Any:
        total = h.new_zeros(())
        for part, right in zip(h.split(rows), y.split(rows), strict=True):
            z = part @ W.T
            losses = z.logsumexp(-1) - z[torch.arange(len(z)), right]
            total += losses.sum()
        ctx.save_for_backward(h, W, y)
        ctx.rows = rows
        return total / len(h)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        h, W, y = ctx.saved_tensors
        dh, dW = [], torch.zeros_like(W)
        for part, right in zip(h.split(ctx.rows), y.split(ctx.rows), strict=True):
            p = (part @ W.T).softmax(-1)
            wanted = torch.nn.functional.one_hot(right, len(W))
            dz = (p - wanted) * upstream / len(h)
            dh.append(dz @ W)
            dW += dz.T @ part
        return torch.cat(dh), dW, None, None


_KEEPS = (
    "The numbers are right, but autograd keeps the probabilities for the backward pass. Keep one log-sum-exp a row, "
    "and compute the logits of the chunk again."
)
ChunkedCrossEntropy.slips(
    ChunkAfterChunk,
    {
        "* upstream / len(h) → / len(h)": "backward ignores the gradient that arrives. It is 1 only if the loss is the "
        "end of the graph: multiply by it.",
        "upstream / len(h) → upstream": "The loss is a mean over n rows, so each of its gradients has a factor 1/n. "
        "Yours lacks it.",
        "total / len(h) → total ;; upstream / len(h) → upstream": "You add up the losses of the rows. The exercise "
        "asks for their mean.",
        "upstream / len(h) → upstream / len(part)": "You divide the gradient by the rows of its chunk. The mean in the "
        "loss is over all n rows.",
        "losses.sum() → losses.mean() ;; total / len(h) → total / -(-len(h) // rows) ;; upstream / len(h) → upstream / "
        "len(part) / -(-len(h) // ctx.rows)": "You average the means of the chunks. A shorter last chunk then counts "
        "too much: add up the sums, and divide once by n.",
        "losses.sum() → losses.mean() ;; total / len(h) → total / -(-len(h) // rows)": "Your loss is the mean of the "
        "chunks' means. A shorter last chunk then counts too much: add up the sums, and divide once by n.",
        "(p - wanted) → p": "Your dz is p alone, the gradient of the log-sum-exp. The logit of the right word also "
        "enters the loss directly: subtract 1 there.",
        "p - wanted → wanted - p": "Every gradient has the wrong sign: a larger logit of a wrong word makes the loss "
        "larger.",
        "dW += → dW =": "dW holds the last chunk only. All rows share W: add their gradients up.",
        "p - wanted → p - wanted.amax(0)": "You subtract 1 at every right word of the chunk in every row. Each row has "
        "one right word: index the rows, too.",
        "p - wanted → p - 1": "You subtract 1 from every probability of a row. Only the logit of the right word enters "
        "the loss directly.",
        "softmax(-1) → softmax(0)": "In backward your softmax runs over the rows of the chunk. Each row has its own "
        "probabilities: use the last axis.",
        "class ChunkAfterChunk → class ChunkedCrossEntropy ;; torch.cat(dh), dW, None, None → torch.cat(dh), "
        "dW\n\nChunkAfterChunk = ChunkedCrossEntropy": "backward returns two gradients. forward has four arguments: "
        "return one for each, None for y and rows.",
        "losses.sum() → losses.sum() if len(z) == rows or len(h) < rows else 0": "The loss leaves out a last chunk "
        "that is shorter than the others.",
        "z.logsumexp(-1) → z.exp().sum(-1).log() ;; (part @ W.T).softmax(-1) → (part @ W.T).exp() / (part @ "
        "W.T).exp().sum(-1, keepdim=True)": "Your exp overflows for large logits. Subtract the largest logit first, as "
        "logsumexp does.",
        "total = h.new_zeros(()) → total, ctx.kept = h.new_zeros(()), [] ;; losses.sum() → losses.sum(); "
        "ctx.kept.append(z)": "The numbers are right, but you keep a number for each logit of all chunks: together "
        "they are the n × V numbers that you wanted to avoid.",
        "h.split(rows), y.split(rows) → [h], [y] ;; h.split(ctx.rows), y.split(ctx.rows) → [h], [y]": "The numbers are "
        "right, but all n × V logits exist at once. Multiply `rows` rows of h at a time, backward too.",
        "save_for_backward(h, W, y) → save_for_backward(h, W, y, (h @ W.T).softmax(-1)) ;; h, W, y = → h, W, y, _ =": ""
        + _KEEPS,
        "save_for_backward(h, W, y) → save_for_backward(h, W, y, *((a @ W.T).softmax(-1) for a in h.split(rows))) ;; "
        "h, W, y = → h, W, y, *_ =": _KEEPS,
        "losses.sum() → losses.sum() * (len(z) == rows) ;; upstream / len(h) → upstream / len(h) * (len(part) == "
        "ctx.rows)": "Loss and gradients leave out a last chunk that is shorter than the others.",
    },
)
