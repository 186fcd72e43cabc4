"""Match names that an answer may not use, and find them in its source.

An exercise may forbid a function (`forbid=["torch.softmax", ".softmax"]`) or a whole module (`forbid=["struct"]`).
`forbidden_in_source` searches the learner's code, including aliases, imports and helpers; `rules.watched` detects the
torch operators that the code really calls. Both can be circumvented. But the solutions are public anyway, so the rules
only help learners.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import linecache
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pkgutil import iter_modules
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from torch import optim
from torch.overrides import resolve_name

from lmcourse.base.text import one_line

Names = tuple[str, ...]
ANSWER_LIBRARIES = ("transformers", "torchtune", "litgpt", "timm", "fairseq", "xformers", "flash_attn")
"""Libraries of whole models, which contain the answers to many exercises, so no answer may use them."""

NO_AUTOGRAD = (
    *(".backward", ".requires_grad_", "torch.autograd", "torch.func", "torch.gradient"),
    *("sympy", "mpmath", "numpy.gradient", "numpy.polynomial"),
)
"""Forbidden names for exercises that ask for a gradient by hand."""

NO_COUNTER = ("torch.utils.flop_counter", "torch.profiler", "torch.autograd.profiler", ".einsum_path", "._flop_count")
"""Forbidden names for exercises that ask for the cost of a computation."""

NOT_MEASURED = (
    *("threading", "_thread", "concurrent", "multiprocessing", "asyncio", "subprocess", "ctypes", "os", "sys", "gc"),
    *("io", "mmap", "pickle", "inspect", "importlib", "builtins.open", "builtins.exec", "builtins.eval", "numpy"),
    *("torch._C", "torch.overrides", "torch.utils._python_dispatch", "torch.utils.cpp_extension"),
    *("torch.multiprocessing", "torch.compile", "torch.jit", "torch.library", "torch.save"),
)
"""Forbidden names for answers whose calls are measured (see `measured`): what they do there is not seen."""

_MACHINERY = ("Optimizer", "optimizer", "lr_scheduler", "swa_utils")
_OPTIMIZERS = [name for name, one in vars(optim).items() if isinstance(one, type)]
_OPTIMIZERS += [module.name for module in iter_modules(optim.__path__)]
NO_OPTIMIZER = (*(f"torch.optim.{name}" for name in _OPTIMIZERS if name not in _MACHINERY), "torch.distributed.optim")
"""Forbidden names for exercises that ask for an optimizer, because each of torch's optimizers can imitate others."""

MAX_LINE_CHARS = 80

LOAD_GLOBAL, LOAD_NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]
"""Python's bytecode instructions that look up a global name. The module `dis` can also find them, but it takes ten
times as long."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def matches(name: str, forbid: Iterable[str]) -> bool:
    """Return True if a dotted name is forbidden.

    A rule covers the name itself and all names below it ("torch.nn" covers "torch.nn.functional.silu"); a rule that
    starts with a dot covers every function and method of that name (".softmax" covers "torch.Tensor.softmax"). Python's
    own functions are in "builtins": "builtins.sum".
    """
    return any(
        name.endswith(rule) if rule.startswith(".") else name == rule or name.startswith(f"{rule}.") for rule in forbid
    )


def full_name(function: Any) -> str:
    """Return the dotted name of a function, method, class or of an object's class: "math.frexp", "builtins.sum"."""
    owner = getattr(function, "__self__", None)
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    module = owner.__name__ if isinstance(owner, ModuleType) else getattr(function, "__module__", None) or "builtins"
    if module.startswith("_") and not module.startswith("__"):
        module = module[1:]  # the part of a module that is written in C, such as _struct for struct
    return f"{module}.{name}"


class Use(NamedTuple):
    """A name that an answer uses, the learner's line that uses it and, if known, the number of this line."""

    name: str
    line: str = ""
    number: int = 0


def forbidden_in_source(answer: Any, forbid: Names) -> list[Use]:
    """Return the forbidden names in the source of an answer and of the learner's helpers that it uses."""
    found: dict[str, Use] = {}
    for item in _own(answer):
        for name, number in _names_used(item):
            if matches(name, forbid):
                found.setdefault(name, Use(name, _line_of(item, number), number))
    return list(found.values())


def _line_of(item: FunctionType | type, number: int) -> str:
    file = item.__code__.co_filename if isinstance(item, FunctionType) else ""
    return one_line(linecache.getline(file, number).strip(), MAX_LINE_CHARS)


def _own(answer: Any) -> Iterator[FunctionType | type]:
    """Return the functions and classes of an answer, and of the helpers in the same module that it uses."""
    home = _home(inspect.unwrap(answer))
    waiting = [answer]
    done: set[int] = set()
    while waiting:
        item = inspect.unwrap(waiting.pop())
        if id(item) in done or _home(item) != home:
            continue
        done.add(id(item))
        if isinstance(item, FunctionType):
            yield item
            waiting += [item.__globals__[name] for name in global_names(item.__code__) if name in item.__globals__]
        elif isinstance(item, type):
            yield item
            waiting += [part for member in vars(item).values() for part in _parts(member)]
            waiting += item.__bases__


def _home(item: Any) -> Any:
    return getattr(item, "__module__", None)


def _parts(member: Any) -> list[Any]:
    """Return the functions of a method, property, static method or class method."""
    names = ("fget", "fset", "func", "__func__")
    return [part for part in (member, *(getattr(member, name, None) for name in names)) if part is not None]


def global_names(code: CodeType) -> Iterator[str]:
    """Yield the global names that a function, or a function inside it, looks up."""
    extended, bytecode = 0, code.co_code
    for operation, low in zip(bytecode[::2], bytecode[1::2], strict=True):
        argument = extended | low
        extended = argument << 8 if operation == dis.EXTENDED_ARG else 0
        if operation == LOAD_GLOBAL:
            yield code.co_names[argument >> 1]  # the last bit is a flag
        elif operation == LOAD_NAME:
            yield code.co_names[argument]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from global_names(inner)


def _names_used(item: FunctionType | type) -> Iterator[tuple[str, int]]:
    """Yield every dotted name in the source of a function with its line number; aliases and imports are resolved.

    For a class, these are its bases and assigned functions, as in `weigh = staticmethod(torch.softmax)`.
    """
    if isinstance(item, type):
        members = [part for member in vars(item).values() for part in _parts(member)]
        borrowed = [part for part in (*item.__bases__, *members) if callable(part) and _home(part) != _home(item)]
        yield from ((_torch_name(part) or full_name(part), 0) for part in borrowed)
        return
    for definition in _definitions(item.__code__):
        nodes = list(computed(definition))
        imported = _imported(nodes)
        outside = [*_decorators(definition), *definition.args.defaults, *filter(None, definition.args.kw_defaults)]
        loaded = {*global_names(item.__code__)}
        loaded |= {node.id for part in outside for node in ast.walk(part) if isinstance(node, ast.Name)}
        found = {name: item.__globals__.get(name, getattr(builtins, name, None)) for name in loaded}
        # A learner's helper may be called `sigmoid`; its own code is checked separately.
        known = {name: target for name, target in found.items() if _home(target) != _home(item)}
        for node in nodes:
            names: Iterable[str] = ()
            if isinstance(node, ast.Import):
                names = (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names = (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Attribute | ast.Name):
                names = _resolve(node, imported, known)
            yield from ((name, getattr(node, "lineno", 0)) for name in names)


def mentions(function: FunctionType, name: str) -> bool:
    """Return True if a function's source has this name, say of an argument, in its code, or if there is no source."""
    definitions = _definitions(function.__code__)
    nodes = (node for definition in definitions for node in ast.walk(definition))
    return not definitions or any(isinstance(node, ast.Name) and node.id in (name, "locals") for node in nodes)


def _definitions(code: CodeType) -> list[Definition]:
    """Return where a function is defined. A console that does not keep the source gives no place; then only
    `rules.watched` helps.
    """
    tree = _parsed("".join(linecache.getlines(code.co_filename)))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, Definition)
        and getattr(node, "name", "<lambda>") == code.co_name
        and min([node.lineno, *(decorator.lineno for decorator in _decorators(node))]) == code.co_firstlineno
    ]


def _decorators(node: Definition) -> list[ast.expr]:
    return [] if isinstance(node, ast.Lambda) else node.decorator_list


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def computed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all nodes below it, except annotations, which are not part of the computation."""
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from computed(child)


def _imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _resolve(node: ast.Attribute | ast.Name, imported: Mapping[str, str], known: Mapping[str, Any]) -> Iterator[str]:
    """Return the dotted names that an expression like `F.softmax` stands for."""
    parts: list[str] = []
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        parts.insert(0, root.attr)
        root = root.value
    own_method = isinstance(root, ast.Name) and root.id in ("self", "cls") and len(parts) == 1
    if parts and not own_method:
        yield f".{parts[-1]}"
    if not isinstance(root, ast.Name):
        return
    if root.id in imported:
        yield ".".join([imported[root.id], *parts])
        return
    target = known.get(root.id)
    if isinstance(target, ModuleType):
        yield ".".join([target.__name__, *parts])
    elif isinstance(target, type) or (callable(target) and not parts):
        yield ".".join([_torch_name(target) or full_name(target), *parts])


def _torch_name(function: Any) -> str:
    """Return the public name of a torch function that has another name (`s = torch.softmax`), or ""."""
    if isinstance(function, type):  # torch lists some types among its functions, for example `int`
        return ""
    try:
        return resolve_name(function) or ""
    except (TypeError, AttributeError):
        return ""
