"""Find the notebooks that depend on the device from their text, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ASKED = "lmcourse.base.device.best_device"
DEVICES = {"cuda", "mps"}


def branching_notebooks(course: Path, asking: set[str]) -> set[str]:
    """Return the folders of notebooks whose code `branches`."""
    sources = course.glob("solutions/*/*.py")
    return {path.parent.name for path in sources if branches(path.read_text(encoding="utf-8"), asking)}


def branches(code: str, asking: set[str]) -> bool:
    """Return True if code names a GPU or a function that asks for the device."""
    tree = ast.parse(code)
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return bool(DEVICES & (attributes | texts)) or bool(asking & set(_used(tree, _imports(tree))))


def asking_functions(course: Path) -> set[str]:
    """Return the package's functions and classes that ask for the best device, directly or through others."""
    uses: dict[str, set[str]] = {}
    for path in (course / "lmcourse").rglob("*.py"):
        tree, module = ast.parse(path.read_text(encoding="utf-8")), _module(path.relative_to(course))
        made = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        names = _imports(tree)
        uses |= {f"{module}.{name}": {target} for name, target in names.items()}
        names |= {node.name: f"{module}.{node.name}" for node in made}
        uses |= {f"{module}.{node.name}": set(_used(node, names)) for node in made}
    found, more = set[str](), {ASKED}
    while more - found:
        found |= more
        more = {name for name, used in uses.items() if used & found}
    return found


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module) -> dict[str, str]:
    """Return the dotted name of each imported name."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname or each.name: each.name for each in node.names}
    return found


def _used(tree: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """Return the dotted names that a piece of code refers to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield names[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            yield f"{names[node.value.id]}.{node.attr}"
