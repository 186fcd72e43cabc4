"""The rules of an exercise, enforced in the process that runs its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from lmcourse.exercises.forbidden_names import Names, matches
from lmcourse.grading.restrictions.dispatcher import COMPUTING_KEYS, DispatcherOverrides
from lmcourse.grading.restrictions.families import (
    AUTOGRAD_RULE,
    COUNTING_RULE,
    EVERYTHING_RULE,
    operators,
    warm_up,
    without_values,
)
from lmcourse.grading.restrictions.library_functions import FunctionOverrides, LibraryFunctions


class RuledOutError(Exception):
    """Raised where an answer would use what its exercise rules out."""


class Restrictions:
    """What is refused at the moment, and which rules were run into.

    To be held by nothing that the code of a notebook has a name for. Of the package nearly every exercise rules out
    all, and in a notebook on gradients most switch autograd off: both stay from one exercise to the next.
    """

    def __init__(self) -> None:
        functions = LibraryFunctions()
        functions.index_modules()
        self._package, self._functions = FunctionOverrides(functions), FunctionOverrides(functions)
        self._operators, self._autograd = DispatcherOverrides(), DispatcherOverrides()
        self._autograd_is_off = False
        self._rules: Names = ()
        self._package_rules: Names = ()
        self._broken: list[str] = []
        warm_up()

    def enforce(self, rules: Names) -> None:
        """Refuse what these rules cover, and nothing else any more."""
        if rules == self._rules:
            return
        self._rules = rules
        package = tuple(rule for rule in rules if matches(rule, ("lmcourse",)))
        if package != self._package_rules:
            self._package_rules = package
            self._package.clear()
            self._refuse_functions(self._package, package)
        others = tuple(rule for rule in rules if rule not in package)
        self._functions.clear()
        self._refuse_functions(self._functions, others)
        self._operators.clear()
        self._refuse_operators(others)
        self._switch_autograd(off=bool({AUTOGRAD_RULE, EVERYTHING_RULE} & {*rules}))

    def take_broken(self) -> tuple[str, ...]:
        """The rules that were run into since the last time."""
        broken = tuple(dict.fromkeys(self._broken))
        self._broken.clear()
        return broken

    def _refuse_functions(self, overrides: FunctionOverrides, rules: Names) -> None:
        for rule in rules:
            overrides.refuse(rule, self._refusing(rule))

    def _refuse_operators(self, rules: Names) -> None:
        known: set[str] = set()
        for rule in rules:
            names = {*operators(rule)} - known
            known |= names
            keys = COMPUTING_KEYS[:2] if rule == EVERYTHING_RULE else COMPUTING_KEYS
            self._operators.refuse(names, self._refusing(rule), keys)
        if COUNTING_RULE in rules:
            self._operators.refuse(without_values(), self._refusing(COUNTING_RULE), ("Meta",))

    def _switch_autograd(self, *, off: bool) -> None:
        if off and not self._autograd_is_off:
            self._autograd.switch_off_autograd()
        elif self._autograd_is_off and not off:
            self._autograd.clear()
        self._autograd_is_off = off

    def _refusing(self, rule: str) -> Callable[..., Any]:
        broken, name = self._broken, rule.lstrip(".")

        def refuse(*_: object, **__: object) -> NoReturn:
            broken.append(rule)
            raise RuledOutError(f"this exercise asks you to do without `{name}`")

        return refuse


KERNEL_FUNCTIONS = ("_dispatch_get_computed_kernel_for_dispatch_key", "_te")
"""Parts of torch by which a kernel can be kept, to be called without the dispatcher, or made from pieces."""

SCRIPT_FUNCTIONS = (
    *("_jit_script_compile", "_jit_script_class_compile", "_create_function_from_trace", "_create_method_from_trace"),
    *("_create_function_from_graph", "_create_function_from_trace_with_dict", "CompilationUnit"),
    *(
        "import_ir_module",
        "import_ir_module_from_buffer",
        "parse_ir",
        "_jit_to_static_module",
        "_load_for_lite_interpreter",
    ),
    *("_load_for_lite_interpreter_from_buffer", "_jit_interpret_graph", "GraphExecutorState"),
)
"""TorchScript, which differentiates by itself, and computes some things past the dispatcher. No exercise needs it."""


def close_side_doors() -> None:
    """Take the ways past the dispatcher away from this process. To be called before any code of a notebook runs, and
    after what needs them was made."""
    for name in (*KERNEL_FUNCTIONS, *SCRIPT_FUNCTIONS):
        if hasattr(torch._C, name):
            setattr(torch._C, name, _unavailable)
    new_library = torch._C._dispatch_library

    def dispatch_library(kind: str, namespace: str, *rest: Any) -> Any:
        """As torch's own; but operators that exist get no other kernels."""
        return _unavailable() if kind == "IMPL" and namespace == "aten" else new_library(kind, namespace, *rest)

    torch._C._dispatch_library = dispatch_library  # type: ignore[assignment]


def _unavailable(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("TorchScript and torch's own kernels are not available while a notebook is graded")
