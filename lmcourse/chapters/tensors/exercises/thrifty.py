"""The open task: attention in little memory."""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor

from lmcourse.chapters.tensors import thrifty as task
from lmcourse.chapters.tensors.thrifty import OPERATORS, PEAK
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NOT_MEASURED
from lmcourse.exercises.measured import CHANGED
from lmcourse.exercises.open_task import Band, OpenTask

_LIMITS = (12_000, 5000, 2000, task.FINISH[PEAK])

thrifty_attention = Exercise(
    "thrifty_attention",
    points=4,
    minutes=14,
    difficulty=3,
    reference=task.fused,
    seconds=60.0,
    cases=[case("new numbers", others=[])],
    hidden_cases=lambda _: [case("other sizes, too", others=[[2, 100, 4, 16], [1, 33, 3, 6], [3, 257, 2, 8]])],
    hints=[
        "Begin with the textbook's lines. Which of its three tensors of the scores' size can be written over? "
        "`mul_`, `masked_fill_`, `sub_`, `exp_` and `div_` make none.",
        "Nothing in a row of the weights depends on another row, and nothing in a head or a text on another one. So "
        "how much has to be there at once? If you compute in parts and the peak stays, ask which list or name still "
        "holds the last part while the next one is made (`del`), and write results into a tensor made before the loop.",
        "Name what is alive at the peak, with its size: the result, the scores of a part, and what `@` copies because "
        "it merges texts and heads (section 7). Which of them is the largest, and which loop makes it smaller?",
    ],
    forbid=[".scaled_dot_product_attention", *NOT_MEASURED],
    task=OpenTask(
        inspect=task.inspect_attention,
        measure=task.measure_attention,
        baseline={"the textbook, line by line": {PEAK: 24_592, OPERATORS: 34}},
        finish=task.FINISH,
        bands=[Band(1, f"at most {n:,} KiB and 3,200 operators", task.FINISH | {PEAK: n}) for n in _LIMITS],
        digits=0,
    ),
)


@thrifty_attention.idea(4)
def queries_of_one_head(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    places, out, size = torch.arange(q.shape[1]), torch.empty_like(q), 64
    for text in zip(q, k, v, out, strict=True):
        for a, b, c, o in zip(*(x.chunk(heads, -1) for x in text), strict=True):
            for start in range(0, len(places), size):
                rows, seen = slice(start, start + size), slice(0, start + size)
                scores = (a[..., rows, :] @ b[..., seen, :].mT).mul_(a.shape[-1] ** -0.5)
                scores.masked_fill_(places[seen] > places[rows, None], -torch.inf)
                scores.sub_(scores.amax(-1, keepdim=True)).exp_()
                o[..., rows, :] = scores.div_(scores.sum(-1, keepdim=True)) @ c[..., seen, :]
    return out


_TEXTS = "zip(q, k, v, out, strict=True) → [(q, k, v, out)]"
_HEADS = (
    "zip(*(x.chunk(heads, -1) for x in text), strict=True) → "
    '[[rearrange(x, "... s (h d) -> ... h s d", h=heads) for x in text]]'
)
_AT_ONCE = "q), 64 → q), q.shape[1]"
_COPIES = (
    ".mul_(a → .mul(a ;; scores.sub_(scores.amax(-1, keepdim=True)).exp_() → "
    "scores = (scores - scores.amax(-1, keepdim=True)).exp() ;; scores.div_( → scores.div("
)
thrifty_attention.edited_ideas(
    queries_of_one_head,
    {
        "the textbook": (0, f"{_TEXTS} ;; {_HEADS} ;; {_AT_ONCE} ;; {_COPIES}"),
        "in place": (1, f"{_TEXTS} ;; {_HEADS} ;; {_AT_ONCE}"),
        "a head at a time": (2, f"{_TEXTS} ;; {_AT_ONCE}"),
        "eight queries of all heads": (3, f"{_TEXTS} ;; {_HEADS} ;; q), 64 → q), 8"),
    },
)
thrifty_attention.slips(
    queries_of_one_head,
    {
        "places[seen] > places[rows, None] → places[seen] < 0": task.FUTURE.format(token=128),
        "places[seen] > places[rows, None] → places[seen] > places[rows, None] + 1": task.FUTURE.format(token=128),
        "places[seen] > places[rows, None] → places[seen] < places[rows, None]": task.FUTURE.format(token=128),
        "places[seen] > places[rows, None] → places[seen] >= places[rows, None]": task.NOTHING.format(token=0),
        "> places[rows, None], -torch.inf → >= places[rows, None], -1e9": task.FIRST,
        ".mul_(a.shape[-1] ** -0.5) → ": task.SCALE.format(width=5),
        "a.shape[-1] ** -0.5 → q.shape[-1] ** -0.5": task.SCALE.format(width=3),
        "a.shape[-1] ** -0.5 → 1 / a.shape[-1]": task.SCALE.format(width=5),
        "scores.sum(-1, keepdim=True) → scores.sum(0, keepdim=True)": task.SUM,
        "scores.div_(scores.sum(-1, keepdim=True)) → scores": task.SUM,
        "scores.sub_(scores.amax(-1, keepdim=True)).exp_() → scores.exp_()": task.FAR,
        "scores.amax(-1, keepdim=True) → scores.amax()": task.FAR,
        "(a[..., rows, :] @ b[..., seen, :].mT) → (a[..., rows, :].half() @ b[..., seen, :].mT.half()).float()": (
            task.PRECISION
        ),
        "len(places), size) → len(places) // size * size, size) ;; empty_like → zeros_like": (
            task.END.format(token=128, tokens=130)
        ),
        "slice(0, start + size) → slice(start, start + size)": task.END.format(token=64, tokens=130),
        "zip(q, k, v, out → zip(q, k.flip(0), v, out": task.APART,
        "places, out → q *= (q.shape[-1] // heads) ** -0.5\n    places, out ;; .mul_(a.shape[-1] ** -0.5) → ": CHANGED,
        "torch.empty_like(q) → torch.zeros(q.shape, dtype=torch.float64)": task.FORM.format(
            right=(2, 130, 5), yours="torch.float64 of (2, 130, 5)"
        ),
        "    return out → ": task.FORM.format(right=(2, 130, 5), yours="NoneType"),
        "x.chunk(heads, -1) → x.view(heads, -1, x.shape[-1] // heads)": task.SPLIT,
        "empty_like(q) → zeros(len(q), heads, q.shape[1], q.shape[-1] // heads) ;; in text) → in text[:3]), text[3] ;; "
        "return out → return out.reshape(q.shape)": task.MERGED,
    },
)


@thrifty_attention.idea(4)
def running_maxima(q: Tensor, k: Tensor, v: Tensor, heads: int) -> Tensor:
    places, out = torch.arange(q.shape[1]), torch.empty_like(q)
    split = (rearrange(x, "b s (h d) -> b h s d", h=heads) for x in (q, k, v, out))
    for a, b, c, o in zip(*split, strict=True):
        for start in range(0, len(places), 64):
            rows = slice(start, start + 64)
            top = torch.full_like(a[:, rows, :1], -torch.inf)
            total, blend = torch.zeros_like(top), torch.zeros_like(a[:, rows])
            for first in range(0, start + 1, 64):
                some = slice(first, first + 64)
                scores = (a[:, rows] @ b[:, some].mT).mul_(a.shape[-1] ** -0.5)
                if first == start:
                    scores.masked_fill_(places[some] > places[rows, None], -torch.inf)
                new = torch.maximum(top, scores.amax(-1, keepdim=True))
                scores.sub_(new).exp_()
                shrunk = top.sub_(new).exp_()
                total.mul_(shrunk).add_(scores.sum(-1, keepdim=True))
                blend.mul_(shrunk).add_(scores @ c[:, some])
                top = new
            o[:, rows] = blend.div_(total)
    return out
