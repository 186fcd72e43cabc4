"""Plain values: the only things that go into an answer and come out of it.

Inputs and results are tensors, numbers, strings, and lists of them, never objects with code of their own. So a result
can be copied, compared, printed and sent to another process without trusting whoever made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Plain = Any
"""A tensor, number, string, None, or a list or mapping of them. (Python cannot spell a recursive union usefully.)"""

LONGEST = 80
"""Characters after which a value is described instead of printed."""


class NotPlainError(TypeError):
    """The value is an object of some class, not plain data."""


def plain(value: object) -> Plain:
    """A copy of `value` that shares no memory with it, detached from any autograd graph.

    NumPy arrays become tensors, tuples become lists.

    Raises:
        NotPlainError: the value holds something that is not plain data.
    """
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, torch.dtype | torch.Size):
        return str(value) if isinstance(value, torch.dtype) else list(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    raise NotPlainError(kind(value))


def same(a: Plain, b: Plain) -> bool:
    """Whether two plain values are identical to the bit (NaN equals NaN)."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(bits(a), bits(b)))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and (repr(a) == repr(b))


def bits(tensor: Tensor) -> Tensor:
    """The bytes of a tensor, so that NaN compares equal to itself and -0.0 does not equal 0.0."""
    return tensor.contiguous().cpu().flatten().view(torch.uint8)


def kind(value: object) -> str:
    """What a value is, in a word or two: "a float", "None", "a tensor of shape (2, 3)"."""
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def describe(value: object) -> str:
    """A value as a reader would write it, shortened to a description where it is long."""
    if isinstance(value, Tensor):
        return _describe_tensor(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple):
        inside = ", ".join(describe(item) for item in value)
        text = f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
        return text if len(text) <= LONGEST else f"{kind(value)} of {len(value)}"
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _describe_tensor(tensor: Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() <= 8:
        text = f"tensor({_nested(tensor.tolist())})"
        if len(text) <= LONGEST:
            return text if tensor.dtype in (torch.float32, torch.int64, torch.bool) else f"{text[:-1]}, {dtype})"
    return f"a {dtype} tensor of shape {tuple(tensor.shape)}"


def _nested(value: Plain) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    text = shorter(value)
    return f"{text}." if isinstance(value, float) and text.lstrip("-").isdigit() else text


def shorter(value: float | int | bool) -> str:
    """A number with as many digits as a reader can use (six)."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
