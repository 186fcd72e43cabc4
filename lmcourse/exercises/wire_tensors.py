"""Tensors as bytes: dtype, shape and little-endian numbers in the order in which they lie in memory."""

from __future__ import annotations

import math
import sys
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.values import raw_bytes
from lmcourse.exercises.wire_limits import WireError

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
        *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    )
}
"""The dtypes that may be sent, by name."""

MOST_AXES = 32

if sys.byteorder != "little":  # no machine that PyTorch is released for
    raise ImportError("lmcourse.exercises.wire_tensors needs a little-endian machine")


def write(tensor: Tensor) -> tuple[list[Any], bytes]:
    """A tensor's head (dtype, shape, order of the axes in memory, whether it requires a gradient) and its bytes.

    The order makes a transposed input arrive transposed: `.view` then fails on it there as it does here.

    Raises:
        WireError: the tensor is on another device than the CPU, or of a dtype that is not in `DTYPES`.
    """
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.device.type != "cpu" or tensor.ndim > MOST_AXES:
        raise WireError(f"a tensor of dtype {name} with {tensor.ndim} axes on {tensor.device} cannot be sent")
    order = sorted(range(tensor.ndim), key=lambda axis: -tensor.stride()[axis])
    data = raw_bytes(tensor.detach().permute(order)).numpy().tobytes()
    return [name, list(tensor.shape), order, tensor.requires_grad], data


def read(head: object, data: memoryview) -> tuple[Tensor, memoryview]:
    """The tensor with this head and what is left of `data` after it.

    Raises:
        WireError: the head is not one that `write` makes, or the bytes do not fit it.
    """
    name, shape, order, grad = _checked(head)
    dtype = DTYPES[name]
    size = math.prod(shape) * dtype.itemsize
    if size > len(data) or math.prod(max(length, 1) for length in shape) > 2**40:
        raise WireError("a tensor that is larger than its bytes")
    raw = torch.frombuffer(bytearray(data[:size]), dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
    if dtype == torch.bool and bool((raw > 1).any()):
        raise WireError("a bool that is neither 0 nor 1")
    if grad and not (dtype.is_floating_point or dtype.is_complex):
        raise WireError(f"a gradient for a tensor of {name}")
    in_memory = raw.view(dtype).reshape([shape[axis] for axis in order])
    back = sorted(range(len(order)), key=order.__getitem__)
    return in_memory.permute(back).requires_grad_(grad), data[size:]


def _checked(head: object) -> tuple[str, list[int], list[int], bool]:
    if not isinstance(head, list) or len(head) != 4:
        raise WireError("a tensor without dtype, shape, order and gradient")
    name, shape, order, grad = head
    if not isinstance(name, str) or name not in DTYPES or not isinstance(grad, bool):
        raise WireError("a tensor of no known dtype")
    if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise WireError("a shape that is none")
    if not isinstance(order, list) or not all(type(n) is int for n in order) or sorted(order) != [*range(len(shape))]:
        raise WireError("axes in no order")
    return name, shape, order, grad
