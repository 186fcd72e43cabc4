"""Find forbidden names in the source of a notebook, without running it.

`forbidden_in_source` follows functions to the helpers they use, so it wants functions. It gets stand-ins: each
statement of the notebook that gives something a name becomes the body of a function of that name, together with the
imports it uses. That function is compiled, which runs nothing of it, and never called.

A text can hide what it does (`getattr(torch, "soft" + "max")`): the recorder of calls sees that. A learner who patches
the recorder as well has broken a rule unseen, but still has to give right answers.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType

from lmcourse.exercises.forbidden_names import computed, forbidden_in_source, global_names
from lmcourse.grading.examination.code_cells import Definition, compile_cell

Import = ast.Import | ast.ImportFrom

MAX_STAND_IN_CHARS = 2_000_000
"""Characters of all stand-ins. Honest notebooks need some ten thousand."""


class TooLongError(Exception):
    """The text of a notebook takes for ever to read."""


class NotebookSource:
    """The text of a notebook, read once for all its exercises.

    Args:
        cells: the notebook's cells, each one that `code_cells.python_source` gave.
    """

    def __init__(self, cells: Sequence[str]) -> None:
        statements = [statement for cell in cells for statement in ast.parse(cell).body]
        self._statements = {name: statement for statement in statements for name in _names_bound(statement)}
        self._imports: dict[str, dict[str, ast.stmt]] = {}
        for node in (node for statement in statements for node in _module_level(statement) if isinstance(node, Import)):
            for name, one in _single_imports(node):
                self._imports.setdefault(name, {})[ast.unparse(one)] = one
        self._texts: dict[str, str] = {}
        self._readable = True
        self._scope: dict[str, object] = {"__name__": "__main__"}

    def forbidden(self, name: str, forbid: tuple[str, ...]) -> list[str]:
        """The forbidden names that the notebook's `name`, and what it uses of the notebook, refers to.

        Of several definitions of a name the last counts, as it does when the notebook runs.
        """
        if not forbid or name not in self._statements:
            return []
        try:
            self._build_stand_ins(name)
            linecache.cache.update(
                {file: (len(text), None, text.splitlines(keepends=True), file) for file, text in self._texts.items()}
            )
            return forbidden_in_source(self._scope[name], forbid)
        except (RecursionError, TooLongError):
            self._readable = False
            return ["code too long or nested too deeply to be read"]
        finally:
            for file in self._texts:
                linecache.cache.pop(file, None)

    def _build_stand_ins(self, name: str) -> None:
        """Make the stand-ins of a name and of all that it leads to."""
        if not self._readable:  # those that are there may lack others
            raise TooLongError
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in self._statements and name not in self._scope:
                function = self._scope[name] = self._stand_in(name, self._statements[name])
                waiting += global_names(function.__code__)

    def _stand_in(self, name: str, statement: ast.stmt) -> FunctionType:
        """A function with the statement as its body; asynchronous, because a cell may `await`."""
        used = {node.id for node in computed(statement) if isinstance(node, ast.Name)}
        used &= {*global_names(compile_cell(ast.unparse(statement)))}
        imports = [one for used_name in sorted(used) for one in self._imports.get(used_name, {}).values()]
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        body = [*imports, *self._star_imports(used - {*dir(builtins)}), statement]
        wrapper = ast.AsyncFunctionDef(name=name, args=nothing, body=body, decorator_list=[])
        text = ast.unparse(ast.fix_missing_locations(ast.Module([wrapper], [])))
        file = f"<text of {name}, {id(self._scope):x}>"
        self._texts[file] = text
        if sum(map(len, self._texts.values())) > MAX_STAND_IN_CHARS:
            raise TooLongError
        [code] = [part for part in compile_cell(text, file).co_consts if isinstance(part, CodeType)]
        return FunctionType(code, self._scope, name)

    def _star_imports(self, used: set[str]) -> Iterator[ast.stmt]:
        """For each import of everything, one of the used names: it may give any of them."""
        stars = self._imports.get("*", {})
        if len(stars) * len(used) > MAX_STAND_IN_CHARS / 100:
            raise TooLongError
        for star in stars.values():
            if used and isinstance(star, ast.ImportFrom):
                yield ast.ImportFrom(star.module, [ast.alias(name) for name in sorted(used)], star.level)


def _single_imports(node: Import) -> Iterator[tuple[str, ast.stmt]]:
    """An import as one statement for each name that it binds."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield alias.asname or alias.name.split(".")[0], ast.Import([alias])
        elif node.module != "__future__":
            yield alias.asname or alias.name, ast.ImportFrom(node.module, [alias], node.level)


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives to anything but a module."""
    for node in _module_level(statement):
        if isinstance(node, Definition):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _module_level(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, but not inside of functions and classes."""
    yield node
    if not isinstance(node, Definition | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _module_level(child)
