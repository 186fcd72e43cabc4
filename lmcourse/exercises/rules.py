"""What an answer must do without, enforced twice.

An exercise may rule out a function (`forbid=["torch.softmax", ".softmax"]`) or a whole module (`forbid=["struct"]`).
`forbidden_in_source` reads the learner's code, through aliases, imports and helpers; `Watch` sees the calls that are
really made. Either alone has holes: a dead branch calls nothing, and `getattr(torch, "soft" + "max")` reads as nothing.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name

Names = tuple[str, ...]

MACHINERY = {f"lmcourse.exercises.{module}" for module in ("rules", "limits", "outcome", "values", "checking")}
"""The modules that run an answer: their own calls are not the answer's."""


def matches(name: str, forbid: Iterable[str]) -> bool:
    """Whether a dotted name is ruled out.

    A rule covers the name itself and all below it ("torch.nn" covers "torch.nn.functional.silu"); a rule that starts
    with a dot covers every function and method of that name (".softmax" covers "torch.Tensor.softmax").
    """
    return any(
        name.endswith(rule) if rule.startswith(".") else name == rule or name.startswith(f"{rule}.") for rule in forbid
    )


class Watch(TorchFunctionMode):
    """Notes every forbidden call made inside a `with` block, however it was reached.

    Torch functions are seen by a torch function mode, everything else by Python's profiling hook. `seen` holds the
    names, in the order of the first call.
    """

    def __init__(self, forbid: Names) -> None:
        super().__init__()
        self.forbid = forbid
        self.seen: list[str] = []

    def __enter__(self) -> Watch:
        super().__enter__()  # type: ignore[no-untyped-call]
        self._profile = sys.getprofile()
        if self.forbid:
            sys.setprofile(self._on_call)
        return self

    def __exit__(self, *error: object) -> None:
        if self.forbid:
            sys.setprofile(self._profile)
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self._note(resolve_name(func) or f"torch.{getattr(func, '__name__', '')}")
        return func(*args, **(kwargs or {}))

    def _on_call(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            if module not in MACHINERY:
                self._note(f"{module}.{frame.f_code.co_qualname}")
        elif event == "c_call":
            self._note(full_name(called))

    def _note(self, name: str) -> None:
        if matches(name, self.forbid) and name not in self.seen:
            self.seen.append(name)


def full_name(function: Any) -> str:
    """The dotted name of a function, method or class: "math.frexp", "builtins.sum"."""
    owner = getattr(function, "__self__", None)
    name: str = getattr(function, "__qualname__", "")
    module = owner.__name__ if isinstance(owner, ModuleType) else getattr(function, "__module__", None) or "builtins"
    if module.startswith("_") and not module.startswith("__"):
        module = module[1:]  # the half of a module that is written in C: struct's is _struct
    return f"{module}.{name}"


def forbidden_in_source(answer: Any, forbid: Names) -> list[str]:
    """The forbidden names that the source of an answer, and of the learner's own helpers it uses, refers to."""
    found: dict[str, None] = {}
    for function in _own_functions(answer):
        for name in _names_used(function):
            if matches(name, forbid):
                found[name] = None
    return list(found)


def _own_functions(answer: Any) -> Iterator[FunctionType]:
    """The functions of an answer and, through their globals, of the helpers from the same module."""
    waiting = [answer]
    done: set[int] = set()
    while waiting:
        item = waiting.pop()
        if id(item) in done or getattr(item, "__module__", None) != answer.__module__:
            continue
        done.add(id(item))
        if isinstance(item, FunctionType):
            yield item
            waiting += [item.__globals__[name] for name in item.__code__.co_names if name in item.__globals__]
        elif isinstance(item, type):
            waiting += [
                getattr(member, "fget", None) or getattr(member, "__func__", member) for member in vars(item).values()
            ]


def _names_used(function: FunctionType) -> Iterator[str]:
    """Every dotted name in the source of a function, with aliases and imports resolved."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # typed into a console that keeps no source: the watch still sees it
        return
    local = _local_imports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute | ast.Name):
            yield from _resolve(node, local, function.__globals__)


def _local_imports(tree: ast.AST) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _resolve(node: ast.Attribute | ast.Name, local: Mapping[str, str], known: Mapping[str, Any]) -> Iterator[str]:
    """The dotted names that an expression like `F.softmax` stands for."""
    parts: list[str] = []
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        parts.insert(0, root.attr)
        root = root.value
    if parts:
        yield f".{parts[-1]}"
    if not isinstance(root, ast.Name):
        return
    if root.id in local:
        yield ".".join([local[root.id], *parts])
        return
    target = known.get(root.id, getattr(builtins, root.id, None))
    if isinstance(target, ModuleType):
        yield ".".join([target.__name__, *parts])
    elif callable(target) and not parts:
        yield _torch_name(target) or full_name(target)


def _torch_name(function: Any) -> str:
    """The public name of a torch function held under another name (`s = torch.softmax`), or nothing."""
    if isinstance(function, type):  # torch lists some types among its functions, `int` for one
        return ""
    try:
        return resolve_name(function) or ""
    except (TypeError, AttributeError):
        return ""
