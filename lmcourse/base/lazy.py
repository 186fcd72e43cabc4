"""Import a package's public names when they are first used.

A package lists its public names once, in `__init__.pyi`, where type checkers and editors find them:

    from lmcourse.models.transformer import Transformer as Transformer

`lazy_names` reads the same lines. `import lmcourse` then loads nothing, and `lmcourse.Transformer` loads torch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    Args:
        package: the package's `__name__`.
        file: the package's `__file__`; the stub is next to it.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        module = sys.modules[package]
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names, sorted(homes)
