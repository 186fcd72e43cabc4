"""Copy, compare and format plain values (numbers, strings, tensors, lists, dicts).

Inputs and results are tensors, numbers, strings, and lists of them, never objects with their own code. So a result can
be copied, compared, printed and sent to another process even if its origin is not trusted. Other results (a set, a
NumPy array) become a `Special`, which keeps the name of their kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcourse.base.text import one_line

Plain = Any
"""A tensor, number, string, None, or a list or mapping of them. (Python has no useful notation for a recursive
union.)"""

MAX_VALUE_CHARS = 80
"""Number of characters above which a value is described instead of printed."""

MAX_NUMBERS, MAX_CODE_CHARS = 30, 500
"""Largest number of numbers, and of characters, of an input that a report shows whole."""

MAX_DIGITS = 8
"""Number of characters above which numbers count as long: a report shows only few of them."""

DEFAULT_DTYPES = (torch.float32, torch.int64, torch.bool)
"""The dtypes that `torch.tensor` gives to Python's numbers."""


class NotPlainError(TypeError):
    """The value is an object of a class, not plain data."""


@dataclass(frozen=True, eq=False)
class Special:
    """A result that is not plain data: the name of its type ("a set", "a Value"), and the plain data in it, if any."""

    kind: str
    value: Plain = None


class Unpacked(list[Plain]):
    """The items of a tuple: a list, except that a report calls it a tuple."""


def to_plain(value: object) -> Plain:
    """Return a copy of `value` that shares no memory with it and is detached from any autograd graph.

    Tuples become lists, one that is the whole value an `Unpacked`. NumPy numbers become Python numbers or tensors
    of one number; fractions and decimals become numbers. Sets, NumPy arrays, bytes and dtypes become `Special`.
    Raises NotPlainError if the value contains an object.
    """
    plain = _copy(value, _detached)
    return Unpacked(plain) if isinstance(value, tuple) else plain


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
    if {type(a), type(b)} <= {list, Unpacked}:
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b):
        return False
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
    if isinstance(value, Unpacked):
        return "a tuple"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}" if value.ndim else "a tensor of one number"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in set('aeiou') else 'a'} {name}"


def received_phrase(value: Plain) -> str:
    """Return the type of a result in words; a tuple has become a list, so a list may have been either."""
    return "a list or tuple" if isinstance(value, list) else type_phrase(value)


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


def _format_items(
    value: list[Plain] | tuple[Plain, ...] | dict[Plain, Plain], form: Callable[[Plain], str | None] = format_value
) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{format_value(key)}: {form(item)}' for key, item in value.items())}}}"
    inside = ", ".join(str(form(item)) for item in value)
    return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"


def _describe_tensor(tensor: Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    # a tensor of shape (2**40, 0) would fill any memory as a list
    if tensor.numel() <= 8 and max(tensor.shape, default=0) <= 8:
        text = f"tensor({_nested(tensor.tolist())})"
        if len(text) <= MAX_VALUE_CHARS:
            return text if tensor.dtype in DEFAULT_DTYPES else f"{text[:-1]}, {dtype})"
    return f"a {dtype} tensor of shape {tuple(tensor.shape)}"


def _nested(value: Plain, number: Callable[[Any], str] | None = None) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_nested(item, number) for item in value)}]"
    text = (number or format_number)(value)
    return f"{text}." if isinstance(value, float) and text.lstrip("-").isdigit() else text


def as_code(value: Plain) -> str | None:
    """Return Python code that gives exactly this value, and uses only `torch`; None if it would be long."""
    text = _code(value) if is_small(value) else None
    return text if text is None or len(text) <= MAX_CODE_CHARS else None


def in_short(value: Plain) -> str:
    """Return a value with all of its numbers, rounded to six digits; if it is large, describe its parts."""
    if isinstance(value, Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        if value.is_meta or value.numel() > MAX_NUMBERS or max(value.shape, default=0) > MAX_NUMBERS:
            return f"{'an' if dtype[0] in 'iu' else 'a'} {dtype} tensor of shape {tuple(value.shape)}"
        return f"tensor({_nested(value.tolist())}{'' if value.dtype in DEFAULT_DTYPES else f', {dtype}'})"
    if isinstance(value, list | tuple | dict):
        text = _format_items(value, in_short) if len(value) <= MAX_NUMBERS else ""
        return text if text and len(text) <= MAX_CODE_CHARS else _listing(value)
    if isinstance(value, float):
        return min(repr(value), format_number(value), key=len)
    if isinstance(value, str) and len(value) > MAX_VALUE_CHARS:
        return f"a text of {len(value)} characters, {one_line(repr(value), MAX_VALUE_CHARS)}"
    return format_value(value)


def _listing(value: list[Plain] | tuple[Plain, ...] | dict[Plain, Plain]) -> str:
    """Return the kind and the length of a long list or dict, and the keys of a dict."""
    keys = f", with the keys {', '.join(map(repr, value))}" if isinstance(value, dict) else ""
    return f"{type_phrase(value)} of {len(value)}{keys if len(keys) <= MAX_CODE_CHARS else ''}"


def is_small(value: Plain) -> bool:
    """Return True if a value has so few numbers that a report shows all of them."""
    return _count(value) <= MAX_NUMBERS


def _count(value: Plain) -> int:
    """Return how many numbers and strings a value contains; a tensor such as `torch.zeros(9)` counts as one."""
    if isinstance(value, Tensor):
        return 1 if _constructor(value) else value.numel()
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return len(value) if len(value) > MAX_NUMBERS else sum(map(_count, items))
    return 1


def _code(value: Plain) -> str | None:
    if isinstance(value, Tensor):
        return _constructor(value) or _tensor_code(value)
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return None if any(_code(item) is None for item in items) else _format_items(value, _code)
    if isinstance(value, float) and not math.isfinite(value):
        return _shortest(value, torch.float64)
    return repr(value) if value is None or type(value) in (bool, int, float, complex, str) else None


def _constructor(tensor: Tensor) -> str:
    """Return the call for a tensor of zeros, of ones, or of 0, 1, 2, …, if it is longer than a row or empty."""
    if 0 < tensor.numel() <= 8 or tensor.requires_grad:
        return ""
    dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
    for name, make in (("zeros", torch.zeros), ("ones", torch.ones)):
        if same(tensor, make(tensor.shape, dtype=tensor.dtype)):
            return f"torch.{name}({', '.join(map(str, tensor.shape))}{dtype})"
    return f"torch.arange({len(tensor)})" if tensor.ndim == 1 and same(tensor, torch.arange(len(tensor))) else ""


def _tensor_code(tensor: Tensor) -> str | None:
    longest = 0

    def number(value: complex) -> str:
        nonlocal longest
        text = _shortest(value, tensor.dtype)
        longest = max(longest, len(text))
        return text

    text = _nested(tensor.tolist(), number)
    if longest > MAX_DIGITS and len(text) > MAX_VALUE_CHARS:
        return None
    dtype = "" if tensor.dtype in DEFAULT_DTYPES else f", dtype={tensor.dtype}"
    return f"torch.tensor({text}{dtype}{', requires_grad=True' * tensor.requires_grad})"


def _shortest(value: complex, dtype: torch.dtype) -> str:
    """Return the shortest code for a number of a tensor that gives exactly this number."""
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return f"{'-' * (value < 0)}torch.{abs(value)}"
    texts = (f"{value:.{digits}g}" for digits in range(6, 18))
    return next(text for text in texts if torch.tensor(float(text), dtype=dtype).item() == value)


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
