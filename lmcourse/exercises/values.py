"""Copy, compare and format plain values (numbers, strings, tensors, lists, dicts).

Inputs and results are tensors, numbers, strings, and lists of them, never objects with their own code. So a result can
be copied, compared, printed and sent to another process even if its origin is not trusted. Other results (a set, a
NumPy array) become a `Special`, which keeps the name of their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcourse.text import one_line

Plain = Any
"""A tensor, number, string, None, or a list or mapping of them. (Python has no useful notation for a recursive
union.)"""

MAX_VALUE_CHARS = 80
"""Number of characters above which a value is described instead of printed."""


class NotPlainError(TypeError):
    """The value is an object of a class, not plain data."""


@dataclass(frozen=True, eq=False)
class Special:
    """A result that is not plain data: the name of its type ("a set", "a Value"), and the plain data in it, if any."""

    kind: str
    value: Plain = None


def to_plain(value: object) -> Plain:
    """Return a copy of `value` that shares no memory with it and is detached from any autograd graph.

    Tuples become lists. NumPy numbers become Python numbers or tensors of one number; fractions and decimals become
    numbers. Sets, NumPy arrays, bytes and dtypes become `Special`. Raises NotPlainError if the value contains an
    object.
    """
    return _copy(value, _detached)


def copy_input(value: Plain) -> Plain:
    """Copy an input like `to_plain`, except that a tensor keeps its `requires_grad`."""
    return _copy(value, lambda tensor: _detached(tensor).requires_grad_(tensor.requires_grad))


def _detached(tensor: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():  # so that neither subclasses nor the recorder of forbidden calls take part
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise NotPlainError(f"a {str(tensor.layout).removeprefix('torch.')} tensor")
        return tensor.detach().as_subclass(Tensor).clone().resolve_conj().resolve_neg()


def _copy(value: object, tensor: Callable[[Tensor], Tensor]) -> Plain:
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, Tensor):
        return tensor(value)
    if isinstance(value, dict | Mapping):  # dict first, because a check for an abstract class takes ten times as long
        return {_key(key): _copy(item, tensor) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(item, tensor) for item in value]
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return _copy(_number(value), tensor)
    special = _special(value, tensor)
    if special is None and isinstance(value, Sequence) and not isinstance(value, memoryview):
        return [_copy(item, tensor) for item in value]
    if special is None:
        raise NotPlainError(type_phrase(value))
    return special


def _number(value: np.generic | np.ndarray[Any, Any]) -> object:
    """Convert a NumPy number to a Python number, or to a tensor if its dtype is narrower."""
    if value.dtype in (np.float32, np.float16):
        return torch.tensor(np.asarray(value))
    found = value.item()
    # the only numbers for which item() does not return a Python number
    if isinstance(found, np.longdouble | np.clongdouble):
        return complex(found) if isinstance(found, np.clongdouble) else float(found)
    return found


def _special(value: object, tensor: Callable[[Tensor], Tensor]) -> Special | None:
    """Convert a value that is not plain but contains plain data."""
    if isinstance(value, Special):
        return Special(value.kind, _copy(value.value, tensor))
    if isinstance(value, torch.dtype):
        return Special("a torch.dtype", str(value))
    if isinstance(value, bytes | bytearray):
        return Special("bytes", value.decode("latin-1"))
    if isinstance(value, set | frozenset):
        return Special("a set", sorted((_copy(item, tensor) for item in value), key=format_value))
    if isinstance(value, np.ndarray):
        return Special("a NumPy array", _from_numpy(value))
    return None


def _from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    try:
        return torch.from_numpy(array.copy())
    except (TypeError, ValueError) as error:  # an array of objects or strings, or with another byte order
        raise NotPlainError(f"an array of {array.dtype}") from error


def _key(key: object) -> object:
    """Return the key of a dict unchanged, so that tuples as keys stay tuples."""
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    if key is None or type(key) in (bool, int, float, str):
        return key
    raise NotPlainError(f"a dict with a key that is not plain data: {type_phrase(key)}")


def same(a: Plain, b: Plain) -> bool:
    """Return True if two plain values are identical bit by bit (NaN equals NaN). A value that is not plain equals
    none.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device) and torch.equal(raw_bytes(a), raw_bytes(b))
    if type(a) is not type(b):
        return False
    if type(a) is list:
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if type(a) is Special:
        return a.kind == b.kind and same(a.value, b.value)
    return a is None or (type(a) in (bool, int, float, complex, str) and repr(a) == repr(b))


def raw_bytes(tensor: Tensor) -> Tensor:
    """Return the bytes of a tensor, so that NaN equals itself and -0.0 does not equal 0.0."""
    flat = tensor.detach().contiguous().cpu().flatten()
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)  # a single number may have any stride


def type_phrase(value: object) -> str:
    """Return the type of a value in words: "a float", "None", "a tensor of shape (2, 3)"."""
    if value is None:
        return "None"
    if isinstance(value, Special):
        return value.kind
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}" if value.ndim else "a tensor of one number"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in set('aeiou') else 'a'} {name}"


def format_value(value: object) -> str:
    """Format a value as Python code; describe it instead if it is long."""
    if isinstance(value, Tensor):
        return _describe_tensor(value)
    if isinstance(value, Special):
        return value.value if value.kind == "a torch.dtype" else value.kind
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple | dict):
        fits = 3 * len(value) <= MAX_VALUE_CHARS  # an item takes at least one character and ", "
        text = _format_items(value) if fits else ""
        return text if fits and len(text) <= MAX_VALUE_CHARS else f"{type_phrase(value)} of {len(value)}"
    return one_line(repr(value), MAX_VALUE_CHARS)


def _format_items(value: list[Plain] | tuple[Plain, ...] | dict[Plain, Plain]) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{format_value(key)}: {format_value(item)}' for key, item in value.items())}}}"
    inside = ", ".join(format_value(item) for item in value)
    return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"


def _describe_tensor(tensor: Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    # a tensor of shape (2**40, 0) would fill any memory as a list
    if tensor.numel() <= 8 and max(tensor.shape, default=0) <= 8:
        text = f"tensor({_nested(tensor.tolist())})"
        if len(text) <= MAX_VALUE_CHARS:
            return text if tensor.dtype in (torch.float32, torch.int64, torch.bool) else f"{text[:-1]}, {dtype})"
    return f"a {dtype} tensor of shape {tuple(tensor.shape)}"


def _nested(value: Plain) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    text = format_number(value)
    return f"{text}." if isinstance(value, float) and text.lstrip("-").isdigit() else text


def distinct_digits(a: complex, b: complex) -> tuple[str, str]:
    """Format two numbers with enough digits to show that they differ."""
    if isinstance(a, float | complex):
        for digits in (6, 9, 17):
            shown = f"{a:.{digits}g}", f"{b:.{digits}g}"
            if shown[0] != shown[1]:
                return shown
    return str(a), str(b)


def format_number(value: float | int | bool) -> str:
    """Format a number with six significant digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
