"""Let a numeric gradient judge the gradients that an answer of the notebook returns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.autograd.own_step import NAMES, by_autograd

Numeric = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
"""Takes a function and a tensor; returns the gradient of the function there."""

_AGREES = 1e-6


def judge(answer: str | Callable[..., Any], numeric_gradient: Numeric) -> None:
    """Print how far each gradient that an answer returns is from the numeric one, on random numbers in float64.

    Args:
        answer: a function, or the name of one in the notebook. A name stands for the learner's own, as it is.
    """
    name = answer if isinstance(answer, str) else answer.__name__
    function: Any = sys._getframe(1).f_globals[answer] if isinstance(answer, str) else answer
    inputs, loss, places = _TRIALS[name]
    try:
        found = function(*inputs)
        grads = found[1] if name == "my_step" else found
        mean = torch.as_tensor(found[0]) if name == "my_step" else None
        by_name = {
            each: torch.as_tensor(grads[each if isinstance(grads, dict) else k]) for k, each in enumerate(places)
        }
    except Exception as error:
        unwritten = isinstance(error, NotImplementedError)
        print(f"`{name}` " + ("is not written yet" if unwritten else f"raises {type(error).__name__}: {error}"))
        return
    if mean is not None:
        print(f"`{name}`, the loss: {_verdict(mean, loss(*inputs))}")
    for key, place in places.items():
        before, after = inputs[:place], inputs[place + 1 :]
        numeric = numeric_gradient(lambda x, a=before, b=after: loss(*a, x, *b), inputs[place])  # type: ignore[misc]
        print(f"`{name}`, gradient of {key}: {_verdict(by_name[key], numeric)}")


def _verdict(found: Tensor, numeric: Tensor) -> str:
    if found.shape != numeric.shape:
        return f"its shape is {tuple(found.shape)}, and should be {tuple(numeric.shape)}"
    off = (found - numeric).abs().max().item()
    return f"off by less than {_AGREES:g}" if off < _AGREES else f"off by up to {off:.2g}"


def _random(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


_IDS = [torch.arange(3 * 37).view(37, 3) ** 2 % 7, torch.arange(37) % 5]  # 37 words: blocks do not divide them

_TRIALS: dict[str, tuple[list[Tensor], Callable[..., Tensor], dict[str, int]]] = {
    "backward_matmul": (
        _random((3, 2, 4), (4, 5), (3, 2, 5)),
        lambda x, w, dy: (x @ w * dy).sum(),
        {"x": 0, "w": 1},
    ),
    "two_layers": (
        _random((3, 4), (4, 6), (6, 2), (3, 2)),
        lambda x, w1, w2, dy: ((x @ w1).relu() @ w2 * dy).sum(),
        {"x": 0, "w1": 1, "w2": 2},
    ),
    "my_step": (
        [*_random((7, 2), (6, 4), (7, 4)), *_IDS],
        lambda *inputs: torch.tensor(by_autograd(*inputs)[0], dtype=torch.float64),
        {name: place for place, name in enumerate(NAMES)},
    ),
    "backward_batch": (
        _random((5, 3), (4, 3), (2, 4), (5, 2)),
        lambda x, w1, w2, y: (((x @ w1.T).sigmoid() @ w2.T - y) ** 2).sum() / 2 / len(x),
        {"w1": 1, "w2": 2},
    ),
    "layernorm_backward": (
        _random((3, 2, 5), (5,), (3, 2, 5)),
        lambda x, gain, dy: (F.layer_norm(x, (5,), gain) * dy).sum(),
        {"x": 0, "gain": 1},
    ),
}
"""By the name of an answer: its inputs, a loss of the same inputs, and for each gradient the place of its input."""
