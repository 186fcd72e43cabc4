"""The rules of an exercise, judged on the text of a notebook that is never run here.

`forbidden_in_source` follows functions to the helpers they use, so it wants functions. It gets stand-ins: each
statement of the notebook that gives something a name becomes the body of a function of that name, together with the
imports it uses. That function is compiled, which runs nothing of it, and never called.

A text can hide what it does (`getattr(torch, "soft" + "max")`): that is what the watch is for. A learner who patches
the watch as well has broken a rule unseen, but still has to give right answers.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType

from lmcourse.exercises.rules import computed, forbidden_in_source, global_names
from lmcourse.grading.examination.texts import compiled

Import = ast.Import | ast.ImportFrom
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Source:
    """The text of a notebook, read once for all its exercises.

    Args:
        cells: the notebook's cells, each one that `texts.python_of` gave.
    """

    def __init__(self, cells: Sequence[str]) -> None:
        self._texts: dict[str, str] = {}
        self._functions: dict[str, FunctionType] | None = None
        with contextlib.suppress(RecursionError):
            self._functions = _stand_ins(cells, self._texts)

    def forbidden(self, name: str, forbid: tuple[str, ...]) -> list[str]:
        """The forbidden names that the notebook's `name`, and what it uses of the notebook, refers to.

        Of several definitions of a name the last counts, as it does when the notebook runs.
        """
        if not forbid:
            return []
        try:
            if self._functions is None:
                raise RecursionError
            linecache.cache.update(
                {file: (len(text), None, text.splitlines(keepends=True), file) for file, text in self._texts.items()}
            )
            return forbidden_in_source(self._functions[name], forbid) if name in self._functions else []
        except RecursionError:
            return ["code nested too deeply to be read"]
        finally:
            for file in self._texts:
                linecache.cache.pop(file, None)


def _stand_ins(cells: Sequence[str], texts: dict[str, str]) -> dict[str, FunctionType]:
    """For each name that the cells define, a function with that definition in it; `texts` gets their files."""
    statements = [statement for cell in cells for statement in ast.parse(cell).body]
    bindings = {name: statement for statement in statements for name in _bound(statement)}
    imports = [node for statement in statements for node in _outside(statement) if isinstance(node, Import)]
    scope: dict[str, object] = {"__name__": "__main__"}
    found = {name: _stand_in(name, statement, imports, scope, texts) for name, statement in bindings.items()}
    scope |= found
    return found


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives to anything but a module."""
    for node in _outside(statement):
        if isinstance(node, Definition):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, but not inside of functions and classes."""
    yield node
    if not isinstance(node, Definition | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _outside(child)


def _stand_in(
    name: str, statement: ast.stmt, imports: Sequence[Import], scope: dict[str, object], texts: dict[str, str]
) -> FunctionType:
    """A function with the statement as its body; asynchronous, because a cell may `await`."""
    used = {node.id for node in computed(statement) if isinstance(node, ast.Name)}
    used &= {*global_names(compiled(ast.unparse(statement)))}
    lines = [line for node in imports for line in _importing(node, used - {*dir(builtins)})]
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    wrapper = ast.AsyncFunctionDef(name=name, args=nothing, body=[*lines, statement], decorator_list=[])
    text = ast.unparse(ast.fix_missing_locations(ast.Module([wrapper], [])))
    file = f"<text of {name}, {id(scope):x}>"
    texts[file] = text
    [code] = [part for part in compiled(text, file).co_consts if isinstance(part, CodeType)]
    return FunctionType(code, scope, name)


def _importing(node: Import, used: set[str]) -> Iterator[ast.stmt]:
    """The part of an import that gives one of the used names. A star may give any of them."""
    if isinstance(node, ast.Import):
        aliases = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in used]
        if aliases:
            yield ast.Import(aliases)
        return
    aliases = [alias for alias in node.names if (alias.asname or alias.name) in used]
    if any(alias.name == "*" for alias in node.names):
        aliases = [ast.alias(name) for name in sorted(used)]
    if aliases and node.module != "__future__":
        yield ast.ImportFrom(node.module, aliases, node.level)
