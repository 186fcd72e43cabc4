"""Lines of attention: the bytes that a reader's functions predict for each, and those that PyTorch allocates."""

from __future__ import annotations

import json
from collections.abc import Callable

import torch

from lmcourse.accounting.live import live_bytes
from lmcourse.chapters.tensors.figures.memory import Expression

PeakBytes = Callable[[Expression, int, dict[str, int]], int]
ViewStrides = Callable[[list[int], list[int], list[int]], list[int] | None]

LINES: dict[str, Expression] = {
    "(x - x.amax(-1, True)).exp()": ["exp", ["sub", "x", ["amax", "x"]]],
    "w / w.sum(-1, True)": ["div", "w", ["sum", "w"]],
    "q @ k.mT / 4": ["div", ["matmul", "q", "k"], "4"],
    "(q @ k.mT).mul_(0.25)": ["mul_", ["matmul", "q", "k"], "0.25"],
    "w @ v": ["mix", "w", "v"],
    "o.transpose(1, 2).reshape(b, s, h * d)": "o",
}
"""Lines with scores x, weights w and a result o, of b texts of s tokens. A view of an input is written as the input."""

b, s, h, d = 2, 512, 4, 16


def print_lines(peak_bytes: PeakBytes, view_strides: ViewStrides, batched: bool = False) -> None:
    """Print the predicted and the measured peak of each line, in bytes beyond its inputs.

    `batched`: also predict the copies that `@` makes of q, k and v, because it needs a single batch axis.
    """
    qkv = torch.randn(b, s, 3 * h * d, generator=torch.Generator().manual_seed(0))
    q, k, v = (x.view(b, s, h, d).transpose(1, 2) for x in qkv.chunk(3, -1))
    scores = q @ k.mT
    weights = scores.softmax(-1)
    tensors = {"q": q, "k": k, "v": v, "x": scores, "w": weights, "o": weights @ v}
    reshaped = {"o": (tensors["o"].transpose(1, 2), [b, s, h * d])}
    if batched:
        reshaped |= {name: (tensors[name], [b * h, *tensors[name].shape[2:]]) for name in "qkvw"}
    copied = {name for name, (x, shape) in reshaped.items() if view_strides([*x.shape], [*x.stride()], shape) is None}
    sizes = dict.fromkeys(("amax", "sum"), 4 * b * h * s) | dict.fromkeys(("mix", "copy"), 4 * b * s * h * d)
    names = {"b": b, "s": s, "h": h, "d": d, **tensors}
    print(f"{'line':39} {'predicted':>10} {'measured':>10}")
    for code, expression in LINES.items():
        measured = live_bytes(lambda *_, code=code: eval(code, names), *tensors.values()).peak
        asked = _with_copies(expression, copied)
        predicted = peak_bytes(asked, scores.nbytes, sizes)
        verdict = "" if predicted == measured else "   differs"
        print(f"{code:39} {predicted:10,} {measured:10,}{verdict}\n    {json.dumps(asked)}")


def _with_copies(part: Expression, copied: set[str]) -> Expression:
    if isinstance(part, str):
        return ["copy", part] if part in copied else part
    return [part[0], *(_with_copies(argument, copied) for argument in part[1:])]
