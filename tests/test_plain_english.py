"""Check some rules of plain English automatically: docstrings, sentence lengths, test names, code references."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import docstring_parser
import pytest

from lmcourse.training.command.main import TITLES

ROOT = Path(__file__).resolve().parents[1]
MAX_WORDS = 30
MAX_TEST_NAME = 70

UNCLEAR = re.compile(r"(What|Whether|Which|Whose|Of|Those|That of)\b")
"""Matches first lines that are not statements; a first line should say what the code does or is."""

VARIABLES = {"layers", "lmcourse", "metrics", "model", "nn", "words"}
"""First parts of dotted names that examples use as variables, and the package, whose full names are looked up."""

FILES = re.compile(r".*\.(json|jsonl|md|py|toml|ipynb|lock|yml|txt|csv|html|js|css|tokens|safetensors|log|zip|pt)")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules() -> list[Path]:
    return sorted((ROOT / "lmcourse").rglob("*.py"))


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a file, with the names of the definitions or assignments that they describe."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", ""), text
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else ()):
            match before, after:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                    yield ast.unparse(before).split(" =")[0], text


def test_docstrings_begin_with_a_statement() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for path in modules()
        for name, text in docstrings(path)
        if UNCLEAR.match(text)
    }
    assert found == set()


def text_of(node: ast.expr) -> str:
    """Return the text of an expression, with one word for each value in it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "x"


def messages() -> Iterator[tuple[str, str]]:
    """Yield the texts of errors and of command-line help, each with its place."""
    for path in modules():
        place = path.relative_to(ROOT)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield from ((f"{place}:{node.lineno}", text_of(argument)) for argument in node.exc.args)
            elif isinstance(node, ast.Call):
                helps = [keyword.value for keyword in node.keywords if keyword.arg == "help"]
                yield from ((f"{place}:{node.lineno}", text_of(value)) for value in helps)
    for owner in TITLES:
        parameters = docstring_parser.parse(owner.__doc__ or "").params
        yield from ((f"{owner.__name__}.{part.arg_name}", part.description or "") for part in parameters)


def test_sentences_of_help_and_errors_are_short() -> None:
    found = [
        (place, sentence)
        for place, text in messages()
        for sentence in re.split(r"(?<=[.?!:;])\s", text)
        if len(sentence.split()) > MAX_WORDS
    ]
    assert found == []


def test_test_names_are_short() -> None:
    names = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert {name for name in names if len(name) > MAX_TEST_NAME} == set()


@cache
def files_by_name() -> dict[str, list[Path]]:
    """Return the modules and packages of lmcourse by the last part of their names."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in modules():
        found[path.parent.name if path.stem == "__init__" else path.stem].append(path)
    return found


@cache
def names_in(path: Path) -> set[str]:
    """Return the names that a module or package defines, imports or contains."""
    names = {entry.stem for entry in path.parent.iterdir()} if path.stem == "__init__" else set()
    pyi = path.with_suffix(".pyi")
    for node in [*ast.walk(tree_of(path)), *(ast.walk(ast.parse(pyi.read_text("utf-8"))) if pyi.exists() else ())]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
    return names


def is_there(dotted: str) -> bool:
    """Return True if a dotted name leads to a module, or to a name in one."""
    first, *parts = dotted.split(".")
    if first != "lmcourse":
        return any(parts[0] in names_in(path) for path in files_by_name()[first])
    path = ROOT / "lmcourse"
    for place, part in enumerate(parts):
        if (path / part).is_dir():
            path = path / part
        elif (path / f"{part}.py").is_file():
            rest = parts[place + 1 :]
            return not rest or rest[0] in names_in(path / f"{part}.py")
        else:
            return part in names_in(path / "__init__.py")
    return True


def references(text: str) -> Iterator[str]:
    """Yield the dotted names in a text that begin with lmcourse or, in backticks, with one of its modules."""
    for name in re.findall(r"\blmcourse(?:\.[a-z_A-Z]\w*)+", text):
        if not re.search(r"topic|perplexity", name):  # names in an invented chapter
            yield name
    for name in re.findall(r"`([a-z_]\w*(?:\.[a-z_A-Z]\w*)+)[`(]", text):
        if name.split(".")[0] in files_by_name().keys() - VARIABLES and not FILES.fullmatch(name):
            yield name


@pytest.mark.parametrize("kind", ["docstrings", "pages"])
def test_dotted_names_exist(kind: str) -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    texts = {path: "\n".join(text for _, text in docstrings(path)) for path in modules()}
    if kind == "pages":
        texts = {path: path.read_text(encoding="utf-8") for path in pages}
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        for name in references(text)
        if not is_there(name)
    ]
    assert found == []


def test_paths_in_pages_exist() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    found = [
        f"{page.name}: {path}"
        for page in pages
        for path in re.findall(r"`((?:lmcourse|tests|experiments|docs)/[\w./-]+)`", page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists() and not re.search(r"topic|NN|perplexity", path)
    ]
    assert found == []
