"""Have functions that are written in C refuse to run, for every thread and for callers in C.

The address that CPython calls stands in the function's definition (`PyMethodDef`), which all objects for it share: it
is replaced by that of `PyErr_NoMemory`, which raises, whatever it is given. So it does not matter under which name the
function is held, nor whether `operator.methodcaller`, `map` or a thread that nobody watches calls it. NumPy's ufuncs
have the address in each object, and types that of what makes their objects.

The layouts are those of CPython (Include/cpython/methodobject.h, descrobject.h, object.h), the same since 3.9.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch

from lmcourse.exercises.forbidden_names import Names, matches
from lmcourse.grading.restrictions.families import AUTOGRAD_RULE, EVERYTHING_RULE

C_LIBRARIES = ("math", "_struct", "array", "_pickle", "numpy", "tokenizers")
"""Modules in which a rule's functions are looked for. Those of torch are in its dispatcher."""

ALL_IN_C = ("struct", "array", "tokenizers")
"""Those of which every type is written in C, or wraps one."""

NUMPY_RULE = "numpy"
CONVERSIONS = (torch.Tensor.numpy, torch.from_numpy, torch._C._to_dlpack, torch._C._from_dlpack)
"""What makes an array of a tensor, and back: to be done without where NumPy is."""

OTHERS: tuple[tuple[str, Any], ...] = (
    *(("torch.frombuffer", torch.frombuffer), ("torch.finfo", torch.finfo), ("torch.Size.numel", torch.Size.numel)),
    ("torch._C._infer_size", torch._C._infer_size),
    ("torch.UntypedStorage.from_buffer", torch.UntypedStorage.from_buffer),
    ("torch.UntypedStorage.from_file", torch.UntypedStorage.from_file),
    ("builtins.memoryview.cast", memoryview.cast),
    ("ctypes.from_buffer", type(ctypes.c_double).from_buffer),
    ("ctypes.from_buffer_copy", type(ctypes.c_double).from_buffer_copy),
)
"""Functions and types that are no operators of torch, and in none of `C_LIBRARIES`, by their names."""

PROFILER_RULE = "torch.autograd.profiler"
PROFILER_FUNCTIONS = ("_enable_profiler", "_enable_profiler_legacy", "_prepare_profiler")
"""What begins to count, in `torch._C._autograd`."""

USED_WITHIN = ("tobytes", "copy")
"""Methods of arrays by which results are sent."""

UFUNC_METHODS = ("at", "accumulate", "reduce", "reduceat")
"""What calls a ufunc by other ways than itself."""

POINTER = ctypes.sizeof(ctypes.c_void_p)
DEFINITION_OF_FUNCTION = 2 * POINTER
"""Where a builtin function has the pointer to its definition: behind the count of references and the type."""
DEFINITION_OF_METHOD = 5 * POINTER
"""And a method: behind these, the class, the name and the qualified name."""
ADDRESS_IN_DEFINITION = POINTER
DEFINITION_BYTES = 4 * POINTER
VECTORCALL_OFFSET = 7 * POINTER
"""Where a type says where its objects have the address that is called."""
CALL = 16 * POINTER
"""Where a type has the address that is called for its objects (`tp_call`)."""
WRAPPED = 6 * POINTER
"""And where the method `__call__` of a type that is written in C has it."""
NEW = 39 * POINTER
"""Where a type has the address of what makes its objects (`tp_new`)."""
HEAP_TYPE = 1 << 9
"""The flag of a type that was made in Python."""

SETTER = 2 * POINTER
"""Where the definition of an attribute has the address of what sets it."""

RAISES: int = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value or 0

Slot = ctypes.c_void_p


class CFunctionOverrides:
    """Functions written in C that raise MemoryError, by the rules in force.

    Where they have their addresses is looked up at the beginning, before an audit hook reports who looks at memory.
    """

    def __init__(self) -> None:
        self._named = [(name, _slot(function)) for name, function in (*_loaded(), *OTHERS)]
        counting = [getattr(torch._C._autograd, name, None) for name in PROFILER_FUNCTIONS]
        self._named += [(PROFILER_RULE, _slot(function)) for function in counting if function]
        self._dtype_setter = Slot.from_address((_definition(vars(np.ndarray)["dtype"]).value or 0) + SETTER)
        self._conversions = [_slot(function) for function in CONVERSIONS]
        self._differentiating = [_slot(torch._C._ImperativeEngine.run_backward), *_calls_of_nodes()]
        self._ufuncs = {f"numpy.{name}" for name, one in vars(np).items() if isinstance(one, np.ufunc)}
        self._ufunc_methods = [_slot(vars(np.ufunc)[name]) for name in UFUNC_METHODS]
        self._covered: dict[str, list[Slot]] = {}
        self._replaced: list[tuple[Slot, int | None]] = []

    def enforce(self, rules: Names) -> None:
        """Have what these rules cover refuse, and nothing else any more."""
        while self._replaced:
            slot, original = self._replaced.pop()
            slot.value = original
        for slot in (slot for rule in rules for slot in self._slots(rule)):
            self._replace(slot, RAISES)
        if NUMPY_RULE in rules:
            self._replace(self._dtype_setter, None)  # which Python takes for an attribute that cannot be set

    def _replace(self, slot: Slot, address: int | None) -> None:
        self._replaced.append((slot, slot.value))
        slot.value = address

    def _slots(self, rule: str) -> list[Slot]:
        """Where the addresses stand of the functions that a rule covers."""
        if rule not in self._covered:
            found = [(name, slot) for name, slot in self._named if matches(name, (rule,))]
            slots = [slot for _, slot in found] + (self._conversions if rule == NUMPY_RULE else [])
            slots += self._differentiating if rule in (AUTOGRAD_RULE, EVERYTHING_RULE) else []
            slots += self._ufunc_methods if self._ufuncs & {name for name, _ in found} else []
            self._covered[rule] = [*{ctypes.addressof(slot): slot for slot in slots}.values()]
        return self._covered[rule]


def unrefused(function: Any) -> Any:
    """A function or method that does the same, with a definition of its own: it stays as it is when others refuse."""
    original = _definition(function).value or 0
    definition = ctypes.create_string_buffer(ctypes.string_at(original, DEFINITION_BYTES))
    _kept.append(definition)
    if isinstance(function, BuiltinFunctionType):
        new, owner = ctypes.pythonapi.PyCFunction_NewEx, function.__self__
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        return new(ctypes.addressof(definition), owner, None)
    new = ctypes.pythonapi.PyDescr_NewMethod
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return new(function.__objclass__, ctypes.addressof(definition))


_kept: list[Any] = []
"""Definitions that functions point to."""


def _calls_of_nodes() -> Iterator[Slot]:
    """Where the addresses stand that are called for the nodes of a graph, which differentiate."""
    for kind in object.__subclasses__():
        if "next_functions" in vars(kind) and isinstance(call := vars(kind).get("__call__"), WrapperDescriptorType):
            yield Slot.from_address(id(kind) + CALL)
            yield Slot.from_address(id(call) + WRAPPED)


def _slot(function: Any) -> Slot:
    """Where the address stands that is called."""
    if isinstance(function, np.ufunc):
        offset = ctypes.c_ssize_t.from_address(id(type(function)) + VECTORCALL_OFFSET).value
        return Slot.from_address(id(function) + offset)
    if isinstance(function, type):
        return Slot.from_address(id(function) + NEW)
    return Slot.from_address((_definition(function).value or 0) + ADDRESS_IN_DEFINITION)


def _definition(function: Any) -> Slot:
    place = DEFINITION_OF_FUNCTION if isinstance(function, BuiltinFunctionType) else DEFINITION_OF_METHOD
    return Slot.from_address(id(function) + place)


def _loaded() -> Iterator[tuple[str, Any]]:
    """The functions and methods in C of these libraries, with their dotted names."""
    for name, module in sorted(sys.modules.items()):
        if matches(name, C_LIBRARIES) and isinstance(module, ModuleType):
            for key, value in [*vars(module).items()]:
                yield from _functions(key, value)


def _functions(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A function, ufunc or type of a module, with a type's methods; `key` is its name there."""
    if isinstance(value, BuiltinFunctionType):
        yield f"{(value.__module__ or '').lstrip('_')}.{value.__name__}", value
    elif isinstance(value, np.ufunc):
        yield f"numpy.{value.__name__}", value
    elif isinstance(value, type) and _is_written_in_c(value):
        yield f"{_home(value)}.{key}", value
        for name, member in vars(value).items():
            if isinstance(member, MethodDescriptorType | ClassMethodDescriptorType) and name not in USED_WITHIN:
                yield f"{_home(value)}.{value.__name__}.{name}", member


def _is_written_in_c(value: type) -> bool:
    return _home(value) in ALL_IN_C or (_home(value) == "numpy" and not value.__flags__ & HEAP_TYPE)


def _home(value: type) -> str:
    return value.__module__.lstrip("_").partition(".")[0]
