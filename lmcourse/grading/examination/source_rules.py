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
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType, FunctionType

from lmcourse.exercises.forbidden_names import computed, forbidden_in_source, global_names
from lmcourse.grading.examination.code_cells import Cell, compile_cell

MAX_STAND_IN_CHARS = 2_000_000
"""Characters of all stand-ins. Honest notebooks need some ten thousand."""


class TooLongError(Exception):
    """The text of a notebook takes for ever to read."""


class NotebookSource:
    """The text of a notebook, read once for all its exercises.

    Args:
        cells: the notebook's cells.
        answer_cells: the numbers of the cells for the answers, by exercise.
        stand_ins: the exercises for whose answers others stand in.
    """

    def __init__(self, cells: Sequence[Cell], answer_cells: Mapping[str, int], stand_ins: Collection[str] = ()) -> None:
        self._answer_cells = answer_cells
        self._stand_ins = stand_ins
        self._statements: dict[str, list[tuple[int, ast.stmt]]] = {}
        self._imports: dict[str, dict[str, ast.stmt]] = {}
        for cell in cells:
            for name, bound in cell.assigned:
                self._statements.setdefault(name, []).append((cell.number, bound))
            for name, text, one in cell.single_imports:
                self._imports.setdefault(name, {})[text] = one
        self._reached: dict[str, dict[str, str]] = {}
        self._chars = 0
        self._readable = True

    def forbidden(self, name: str, forbid: tuple[str, ...]) -> list[str]:
        """The forbidden names that the answer `name`, and what it uses of the notebook, refers to."""
        meanings = self._meanings(name)
        if not forbid or name not in meanings:
            return []
        texts: dict[str, str] = {}
        try:
            scope = self._build_stand_ins(name, meanings, texts)
            linecache.cache.update(
                {file: (len(text), None, text.splitlines(keepends=True), file) for file, text in texts.items()}
            )
            return forbidden_in_source(scope[name], forbid)
        except (RecursionError, TooLongError):
            self._readable = False
            return ["code too long or nested too deeply to be read"]
        finally:
            for file in texts:
                linecache.cache.pop(file, None)

    def _meanings(self, answer: str) -> dict[str, ast.stmt]:
        """The statement that gives each name its meaning while an answer is judged (see `own_answers`): the last one,
        but of the answer itself the last in its own cell, and of other answers the last up to there."""
        meanings = {name: found[-1][1] for name, found in self._statements.items()}
        own = self._answer_cells.get(answer, 0)
        for name, cell in self._answer_cells.items():
            found = self._statements.get(name, [])
            earlier = [statement for number, statement in found if number <= own]
            in_own_cell = [statement for number, statement in found if number == cell]
            if chosen := in_own_cell if name == answer else earlier or in_own_cell:
                meanings[name] = chosen[-1]
            else:
                meanings.pop(name, None)
        return {name: meaning for name, meaning in meanings.items() if name not in self._stand_ins}

    def reached(self, name: str) -> dict[str, str]:
        """The global names that the answer `name` leads to, and by which name of the notebook: itself or a helper."""
        if name not in self._reached:
            self._reached[name] = self._find_reached(name)
        return self._reached[name]

    def _find_reached(self, name: str) -> dict[str, str]:
        meanings = self._meanings(name)
        found: dict[str, str] = {}
        waiting = [name]
        while waiting:
            user = waiting.pop()
            if user not in meanings:
                continue
            code = compile_cell(ast.unparse(meanings[user]))
            new = {used: user for used in global_names(code) if used not in found}
            found |= new
            waiting += new
        return found

    def defines(self, name: str) -> bool:
        """Whether any cell gives the name a meaning, an import of everything included, or Python does."""
        return name in self._statements or bool({name, "*"} & self._imports.keys()) or hasattr(builtins, name)

    def _build_stand_ins(self, name: str, meanings: Mapping[str, ast.stmt], texts: dict[str, str]) -> dict[str, object]:
        """Make the stand-ins of a name and of all that it leads to; their texts go into `texts`, by file name."""
        if not self._readable:  # whoever wrote one text that takes for ever may have written more
            raise TooLongError
        scope: dict[str, object] = {"__name__": "__main__"}
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in meanings and name not in scope:
                file = f"<text of {name}, {id(scope):x}>"
                texts[file] = self._stand_in_text(name, meanings[name])
                [code] = [part for part in compile_cell(texts[file], file).co_consts if isinstance(part, CodeType)]
                scope[name] = FunctionType(code, scope, name)
                waiting += global_names(code)
        return scope

    def _stand_in_text(self, name: str, statement: ast.stmt) -> str:
        """A function with the statement as its body; asynchronous, because a cell may `await`."""
        used = {node.id for node in computed(statement) if isinstance(node, ast.Name)}
        used &= {*global_names(compile_cell(ast.unparse(statement)))}
        imports = [one for used_name in sorted(used) for one in self._imports.get(used_name, {}).values()]
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        body = [*imports, *self._star_imports(used - {*dir(builtins)}), statement]
        text = ast.unparse(ast.AsyncFunctionDef(name=name, args=nothing, body=body, decorator_list=[], lineno=1))
        self._chars += len(text)
        if self._chars > MAX_STAND_IN_CHARS:
            raise TooLongError
        return text

    def _star_imports(self, used: set[str]) -> Iterator[ast.stmt]:
        """For each import of everything, one of the used names: it may give any of them."""
        stars = self._imports.get("*", {})
        if len(stars) * len(used) > MAX_STAND_IN_CHARS / 100:
            raise TooLongError
        for star in stars.values():
            if used and isinstance(star, ast.ImportFrom):
                yield ast.ImportFrom(star.module, [ast.alias(name) for name in sorted(used)], star.level)
