"""Decode plain values from bytes of an untrusted sender.

`decode` trusts nothing: whatever the bytes are, it gives a plain value within the limits or raises `ProtocolError`. The
format is that of `encoding`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.values import Plain
from lmcourse.grading.examination.encoding import (
    DEFAULT_LIMITS,
    DTYPES,
    LENGTH_BYTES,
    MAX_TENSOR_AXES,
    NON_FINITE_FLOATS,
    MessageLimits,
    ProtocolError,
    tensor_from,
)


def decode(message: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> Plain:
    """The plain value in these bytes.

    Raises:
        ProtocolError: they hold none, or one beyond the limits. It raises nothing else.
    """
    length = int.from_bytes(message[:LENGTH_BYTES], "little")
    text, data = message[LENGTH_BYTES : LENGTH_BYTES + length], memoryview(message)[LENGTH_BYTES + length :]
    if len(message) < LENGTH_BYTES or len(text) < length:
        raise ProtocolError("the text is cut short")
    if len(text) > limits.text or len(data) > limits.data:
        raise ProtocolError(f"more than {limits.text} bytes of text or {limits.data} bytes of tensors")
    decoder = _Decoder(limits, data)
    try:
        tree = json.loads(text.decode(), parse_int=decoder.integer, parse_constant=_refuse, object_pairs_hook=_tagged)
        value = decoder.value(tree, 0)
    except ProtocolError:
        raise
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"no JSON ({type(error).__name__})") from error
    if decoder.data:
        raise ProtocolError("bytes that belong to no tensor")
    return value


@dataclass(frozen=True)
class _Tagged:
    tag: str
    body: Any


def _tagged(pairs: list[tuple[str, Any]]) -> _Tagged:
    """In place of a JSON object. A key given twice would be a second one."""
    if len(pairs) != 1:
        raise ProtocolError("an object with other than one key")
    return _Tagged(*pairs[0])


def _refuse(literal: str) -> float:
    raise ProtocolError(f"{literal}, which is not JSON")


class _Decoder:
    """Turns what JSON held into plain values; `data` is what is left of the tensors' bytes."""

    def __init__(self, limits: MessageLimits, data: memoryview) -> None:
        self.limits = limits
        self.data = data
        self.items = 0

    def integer(self, digits: str) -> int:
        if len(digits.lstrip("-")) > self.limits.digits:
            raise ProtocolError(f"a whole number of more than {self.limits.digits} digits")
        return int(digits)

    def value(self, tree: Any, depth: int) -> Plain:
        self.items += 1
        self.limits.check(depth, self.items)
        if isinstance(tree, list):
            return self._values(tree, depth)
        if isinstance(tree, _Tagged):
            return self._untagged(tree.tag, tree.body, depth)
        if isinstance(tree, float) and not math.isfinite(tree):
            raise ProtocolError("a number beyond all floats")
        if isinstance(tree, str):
            tree.encode()  # half a surrogate pair is no text
        return tree

    def _values(self, trees: Any, depth: int, count: int | None = None) -> list[Plain]:
        if not isinstance(trees, list) or (count is not None and len(trees) != count):
            raise ProtocolError(f"a list of {count} was expected" if count else "a list was expected")
        return [self.value(tree, depth + 1) for tree in trees]

    def _untagged(self, tag: str, body: Any, depth: int) -> Plain:
        if tag == "tensor":
            tensor, self.data = _decode_tensor(body, self.data)
            return tensor
        if tag == "dict" and isinstance(body, list):
            return self._dict([self._values(pair, depth, 2) for pair in body])
        if tag == "tuple":
            return tuple(self._values(body, depth))
        if tag == "complex":
            parts = self._values(body, depth, 2)
            if all(type(part) is float for part in parts):
                return complex(*parts)
        if tag == "float" and isinstance(body, str) and body in NON_FINITE_FLOATS:
            return NON_FINITE_FLOATS[body]
        raise ProtocolError("no such kind of value")

    def _dict(self, pairs: list[list[Plain]]) -> dict[Plain, Plain]:
        if not all(_is_key(key) for key, _ in pairs):
            raise ProtocolError("a key that cannot be one")
        found = {pair[0]: pair[1] for pair in pairs}
        if len(found) < len(pairs):
            raise ProtocolError("a key that is there twice")
        return found


def _is_key(key: Plain) -> bool:
    if isinstance(key, tuple):
        return all(map(_is_key, key))
    return key is None or type(key) in (bool, int, float, str)


def _decode_tensor(head: object, data: memoryview) -> tuple[Tensor, memoryview]:
    """The tensor with this head and what is left of `data` after it.

    Raises:
        ProtocolError: the head is not one that `encoding` makes, or the bytes do not fit it.
    """
    name, shape, order, grad = _checked_head(head)
    dtype = DTYPES[name]
    size = math.prod(shape) * dtype.itemsize
    if size > len(data) or math.prod(max(length, 1) for length in shape) > 2**40:
        raise ProtocolError("a tensor that is larger than its bytes")
    raw = bytes(data[:size])
    if dtype == torch.bool and raw.translate(None, b"\0\1"):
        raise ProtocolError("a bool that is neither 0 nor 1")
    if grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ProtocolError(f"a gradient for a tensor of {name}")
    tensor = tensor_from(raw, dtype, shape, order)
    tensor.requires_grad = grad
    return tensor, data[size:]


def _checked_head(head: object) -> tuple[str, list[int], list[int], bool]:
    if not isinstance(head, list) or len(head) != 4:
        raise ProtocolError("a tensor without dtype, shape, order and gradient")
    name, shape, order, grad = head
    if not isinstance(name, str) or name not in DTYPES or not isinstance(grad, bool):
        raise ProtocolError("a tensor of no known dtype")
    if not isinstance(shape, list) or len(shape) > MAX_TENSOR_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise ProtocolError("a shape that is none")
    if not isinstance(order, list) or not all(type(n) is int for n in order) or sorted(order) != [*range(len(shape))]:
        raise ProtocolError("axes in no order")
    return name, shape, order, grad
