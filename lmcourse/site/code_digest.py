"""A digest of the code that a function of the package can reach: what its figures depend on."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def code_digest(module: str) -> str:
    """The SHA-256 of a module's text and of every module of the package that it imports, directly or not."""
    reached: set[Path] = set()
    todo = list(_files(module))
    while todo:
        path = todo.pop()
        if path not in reached:
            reached.add(path)
            todo += _imports(path)
    digest = hashlib.sha256()
    for path in sorted(reached):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    found: list[Path] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            found += _files(name)
    return tuple(found)


def _files(name: str) -> Iterator[Path]:
    """The file of a dotted name: of the module, or of the module that the name is taken from."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return
    for length in (len(parts), len(parts) - 1):
        path = PACKAGE.joinpath(*parts[1:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file
                return
