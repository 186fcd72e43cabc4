"""The rules of an exercise, enforced in the process that runs its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

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
        self._known = LibraryFunctions()
        self._known.index_modules()
        self._package, self._functions = FunctionOverrides(self._known), FunctionOverrides(self._known)
        self._operators, self._autograd = DispatcherOverrides(), DispatcherOverrides()
        self._autograd_is_off = False
        self._rules: Names = ()
        self._package_rules: Names = ()
        self._broken: list[str] = []
        warm_up()
        self.enforce(("lmcourse",))  # which nearly every exercise rules out: a process that is forked has it prepared
        self.enforce(())

    def enforce(self, rules: Names) -> None:
        """Refuse what these rules cover, and nothing else any more."""
        if rules == self._rules:
            return
        self._rules = rules
        self._known.index_modules()
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
