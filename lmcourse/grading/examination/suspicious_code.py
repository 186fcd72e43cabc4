"""Static search for code that honest answers never contain; a person decides what it means.

It finds what is written plainly, and nothing that is built from pieces. Whether any of it ran, or would have got
anywhere, it does not know. It changes no mark.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from lmcourse.grading.examination.code_cells import MAX_KEPT_CELL_CHARS, Cell, imported_names
from lmcourse.grading.examination_result import Evidence, EvidenceKind

SUSPICIOUS_NAMES: dict[EvidenceKind, tuple[str, ...]] = {
    "file": ("sqlite3", "sqlalchemy", "psycopg2", "nbgrader", "nbformat"),
    "network": ("socket", "urllib", "http", "ftplib", "smtplib", "requests", "httpx", "aiohttp"),
    "process": (
        *("subprocess", "multiprocessing", "pty", "os.system", "os.popen", "os.fork", "os.forkpty", "os.posix_spawn"),
        *("os.kill", "os.killpg", "os.setsid", "os._exit", "os.abort"),
    ),
    "interpreter": (
        *("ctypes", "cffi", "signal", "resource", "gc.get_objects", "gc.get_referrers", "inspect.stack"),
        *("inspect.currentframe", "sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile"),
    ),
    "builtins": ("unittest.mock", "torch.overrides", "torch.utils._python_dispatch"),
    "text": (
        *("lmcourse.exercises", "lmcourse.chapters", "lmcourse.report", "lmcourse.grading", "lmcourse.authoring"),
        "importlib",
        *("builtins.eval", "builtins.exec", "builtins.compile", "builtins.__import__"),
    ),
}
"""Modules and functions, each with all below it."""

ALLOWED_NAMES = ("lmcourse.exercises.check", "lmcourse.exercises.hint")

CHAPTER_FIGURES = re.compile(r"lmcourse\.chapters\.\w+\.figures(\.|$)")
"""Of the chapters, what a notebook uses."""

PATCHED_MODULES = ("builtins", "torch", "lmcourse", "sys", "os", "math", "numpy", "IPython")
"""Modules in which a notebook changes nothing, but for `ASSIGNABLE_NAMES`."""

ASSIGNABLE_NAMES = ("torch.backends", "os.environ")

INTERNAL_ATTRIBUTES = {
    *("__subclasses__", "__globals__", "__builtins__", "__closure__", "f_back", "f_globals", "f_locals", "tb_frame"),
    *("input_transformers_post", "input_transformers_cleanup", "input_transformer_manager", "ast_transformers"),
    *("do_execute", "run_cell_async", "user_ns"),
}
"""Attributes by which one reaches into Python or IPython."""

FORGED_METHODS = {"__eq__", "__ne__", "__bool__", "__instancecheck__"}
"""Methods that a forged result answers with a constant."""

HOOK_METHODS = {"__torch_function__", "__torch_dispatch__", "__reduce__", "__reduce_ex__"}

SECRET_PLACES = re.compile(
    r"gradebook|submitted/|solutions/|LMCOURSE_SEED|(^|/)\.\.(/|$)|^/(proc|etc|home|root|sys|var)\b"
)
"""What texts say that name a place, or a secret, which is no business of a notebook."""

Findings = Iterator[tuple[EvidenceKind, str]]


def suspicious_code(cells: Sequence[Cell]) -> list[Evidence]:
    """The findings, each once per cell.

    Args:
        cells: of the notebook.
    """
    known = {name: f"builtins.{name}" for name in ("eval", "exec", "compile", "__import__", "setattr", "delattr")}
    known |= {"builtins": "builtins", "__builtins__": "builtins"}
    known |= dict(found for cell in cells for found in cell.imported)
    names = frozenset(known.items())
    findings = ((cell.number, what) for cell in cells for what in _found_in(cell, names))
    return [*dict.fromkeys(Evidence(kind, f"Code cell {number} {what}.", "read") for number, (kind, what) in findings)]


def _found_in(cell: Cell, names: frozenset[tuple[str, str]]) -> tuple[tuple[EvidenceKind, str], ...]:
    """The findings in a cell, in a notebook where names stand for these. Those of a cell that many notebooks have are
    remembered."""
    return _kept_findings(cell, names) if len(cell.text) <= MAX_KEPT_CELL_CHARS else _find_all(cell, names)


def _find_all(cell: Cell, names: frozenset[tuple[str, str]]) -> tuple[tuple[EvidenceKind, str], ...]:
    known = dict(names)
    return tuple(what for node in cell.nodes for what in _find(node, known))


_kept_findings = lru_cache(maxsize=512)(_find_all)


def _find(node: ast.AST, known: Mapping[str, str]) -> Findings:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else imported_names(node).values()
        for name in names:
            yield from _find_use(name)
    elif isinstance(node, ast.Attribute | ast.Name | ast.Subscript):
        yield from _find_access(node, known)
    elif isinstance(node, ast.Call):
        yield from _find_call(node, known)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign):
        yield from _find_definition(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and SECRET_PLACES.search(node.value):
        yield "file", f"names {node.value[:80]!r}"


def _find_use(name: str) -> Findings:
    if not name or _within(name, ALLOWED_NAMES) or CHAPTER_FIGURES.match(name):
        return
    for kind, uses in SUSPICIOUS_NAMES.items():
        for used in uses:
            if _within(name, (used,)):
                yield kind, f"uses {name if used.startswith('lmcourse') else used.removeprefix('builtins.')}"


def _find_access(node: ast.Attribute | ast.Name | ast.Subscript, known: Mapping[str, str]) -> Findings:
    """What a name leads to, and whether something is put there."""
    name = _dotted(node, known)
    if isinstance(node.ctx, ast.Load):
        yield from _find_use(name)
    elif not isinstance(node, ast.Name) and _within(name, PATCHED_MODULES) and not _within(name, ASSIGNABLE_NAMES):
        yield "builtins", f"assigns to {name}"
    if isinstance(node, ast.Attribute):
        hook = node.attr == "register" and isinstance(node.value, ast.Attribute) and node.value.attr == "events"
        if node.attr in INTERNAL_ATTRIBUTES or hook:
            yield "interpreter", f"uses .{'events.register' if hook else node.attr}"


def _find_call(node: ast.Call, known: Mapping[str, str]) -> Findings:
    if _dotted(node.func, known) in ("builtins.setattr", "builtins.delattr") and node.args:
        owner = _dotted(node.args[0], known)
        if _within(owner, PATCHED_MODULES) and not _within(owner, ASSIGNABLE_NAMES):
            yield "builtins", f"assigns to {owner} by {ast.unparse(node.func)}"


def _find_definition(node: ast.FunctionDef | ast.ClassDef | ast.Assign) -> Findings:
    """Methods by which a result can pretend to be another, or have code of its own run elsewhere."""
    if isinstance(node, ast.FunctionDef):
        names, value = [node.name], _constant(node.body)
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        value = _constant(node.value)
    else:
        return
    for name in names:
        if name in HOOK_METHODS:
            yield "builtins" if name.startswith("__torch") else "text", f"defines {name}"
        elif name in FORGED_METHODS and value is not None:
            yield "text", f"has {name} always say {value}"


def _constant(body: list[ast.stmt] | ast.expr) -> bool | None:
    """What a function says each time, if it is nothing but `return True` or `return False`."""
    returned: ast.expr | None = None
    if isinstance(body, ast.Lambda):
        returned = body.body
    elif isinstance(body, list) and len(body) == 1 and isinstance(body[0], ast.Return):
        returned = body[0].value
    value = returned.value if isinstance(returned, ast.Constant) else None
    return value if isinstance(value, bool) else None


def _dotted(node: ast.expr, known: Mapping[str, str]) -> str:
    """The dotted name that an expression begins with: "torch.Tensor" of `Tensor[0]`; nothing for a name of its own."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
        node = node.value
    return ".".join([known[node.id], *parts]) if isinstance(node, ast.Name) and node.id in known else ""


def _within(name: str, owners: tuple[str, ...]) -> bool:
    return any(name == owner or name.startswith(f"{owner}.") for owner in owners)
