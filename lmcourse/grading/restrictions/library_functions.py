"""Have functions of libraries that are written in Python refuse to run, whoever holds them under whatever name.

Their code is replaced, in place: it does not matter whether a learner has imported, stored, wrapped, registered or
pickled the function before, or in which thread it is called.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import _lru_cache_wrapper
from operator import is_
from types import CodeType, FunctionType, ModuleType
from typing import Any

from lmcourse.exercises.forbidden_names import Names, matches
from lmcourse.grading.restrictions.families import EVERYTHING_RULE, family

LIBRARIES = ("torch", "numpy", "lmcourse", "einops", "graphlib", "transformers", "scipy")
"""Packages in which a rule's functions are looked for."""

ALWAYS_ALLOWED = (
    *("lmcourse.exercises", "lmcourse.grading", "lmcourse.notebook", "lmcourse.text", "lmcourse.errors"),
    *("lmcourse.units", "lmcourse.report", "torch.autograd.grad_mode", "torch.autograd.forward_ad"),
    *("torch.autograd.function", "torch.autograd.profiler", "torch.autograd.profiler_util"),
)
"""Modules whose functions run around an answer, or are torch's own machinery."""

WRAPPERS = (FunctionType, _lru_cache_wrapper)
"""What holds a function that it wraps."""

_TEMPLATE = compile('def refusing(*args, **kwargs): return "refusal".refuse()', "<refused>", "exec")
_REFUSING: CodeType = next(part for part in _TEMPLATE.co_consts if isinstance(part, CodeType))


class Refusal:
    """Stands as a constant in the code of a refused function."""

    def __init__(self, refuse: Callable[[], Any]) -> None:
        self.refuse = refuse


class LibraryFunctions:
    """The functions of the loaded libraries, found by the rules that cover them."""

    def __init__(self) -> None:
        self._indexed: dict[str, Any] = {}
        self._loaded: list[Any] = []
        self._by_name: dict[str, list[FunctionType]] = {}
        self._by_module: dict[str, list[FunctionType]] = {}
        self._covered: dict[str, list[FunctionType]] = {}
        self._ruled_out: dict[Names, dict[int, tuple[str, FunctionType]]] = {}

    def ruled_out(self, rules: Names) -> dict[int, tuple[str, FunctionType]]:
        """The functions that any of these rules covers, by their numbers, and the first rule that does. Not to be
        changed."""
        if rules not in self._ruled_out:
            covered = ((rule, function) for rule in reversed(rules) for function in self.covered(rule))
            self._ruled_out[rules] = {id(function): (rule, function) for rule, function in covered}
        return self._ruled_out[rules]

    def covered(self, rule: str) -> list[FunctionType]:
        """The functions that a rule covers, in the modules indexed so far; of torch's private modules, those of its
        family too."""
        if rule not in self._covered:
            self._covered[rule] = [*_covered(rule, self._by_name, self._by_module)]
        return self._covered[rule]

    def index_modules(self) -> None:
        """Look through the modules that were loaded since the last time."""
        loaded = [*sys.modules.values()]
        if len(loaded) == len(self._loaded) and all(map(is_, loaded, self._loaded)):
            return
        self._loaded = loaded
        by_name: dict[str, list[FunctionType]] = {}
        by_module: dict[str, list[FunctionType]] = {}
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in LIBRARIES and self._indexed.get(name) is not module:
                self._indexed[name] = module
                if isinstance(module, ModuleType) and not matches(name, ALWAYS_ALLOWED):
                    for function in _functions(module):
                        by_name.setdefault(function.__name__, []).append(function)
                        by_module.setdefault(function.__module__, []).append(function)
        if not by_name:
            return
        for known, new in ((self._by_name, by_name), (self._by_module, by_module)):
            for name, functions in new.items():
                known.setdefault(name, []).extend(functions)
        self._ruled_out.clear()
        for rule, found in self._covered.items():
            found += _covered(rule, by_name, by_module)


def _covered(
    rule: str, by_name: Mapping[str, list[FunctionType]], by_module: Mapping[str, list[FunctionType]]
) -> Iterator[FunctionType]:
    """Of these functions, those that a rule covers."""
    if rule.startswith("."):
        yield from by_name.get(rule[1:], ())
        pattern = re.compile(family(rule) or "$^")
        variants = (functions for name, functions in by_name.items() if pattern.search(name))
        yield from (one for functions in variants for one in functions if one.__module__.startswith("torch._"))
    elif rule != EVERYTHING_RULE:
        for module, functions in by_module.items():
            if matches(module, (rule,)) or rule.startswith(f"{module}."):
                yield from (one for one in functions if matches(f"{module}.{one.__qualname__}", (rule,)))


class FunctionOverrides:
    """Functions whose code refuses, by the rules in force.

    From one set of rules to the next, only what differs is touched: a write to a function copies a page of memory that
    the processes of a class share. Nor is any other read: Python tells the audit hook of each look at a code.
    """

    def __init__(self, functions: LibraryFunctions) -> None:
        self._known = functions
        self._in_force: dict[int, tuple[str, FunctionType]] = {}
        self._originals: dict[int, CodeType] = {}
        self._refusing: dict[tuple[str, int], tuple[CodeType, CodeType]] = {}

    def enforce(self, rules: dict[str, Callable[[], Any]]) -> None:
        """Have the functions that these rules cover refuse, and give all others their code back.

        Args:
            rules: for each what is called instead, and raises; the first of several that cover a function counts.
        """
        before, self._in_force = self._in_force, self._known.ruled_out(tuple(rules))
        for key in before.keys() - self._in_force.keys():
            before[key][1].__code__ = self._originals.pop(key)
        for key, (rule, function) in self._in_force.items() - before.items():
            if key not in self._originals:
                self._originals[key] = function.__code__
            function.__code__ = self._refusing_code(rule, self._originals[key], rules[rule])

    def _refusing_code(self, rule: str, original: CodeType, refuse: Callable[[], Any]) -> CodeType:
        key = (rule, id(original))  # it holds the code, so that no other one gets its number
        if key not in self._refusing:
            self._refusing[key] = original, refusing_code(original, Refusal(refuse))
        return self._refusing[key][1]


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that a module defines, also those behind decorators."""
    for value in list(vars(module).values()):
        own_class = issubclass(type(value), type) and _home(value) == module.__name__
        for member in list(vars(value).values()) if own_class else [value]:
            for part in _parts(member):
                while part is not None:
                    if type(part) is FunctionType and _home(part) == module.__name__:
                        yield part
                    part = vars(part).get("__wrapped__") if type(part) in WRAPPERS else None


def _parts(member: Any) -> list[Any]:
    if type(member) is property:
        return [member.fget, member.fset]
    return [member.__func__] if type(member) in (staticmethod, classmethod) else [member]


def _home(item: Any) -> Any:
    return item.__module__ if type(item) is FunctionType or issubclass(type(item), type) else None


def refusing_code(original: CodeType, refusal: Refusal) -> CodeType:
    """Code that asks the refusal instead of what this code does, to be put in its place."""
    constants: Sequence[Any] = [refusal if part == "refusal" else part for part in _REFUSING.co_consts]
    return _REFUSING.replace(
        co_consts=tuple(constants),
        co_freevars=original.co_freevars,
        co_filename=original.co_filename,
        co_name=original.co_name,
        co_firstlineno=original.co_firstlineno,
    )
