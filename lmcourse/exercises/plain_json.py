"""Convert plain values to JSON, with the numbers of their tensors as safetensors. Reading does not run code.

| value | JSON |
| --- | --- |
| None, a bool, a whole number of any size, a text, a list | itself |
| a float | a number with a point or an exponent, or `NaN`, `Infinity`, `-Infinity` |
| a complex number | `{"complex": [re, im]}` |
| a dict | `{"dict": [[key, value], ...]}` |
| a tuple, which only a key of a dict can be | `{"tuple": [...]}` |
| a tensor | `{"tensor": "t0", "order": [1, 0], "grad": false}` |
| a `Special` | `{"special": ["a set", value]}` |

`order` lists the axes of a tensor in their order in memory, slowest first; the tensor called "t0" is stored
contiguously with its axes in this order. So a transposed input stays transposed. `grad` says whether the tensor
requires a gradient. Complex numbers are stored as real numbers with a last axis of 2, and a note: `"dtype":
"complex64"`.

`from_json_tree` accepts untrusted input: for any input it returns a plain value or raises ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lmcourse.base.text import one_line
from lmcourse.exercises.values import MAX_VALUE_CHARS, Plain, Special, Unpacked, type_phrase

MAX_DEPTH = 32

MAX_AXES = 32

COMPLEX = {str(dtype)[6:]: dtype for dtype in (torch.complex32, torch.complex64, torch.complex128)}


def to_json_tree(value: Plain, tensors: dict[str, Tensor], *, depth: int = 0) -> Any:
    """Return a plain value as JSON data, and put its tensors into `tensors`; raise ValueError if it is not plain."""
    _check_depth(depth)
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str:
        value.encode()  # raises ValueError for half a surrogate pair
        return value
    if isinstance(value, Tensor):
        return _tensor_to_json(value, tensors)
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if type(value) in (list, Unpacked):
        return [to_json_tree(item, tensors, depth=depth + 1) for item in value]
    if type(value) is tuple:
        return {"tuple": [to_json_tree(item, tensors, depth=depth + 1) for item in value]}
    if type(value) is dict:
        return {"dict": [[to_json_tree(part, tensors, depth=depth + 1) for part in pair] for pair in value.items()]}
    if type(value) is Special:
        return {"special": [value.kind, to_json_tree(value.value, tensors, depth=depth + 1)]}
    raise ValueError(f"{type_phrase(value)} is not plain data")


def from_json_tree(tree: Any, tensors: Mapping[str, Tensor]) -> Plain:
    """Return the plain value from the result of `to_json_tree`; raise ValueError if the tree is invalid."""
    return _from_json(tree, dict(tensors), 0)


def _from_json(tree: Any, tensors: dict[str, Tensor], depth: int) -> Plain:
    """Return a plain value. Each entry of `tensors` may occur once, so that no two values share memory."""
    _check_depth(depth)
    if tree is None or type(tree) in (bool, int, float):
        return tree
    if type(tree) is str:
        tree.encode()
        return tree
    if type(tree) is list:
        return [_from_json(item, tensors, depth + 1) for item in tree]
    if type(tree) is dict and "tensor" in tree:
        return _tensor_from_json(tree, tensors)
    [(kind, inside)] = tree.items() if type(tree) is dict and len(tree) == 1 else [("", None)]
    if kind == "complex" and type(inside) is list and [type(part) for part in inside] == [float, float]:
        return complex(*inside)
    if kind == "tuple" and type(inside) is list:
        return tuple(_from_json(item, tensors, depth + 1) for item in inside)
    if kind == "special" and type(inside) is list and len(inside) == 2 and _is_phrase(inside[0]):
        return Special(inside[0], _from_json(inside[1], tensors, depth + 1))
    if kind == "dict" and type(inside) is list and all(type(pair) is list and len(pair) == 2 for pair in inside):
        pairs = [(_from_json(key, {}, depth + 1), _from_json(item, tensors, depth + 1)) for key, item in inside]
        if all(_is_key(key) for key, _ in pairs) and len(found := dict(pairs)) == len(pairs):
            return found
    raise ValueError("a value has an unknown kind")


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")


def _is_phrase(kind: object) -> bool:
    return type(kind) is str and kind == one_line(kind, MAX_VALUE_CHARS)


def _is_key(key: Plain) -> bool:
    return all(map(_is_key, key)) if type(key) is tuple else key is None or type(key) in (bool, int, float, str)


def _tensor_to_json(tensor: Tensor, tensors: dict[str, Tensor]) -> dict[str, Any]:
    dtype = str(tensor.dtype)[6:]
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu" or tensor.ndim > MAX_AXES:
        raise ValueError(f"a tensor of {dtype} on {tensor.device} with {tensor.ndim} axes cannot be stored")
    strides = tensor.stride()
    order = sorted(range(tensor.ndim), key=lambda axis: -strides[axis])
    numbers = tensor.detach().resolve_conj().resolve_neg()
    if dtype in COMPLEX:
        numbers = torch.view_as_real(numbers)
    name = f"t{len(tensors)}"
    axes = [*order, *range(tensor.ndim, numbers.ndim)]
    tensors[name] = numbers.permute(axes).clone(memory_format=torch.contiguous_format)
    note = {"dtype": dtype} if dtype in COMPLEX else {}
    return {"tensor": name, "order": order, "grad": tensor.requires_grad, **note}


def _tensor_from_json(tree: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    name, order, grad, dtype = (tree.get(part) for part in ("tensor", "order", "grad", "dtype"))
    if type(name) is not str or name not in tensors or type(order) is not list or type(grad) is not bool:
        raise ValueError("a tensor lacks its numbers, order or grad")
    numbers = tensors.pop(name)
    fits = numbers.ndim <= MAX_AXES + 1 and all(type(axis) is int for axis in order)
    if dtype is not None and (type(dtype) is not str or dtype not in COMPLEX):
        raise ValueError("a tensor has an unknown dtype")
    if dtype is not None:
        fits = fits and numbers.dtype == COMPLEX[dtype].to_real() and numbers.shape[-1:] == (2,)
    if not fits or sorted(order) != [*range(numbers.ndim - (dtype is not None))]:
        raise ValueError("the numbers of a tensor do not match its description")
    if numbers.dtype == torch.bool and numbers.numel() and numbers.view(torch.uint8).max() > 1:
        raise ValueError("a bool is neither 0 nor 1")
    numbers = numbers.clone()
    tensor = numbers if dtype is None else torch.view_as_complex(numbers)
    tensor = tensor.permute([order.index(axis) for axis in range(len(order))])
    if grad and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"a tensor of {tensor.dtype} cannot have a gradient")
    return tensor.requires_grad_(grad)
