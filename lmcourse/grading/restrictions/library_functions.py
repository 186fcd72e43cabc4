"""Have functions of libraries that are written in Python refuse to run, whoever holds them under whatever name.

Their code is replaced, in place: it does not matter whether a learner has imported, stored, wrapped, registered or
pickled the function before, or in which thread it is called.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import _lru_cache_wrapper, cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from lmcourse.exercises.forbidden_names import Names, matches
from lmcourse.grading.restrictions.families import EVERYTHING_RULE, FAMILIES, family

LIBRARIES = (
    *("torch", "functorch", "numpy", "lmcourse", "einops", "graphlib", "statistics", "transformers", "scipy"),
    *("networkx", "sympy", "mpmath", "tokenizers", "tiktoken"),
)
"""Packages in which a rule's functions are looked for."""

ALWAYS_ALLOWED = (
    *("lmcourse.exercises", "lmcourse.grading", "lmcourse.notebook", "lmcourse.text", "lmcourse.errors"),
    *("lmcourse.units", "lmcourse.report", "torch.autograd.grad_mode", "torch.autograd.forward_ad"),
    "torch.autograd.function",
)
"""Modules whose functions run around an answer, or are torch's own machinery."""

PROFILERS = ("torch.autograd.profiler", "torch.autograd.profiler_util")
"""Modules that torch's optimizers call to name what they do: refused only by a rule that names one of them."""

SHAPES_IN_PYTHON = (
    *("torch.functional", "torch._prims", "torch._prims_common", "torch._refs", "torch._decomp", "torch._subclasses"),
    *("torch._meta_registrations", "torch._numpy", "torch._inductor", "torch._dynamo", "torch.fx", "torch.masked"),
    *("torch.nn", "torch.distributed", "torch.distributions", "torch.sparse", "torch.nested", "torch.testing"),
)
"""Modules of torch that compute with shapes or numbers and may need no operator."""

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
        self._seen: dict[str, Any] = {}
        self._module_of_file: dict[str, str] = {}
        self._known: set[int] = set()
        self._index = _Index()
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
        """The functions that a rule covers, in the modules indexed so far; of torch's, those of its family too."""
        if rule not in self._covered:
            self._covered[rule] = [*self._index.covered(rule)]
        return self._covered[rule]

    def index_modules(self) -> None:
        """Look through the modules that were loaded since the last time.

        An answer's time limit may strike here: none counts as seen until its functions are known.
        """
        new, seen = _Index(), {}
        for name, module in list(sys.modules.items()):
            if self._seen.get(name) is module:
                continue
            seen[name] = module
            if isinstance(module, ModuleType) and name.partition(".")[0] in LIBRARIES:
                self._module_of_file.setdefault(str(vars(module).get("__file__")), name)
                if not matches(name, ALWAYS_ALLOWED):
                    for function in _functions(module):
                        new.add(function, function.__module__, function.__qualname__)
        self._take(new)
        self._seen.update(seen)

    def index_copies(self) -> None:
        """Look for functions that were made of the code of a library's elsewhere: of a module that was loaded twice,
        or under another name, or by hand. To be called after `index_modules`."""
        new = _Index()
        for one in gc.get_objects():
            if type(one) is FunctionType and id(one) not in self._known:
                module = self._module_of_file.get(one.__code__.co_filename, "")
                if module and not matches(module, ALWAYS_ALLOWED):
                    new.add(one, module, one.__code__.co_qualname)
        self._take(new)

    def _take(self, new: _Index) -> None:
        if not new.functions:
            return
        self._index.update(new)
        for rule, found in self._covered.items():
            found += new.covered(rule)
        self._ruled_out.clear()
        self._known |= {id(function) for function in new.functions}


class _Index:
    """Functions by their modules, and by the words of their names."""

    def __init__(self) -> None:
        self.functions: list[FunctionType] = []
        self._by_word: dict[str, list[FunctionType]] = {}
        self._by_module: dict[str, list[tuple[str, FunctionType]]] = {}
        self._words: dict[str, str] = {}
        self._families: dict[tuple[str, bool], list[FunctionType]] = {}

    def add(self, function: FunctionType, module: str, name: str) -> None:
        """Add a function, under the name that it has in its module: "Softmax.forward"."""
        self.functions.append(function)  # which holds it, so that no other one gets its number
        self._by_module.setdefault(module, []).append((name, function))
        for word in {*name.split("."), function.__name__}:
            self._by_word.setdefault(word, []).append(function)
        self._forget_families()

    def update(self, other: _Index) -> None:
        """Add all that another index has."""
        self.functions += other.functions
        for word, functions in other._by_word.items():
            self._by_word.setdefault(word, []).extend(functions)
        for module, named in other._by_module.items():
            self._by_module.setdefault(module, []).extend(named)
        self._forget_families()

    def covered(self, rule: str) -> Iterator[FunctionType]:
        """The functions that a rule covers. What a rule says of a class it says of all its methods."""
        if rule == EVERYTHING_RULE:
            yield from self._below(SHAPES_IN_PYTHON)
            return
        if rule.startswith("."):
            yield from self._by_word.get(rule[1:], ())
        else:
            yield from self._named(rule)
        if pattern := family(rule):
            yield from self._of_family(pattern, everywhere=rule in FAMILIES)

    def _named(self, rule: str) -> Iterator[FunctionType]:
        """Those that a dotted name covers."""
        for module, named in self._by_module.items():
            if matches(module, PROFILERS) and not matches(rule, PROFILERS):
                continue
            if matches(module, (rule,)) or rule.startswith(f"{module}."):
                yield from (function for name, function in named if matches(f"{module}.{name}", (rule,)))

    def _of_family(self, pattern: str, *, everywhere: bool) -> list[FunctionType]:
        """Those of torch, or else of its private modules, of whose names one is of the family. Many rules have the same
        one, and most modules nothing of it."""
        key = (pattern, everywhere)
        if key not in self._families:
            found = self._families[key] = []
            search, beginning = re.compile(pattern, re.MULTILINE).search, "torch." if everywhere else "torch._"
            for module, named in self._by_module.items():
                if not module.startswith(beginning):
                    continue
                if everywhere and search(_in_words(module)):
                    found += [one for _, one in named]
                elif search(self._words_of(module)):
                    found += [one for name, one in named if search(_in_words(name))]
        return self._families[key]

    def _words_of(self, module: str) -> str:
        """The words of the names of all functions of a module, to see at once whether any is of a family."""
        if module not in self._words:
            self._words[module] = "\n".join([_in_words(name) for name, _ in self._by_module[module]])
        return self._words[module]

    def _forget_families(self) -> None:
        self._words.clear()
        self._families.clear()

    def _below(self, modules: Collection[str]) -> Iterator[FunctionType]:
        for module, named in self._by_module.items():
            if matches(module, modules):
                yield from (function for _, function in named)


@cache
def _in_words(name: str) -> str:
    """The parts of a dotted name as torch's operators are written, a line each: "LayerNorm.forward" as "layer_norm",
    "layernorm" and "forward"."""
    parts = name.split(".")
    return "\n".join([*(_WORD_ENDS.sub("_", part).lower() for part in parts), *(part.lower() for part in parts)])


_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


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
        before, now = self._in_force, self._known.ruled_out(tuple(rules))
        for key in (before.keys() - now.keys()) & self._originals.keys():
            before[key][1].__code__ = self._originals[key]
            del self._originals[key]
        for key, (rule, function) in now.items() - before.items():
            if key not in self._originals:
                self._originals[key] = function.__code__
            function.__code__ = self._refusing_code(rule, self._originals[key], rules[rule])
        self._in_force = now  # at last: where a time limit strikes on the way, all of it is done again

    def _refusing_code(self, rule: str, original: CodeType, refuse: Callable[[], Any]) -> CodeType:
        key = (rule, id(original))  # it holds the code, so that no other one gets its number
        if key not in self._refusing:
            self._refusing[key] = original, refusing_code(original, Refusal(refuse))
        return self._refusing[key][1]


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that a module defines, also those behind decorators; of a class that says it is from
    here, those of its library: NumPy and torch move classes to where people import them from."""
    for value in list(vars(module).values()):
        own_class = issubclass(type(value), type) and _home(value) == module.__name__
        for member in list(vars(value).values()) if own_class else [value]:
            for part in _parts(member):
                while part is not None:
                    if type(part) is FunctionType and _is_from(module.__name__, part, moved=own_class):
                        yield part
                    part = vars(part).get("__wrapped__") if type(part) in WRAPPERS else None


def _is_from(module: str, function: FunctionType, *, moved: bool) -> bool:
    home = str(function.__module__)
    return home == module or (moved and home.partition(".")[0] == module.partition(".")[0])


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
