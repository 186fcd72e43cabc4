"""Plain values as bytes, for a pipe whose other end is not trusted.

    length of the JSON (4 bytes) | JSON | the bytes of the tensors, one after the other

Never pickle: to unpickle is to run what the sender chose. JSON holds texts, finite numbers, true, false, null and lists
as they are; everything else is an object with one key that says what it is: `{"float": "nan"}`. `unpack` trusts
nothing: whatever the bytes are, it gives a plain value within the limits or raises `WireError`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lmcourse.exercises import wire_tensors
from lmcourse.exercises.values import NotPlainError, Plain, copy_input
from lmcourse.exercises.wire_limits import LENGTH, LIMITS, Limits, WireError

ODD_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""The numbers that JSON cannot hold."""


def pack(value: Plain, limits: Limits = LIMITS) -> bytes:
    """The bytes of a plain value; as everywhere, NumPy arrays become tensors and tuples lists.

    Raises:
        WireError: the value is not plain, or larger than the limits allow.
    """
    writer = _Writer(limits)
    try:
        tree = writer.tree(copy_input(value), 0)
        text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except NotPlainError as error:
        raise WireError(f"{error} cannot be sent") from error
    except UnicodeEncodeError as error:
        raise WireError("a text with half a surrogate pair cannot be sent") from error
    except RecursionError as error:
        raise WireError(f"nested more than {limits.depth} deep") from error
    if len(text) > limits.text:
        raise WireError(f"more than {limits.text} bytes of text")
    return b"".join([len(text).to_bytes(LENGTH, "little"), text, *writer.chunks])


def unpack(message: bytes, limits: Limits = LIMITS) -> Plain:
    """The plain value in these bytes.

    Raises:
        WireError: they hold none, or one beyond the limits. It raises nothing else.
    """
    length = int.from_bytes(message[:LENGTH], "little")
    text, data = message[LENGTH : LENGTH + length], memoryview(message)[LENGTH + length :]
    if len(message) < LENGTH or len(text) < length:
        raise WireError("the text is cut short")
    if len(text) > limits.text or len(data) > limits.data:
        raise WireError(f"more than {limits.text} bytes of text or {limits.data} bytes of tensors")
    reader = _Reader(limits, data)
    try:
        tree = json.loads(text.decode(), parse_int=reader.whole, parse_constant=_refused, object_pairs_hook=_tagged)
        value = reader.value(tree, 0)
    except WireError:
        raise
    except (ValueError, RecursionError) as error:
        raise WireError(f"no JSON ({type(error).__name__})") from error
    if reader.data:
        raise WireError("bytes that belong to no tensor")
    return value


class _Writer:
    """Turns plain values into what JSON can hold, and collects the bytes of tensors."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.items = 0
        self.room = limits.data
        self.chunks: list[bytes] = []

    def tree(self, value: Plain, depth: int) -> Any:
        self.items += 1
        self.limits.check(depth, self.items)
        if isinstance(value, Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, list):
            return self._trees(value, depth)
        if isinstance(value, tuple):  # a key of a dict: no other tuple is left in a plain value
            return {"tuple": self._trees(value, depth)}
        if isinstance(value, dict):
            return {"dict": [self._trees(pair, depth) for pair in value.items()]}
        if isinstance(value, complex):
            return {"complex": self._trees((value.real, value.imag), depth)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if type(value) is int and abs(value) >= 10**self.limits.digits:
            raise WireError(f"a whole number of more than {self.limits.digits} digits")
        return value

    def _trees(self, values: Any, depth: int) -> list[Any]:
        return [self.tree(value, depth + 1) for value in values]

    def _tensor(self, tensor: Tensor) -> list[Any]:
        self.room -= tensor.numel() * tensor.element_size()
        if self.room < 0:
            raise WireError(f"more than {self.limits.data} bytes of tensors")
        head, data = wire_tensors.write(tensor)
        self.chunks.append(data)
        return head


@dataclass(frozen=True)
class _Tagged:
    tag: str
    body: Any


def _tagged(pairs: list[tuple[str, Any]]) -> _Tagged:
    """In place of a JSON object. A key given twice would be a second one."""
    if len(pairs) != 1:
        raise WireError("an object with other than one key")
    return _Tagged(*pairs[0])


def _refused(literal: str) -> float:
    raise WireError(f"{literal}, which is not JSON")


class _Reader:
    """Turns what JSON held into plain values; `data` is what is left of the tensors' bytes."""

    def __init__(self, limits: Limits, data: memoryview) -> None:
        self.limits = limits
        self.data = data
        self.items = 0

    def whole(self, digits: str) -> int:
        if len(digits.lstrip("-")) > self.limits.digits:
            raise WireError(f"a whole number of more than {self.limits.digits} digits")
        return int(digits)

    def value(self, tree: Any, depth: int) -> Plain:
        self.items += 1
        self.limits.check(depth, self.items)
        if isinstance(tree, list):
            return self._values(tree, depth)
        if isinstance(tree, _Tagged):
            return self._untagged(tree.tag, tree.body, depth)
        if isinstance(tree, float) and not math.isfinite(tree):
            raise WireError("a number beyond all floats")
        if isinstance(tree, str):
            tree.encode()  # half a surrogate pair is no text
        return tree

    def _values(self, trees: Any, depth: int, count: int | None = None) -> list[Plain]:
        if not isinstance(trees, list) or (count is not None and len(trees) != count):
            raise WireError(f"a list of {count} was expected" if count else "a list was expected")
        return [self.value(tree, depth + 1) for tree in trees]

    def _untagged(self, tag: str, body: Any, depth: int) -> Plain:
        if tag == "tensor":
            tensor, self.data = wire_tensors.read(body, self.data)
            return tensor
        if tag == "dict" and isinstance(body, list):
            return self._dict([self._values(pair, depth, 2) for pair in body])
        if tag == "tuple":
            return tuple(self._values(body, depth))
        if tag == "complex":
            parts = self._values(body, depth, 2)
            if all(type(part) is float for part in parts):
                return complex(*parts)
        if tag == "float" and isinstance(body, str) and body in ODD_FLOATS:
            return ODD_FLOATS[body]
        raise WireError("no such kind of value")

    def _dict(self, pairs: list[list[Plain]]) -> dict[Plain, Plain]:
        if not all(_is_key(key) for key, _ in pairs):
            raise WireError("a key that cannot be one")
        found = {pair[0]: pair[1] for pair in pairs}
        if len(found) < len(pairs):
            raise WireError("a key that is there twice")
        return found


def _is_key(key: Plain) -> bool:
    if isinstance(key, tuple):
        return all(map(_is_key, key))
    return key is None or type(key) in (bool, int, float, str)
