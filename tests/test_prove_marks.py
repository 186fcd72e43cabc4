"""Every slow kind of test has the marker `prove`, so that `make test` stays fast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent

HEAVY_IMPORTS = {
    *("playwright", "transformers", "distributed", "multiprocessing", "subprocess", "torch.multiprocessing"),
    *("nbclient", "nbgrader.apps", "nbgrader.api", "jupyter_client", "tests.browser.driver", "torch.distributed"),
}
"""Modules with which a test starts other processes or has slow imports."""
HEAVY_FIXTURES = {"browser", "chromium"}


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a piece of code imports, and the fixtures that its functions use."""
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            yield from (alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module:
            yield from (part.module, *(f"{part.module}.{alias.name}" for alias in part.names))
        elif isinstance(part, ast.FunctionDef):
            yield from (argument.arg for argument in part.args.args)


def heavy(name: str) -> bool:
    return name in HEAVY_FIXTURES or any(name == kind or name.startswith(f"{kind}.") for kind in HEAVY_IMPORTS)


def is_unmarked(text: str) -> bool:
    """Return True if tests are of a slow kind and have no marker."""
    return any(map(heavy, names_in(ast.parse(text)))) and "mark.prove" not in text


def test_files_of_a_heavy_kind_are_marked() -> None:
    files = sorted(path for path in TESTS.rglob("test_*.py") if path != Path(__file__))
    assert [str(path) for path in files if is_unmarked(path.read_text(encoding="utf-8"))] == []


def test_heavy_kind_is_found_wherever_it_is_imported() -> None:
    for text in (
        "import subprocess",
        "def test(browser): ...",
        "def test():\n    from transformers import LlamaConfig",
    ):
        assert is_unmarked(text)
        assert not is_unmarked(f"{text}\npytestmark = pytest.mark.prove")
    assert not is_unmarked("import torch.nn\ndef test(tmp_path): ...")
