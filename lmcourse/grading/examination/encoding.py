"""Encode plain values as bytes, for a connection whose other end is not trusted: the format, and its encoder.

    length of the JSON (4 bytes) | JSON | the bytes of the tensors, one after the other

Never pickle: to unpickle is to run what the sender chose. JSON holds texts, finite numbers, true, false, null and lists
as they are; everything else is an object with one key that says what it is: `{"float": "nan"}`. A tensor is its head in
the JSON (dtype, shape, order of the axes in memory, whether it requires a gradient), and its numbers, little-endian, in
the order in which they lie in memory.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.values import NotPlainError, Plain, copy_input

array_of: Callable[[Tensor], Any] = Tensor.numpy
"""The numbers of a tensor as an array. Where rules refuse that, what does it for us takes its place."""

tensor_of: Callable[..., Tensor] = torch.frombuffer
"""The same for bytes as a tensor."""

placed: Callable[..., Tensor] = Tensor.set_
"""The same for a tensor over memory that is there: the tensor, the memory, offset, shape and strides."""

LENGTH_BYTES = 4
"""Bytes of the length that stands in front of the JSON."""

NON_FINITE_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""The numbers that JSON cannot hold."""

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
        *("bfloat16", "float16", "float32", "float64", "complex32", "complex64", "complex128"),
    )
}
"""The dtypes that may be sent, by name."""

MAX_TENSOR_AXES = 32

if sys.byteorder != "little":  # no machine that PyTorch is released for
    raise ImportError("lmcourse.grading.examination.encoding needs a little-endian machine")


class ProtocolError(ValueError):
    """The bytes are no message, or the value does not fit into one; the text says why, in one line."""


@dataclass(frozen=True)
class MessageLimits:
    """Size limits of a message.

    Attributes:
        text: bytes of its JSON.
        data: bytes of its tensors, all together.
        depth: how deep lists and dicts may be nested.
        items: values in it, all together.
        digits: of a whole number.
    """

    text: int = 2 * 2**20
    data: int = 64 * 2**20
    depth: int = 32
    items: int = 200_000
    digits: int = 400

    @property
    def message(self) -> int:
        """Bytes of a whole message."""
        return LENGTH_BYTES + self.text + self.data

    def check(self, depth: int, items: int) -> None:
        """Raise ProtocolError if a value lies too deep, or is one too many."""
        if depth > self.depth:
            raise ProtocolError(f"nested more than {self.depth} deep")
        if items > self.items:
            raise ProtocolError(f"more than {self.items} values")


DEFAULT_LIMITS = MessageLimits()


def encode(value: Plain, limits: MessageLimits = DEFAULT_LIMITS) -> bytes:
    """The bytes of a plain value; as everywhere, NumPy arrays become tensors and tuples lists.

    Raises:
        ProtocolError: the value is not plain, or larger than the limits allow.
    """
    encoder = _Encoder(limits)
    try:
        tree = encoder.tree(copy_input(value), 0)
        text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except NotPlainError as error:
        raise ProtocolError(f"{error} cannot be sent") from error
    except UnicodeEncodeError as error:
        raise ProtocolError("a text with half a surrogate pair cannot be sent") from error
    except RecursionError as error:
        raise ProtocolError(f"nested more than {limits.depth} deep") from error
    if len(text) > limits.text:
        raise ProtocolError(f"more than {limits.text} bytes of text")
    return b"".join([len(text).to_bytes(LENGTH_BYTES, "little"), text, *encoder.chunks])


class _Encoder:
    """Turns plain values into what JSON can hold, and collects the bytes of tensors."""

    def __init__(self, limits: MessageLimits) -> None:
        self.limits = limits
        self.items = 0
        self.bytes_left = limits.data
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
            raise ProtocolError(f"a whole number of more than {self.limits.digits} digits")
        return value

    def _trees(self, values: Any, depth: int) -> list[Any]:
        return [self.tree(value, depth + 1) for value in values]

    def _tensor(self, tensor: Tensor) -> list[Any]:
        self.bytes_left -= tensor.numel() * tensor.element_size()
        if self.bytes_left < 0:
            raise ProtocolError(f"more than {self.limits.data} bytes of tensors")
        head, data = _encode_tensor(tensor)
        self.chunks.append(data)
        return head


def _encode_tensor(tensor: Tensor) -> tuple[list[Any], bytes]:
    """A tensor's head (dtype, shape, order of the axes in memory, whether it requires a gradient) and its bytes.

    The order makes a transposed input arrive transposed: `.view` then fails on it there as it does here. The memory is
    read as it is, with no operator that an exercise's rules may refuse while its results are sent.

    Args:
        tensor: a copy from `copy_input`, which leaves no gaps in memory.

    Raises:
        ProtocolError: the tensor is on another device than the CPU, or of a dtype that is not in `DTYPES`.
    """
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.device.type != "cpu" or tensor.ndim > MAX_TENSOR_AXES:
        raise ProtocolError(f"a tensor of dtype {name} with {tensor.ndim} axes on {tensor.device} cannot be sent")
    order = sorted(range(tensor.ndim), key=lambda axis: -tensor.stride()[axis])
    size, start = (count * tensor.element_size() for count in (tensor.numel(), tensor.storage_offset()))
    in_bytes = placed(torch.empty(0, dtype=torch.uint8), tensor.untyped_storage(), start, (size,), (1,))
    return [name, list(tensor.shape), order, tensor.requires_grad], array_of(in_bytes).tobytes()


def tensor_from(data: bytes, dtype: torch.dtype, shape: Sequence[int], order: Sequence[int]) -> Tensor:
    """A tensor of these bytes, whose axes lie in memory in this order; without an operator that a rule may refuse."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis], step = step, step * max(shape[axis], 1)
    if not data:
        return torch.empty_strided(shape, strides, dtype=dtype)
    memory = tensor_of(bytearray(data), dtype=torch.uint8).untyped_storage()
    return placed(torch.empty(0, dtype=dtype), memory, 0, tuple(shape), tuple(strides))
