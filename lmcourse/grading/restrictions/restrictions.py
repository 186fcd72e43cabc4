"""The rules of an exercise, enforced in the process that runs its answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import torch

from lmcourse.exercises.forbidden_names import Names, hold_from_the_start, matches
from lmcourse.grading.examination import encoding
from lmcourse.grading.restrictions.c_functions import CFunctionOverrides, unrefused
from lmcourse.grading.restrictions.dispatcher import (
    COMPUTING_KEYS,
    DispatcherOverrides,
    Override,
    kernel_of,
    without_autograd,
    without_kernels,
)
from lmcourse.grading.restrictions.families import (
    AUTOGRAD_RULE,
    COUNTING_RULE,
    EVERYTHING_RULE,
    operators,
    warm_up,
    without_values,
)
from lmcourse.grading.restrictions.late_imports import watch_imports
from lmcourse.grading.restrictions.library_functions import FunctionOverrides, LibraryFunctions

ALWAYS_LOADED = ("torch", "numpy", "lmcourse")
"""Libraries that go on importing parts of themselves as they work."""

KNOWN_LIBRARIES: frozenset[str] = frozenset().union(
    ("torch", "torchgen", "functorch", "numpy", "lmcourse", "einops", "jaxtyping", "wadler_lindig", "sympy"),
    ("mpmath", "networkx", "jinja2", "markupsafe", "fsspec", "filelock", "typing_extensions", "packaging"),
    ("matplotlib", "matplotlib_inline", "mpl_toolkits", "PIL", "contourpy", "cycler", "kiwisolver", "fontTools"),
    ("pyparsing", "dateutil", "six", "IPython", "ipywidgets", "traitlets", "comm", "tokenizers", "safetensors"),
    ("pygments", "decorator", "prompt_toolkit", "wcwidth", "stack_data", "executing", "asttokens", "pure_eval"),
    ("scipy", "pandas", "pytz", "tzdata", "tqdm", "rich", "seaborn"),
)
"""Libraries that may be loaded where rules hold; their functions are found by the rules, or compute nothing."""

READERS_OF_BITS = (
    "_testcapi",
    "_testinternalcapi",
    "_testbuffer",
    "_testclinic",
    "_ctypes_test",
    "sqlite3",
    "_sqlite3",
)
"""Modules of Python's own that read numbers and memory, and that no answer needs."""


class RuledOutError(Exception):
    """Raised where an answer would use what its exercise rules out."""


class Restrictions:
    """What is refused at the moment, and which rules were run into.

    To be held by nothing that the code of a notebook has a name for. What two exercises in a row rule out stays refused
    from one to the next.
    """

    def __init__(self) -> None:
        self._known = LibraryFunctions()
        self._known.index_modules()
        self._functions, self._c_functions = FunctionOverrides(self._known), CFunctionOverrides()
        self._operators = DispatcherOverrides()
        self._overrides: dict[Names, tuple[Override, ...]] = {}
        self._rules: Names = ()
        self._cells_ran = False
        self._importing = False
        self._forget_imports: Callable[[], None] = lambda: None
        self._broken: list[str] = []
        self._refusals: dict[str, Callable[..., Any]] = {}
        warm_up()
        encoding.array_of, encoding.tensor_of = unrefused(torch.Tensor.numpy), unrefused(torch.frombuffer)
        encoding.placed = kernel_of("aten::set_.source_Storage_storage_offset")

    def prepare(self, prepared: Iterable[Names]) -> None:
        """Get ready for these sets of rules, when everything is loaded: a process that is forked is ready for them."""
        for rules in (("lmcourse",), *prepared, ()):  # nearly every exercise rules the package out
            self.enforce(rules)
        self._cells_ran = False

    def enforce(self, rules: Names) -> None:
        """Refuse what these rules cover, and nothing else any more."""
        if rules == self._rules:
            self._cells_ran |= not rules
            return
        self._rules = rules
        self._known.index_modules()
        if rules and self._cells_ran:
            self._known.index_copies()
        self._cells_ran = not rules
        self._refuse_functions()
        self._c_functions.enforce(rules)
        if rules not in self._overrides:
            self._overrides[rules] = tuple(self._overrides_by(rules))
        self._operators.enforce(self._overrides[rules])

    def watch_imports(self) -> None:
        """From now on, what is imported while rules hold is refused as well. To be called once in a process."""
        hooks = (self._refuse_import, self._refuse_code, self._refuse_reading, self._refuse_loaded)
        self._forget_imports = watch_imports(*hooks)

    def take_broken(self) -> tuple[str, ...]:
        """The rules that were run into since the last time. To be called after each statement and case.

        What was imported meanwhile is refused from now on at the latest, if a time limit struck before it was.
        """
        if self._importing:
            self._forget_imports()
            self._refuse_loaded()
        broken = tuple(dict.fromkeys(self._broken))
        self._broken.clear()
        return broken

    def _refuse_functions(self) -> None:
        self._functions.enforce({rule: self._refusing(rule) for rule in self._rules})

    def _refuse_import(self, name: str) -> None:
        """Raise where a rule covers a whole library, and this is a module of it. Of other libraries, whose functions no
        rule knows, only those can be loaded that torch, NumPy and figures need."""
        self._importing = True
        for rule in self._rules:
            if matches(name, (rule,)) and not matches(rule, ALWAYS_LOADED):
                self._refusing(rule)()
        if hold_from_the_start(self._rules) and not _is_known(name):
            raise ModuleNotFoundError(f"there is no module {name!r} where this exercise is judged", name=name)

    def _refuse_code(self) -> None:
        if self._rules:
            self._refusing(self._rules[0])()

    def _refuse_reading(self) -> None:
        if hold_from_the_start(self._rules):
            raise PermissionError("the code of libraries is not read where this exercise is judged")

    def _refuse_loaded(self) -> None:
        if self._rules:
            self._known.index_modules()
            self._known.index_copies()
            self._refuse_functions()
        self._importing = False

    def _overrides_by(self, rules: Names) -> Iterator[Override]:
        """What these rules put in the place of torch's operators; of several that cover one, the first counts."""
        known: frozenset[str] = frozenset()
        for rule in rules:
            names = frozenset(operators(rule)) - known
            known |= names
            if names:
                keys = COMPUTING_KEYS[:2] if rule == EVERYTHING_RULE else COMPUTING_KEYS
                yield Override(names, self._refusing(rule), keys)
            if rule == EVERYTHING_RULE:
                yield without_kernels(names)
        if COUNTING_RULE in rules:
            yield without_kernels(without_values())
        if {AUTOGRAD_RULE, EVERYTHING_RULE} & {*rules}:
            yield without_autograd()

    def _refusing(self, rule: str) -> Callable[..., Any]:
        if rule not in self._refusals:
            self._refusals[rule] = self._new_refusal(rule)
        return self._refusals[rule]

    def _new_refusal(self, rule: str) -> Callable[..., Any]:
        broken, name = self._broken, rule.lstrip(".")

        def refuse(*_: object, **__: object) -> NoReturn:
            broken.append(rule)
            raise RuledOutError(f"this exercise asks you to do without `{name}`")

        return refuse


def _is_known(name: str) -> bool:
    """Whether a module may be loaded where rules hold: Python's own, and those of `KNOWN_LIBRARIES`."""
    top = name.partition(".")[0]
    return top not in READERS_OF_BITS and (top in KNOWN_LIBRARIES or top in sys.stdlib_module_names)
