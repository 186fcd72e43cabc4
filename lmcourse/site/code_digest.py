"""Digest everything that a figure depends on, without running it, so that a stored frame is never out of date."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from lmcourse import __version__

PACKAGE = Path(__file__).resolve().parents[1]

LIBRARIES = ("matplotlib", "numpy", "pillow", "torch")
"""The packages that change what a figure looks like, or its numbers."""


@cache
def code_digest(module: str) -> str:
    """Return the SHA-256 of what a module's figures depend on.

    This is the text of the module and of every module of the package that it imports, directly or not, the data next
    to these modules, and the versions of the libraries.
    """
    reached: set[Path] = set()
    todo = list(_files(module))
    while todo:
        path = todo.pop()
        if path not in reached:
            reached.add(path)
            todo += _imports(path)
    files = {file for path in reached for file in (path, *_data(path))}
    digest = hashlib.sha256(repr((__version__, sys.version_info[:2], *map(version, LIBRARIES))).encode())
    for path in sorted(files):
        digest.update(hashlib.sha256(path.read_bytes()).digest() + str(path.relative_to(PACKAGE)).encode())
    return digest.hexdigest()


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Return the files of the modules of the package that a module imports, at its beginning or inside a function."""
    found: list[Path] = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found += [file for alias in node.names for file in _files(f"{package}{alias.name}")]
    return tuple(found)


def _data(path: Path) -> Iterator[Path]:
    """Yield the files next to a module that are no Python, and those in the folders that its text names."""
    for file in path.parent.iterdir():
        if file.is_file() and file.suffix not in (".py", ".pyi", ".pyc"):
            yield file
    for node in ast.walk(_tree(path)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and text.replace("-", "_").isidentifier():
            folder = path.with_name(text)
            if folder.is_dir() and not (folder / "__init__.py").exists():
                yield from (file for file in folder.rglob("*") if file.is_file())


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _files(name: str) -> Iterator[Path]:
    """Yield the file of a module, or of the module that defines a dotted name; for a name that a package imports when
    it is first used, both the package's file and the module that the stub beside it says."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return
    for length in (len(parts), len(parts) - 1):
        path = PACKAGE.joinpath(*parts[1:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file
                stub = file.with_suffix(".pyi")
                if length < len(parts) and stub.is_file():
                    for node in _tree(stub).body:
                        if isinstance(node, ast.ImportFrom) and parts[-1] in {alias.name for alias in node.names}:
                            yield from _files(f"{node.module}.{parts[-1]}")
                return
