"""A case as Python code that a learner can paste into the notebook, with the notebook's imports.

Small inputs are shown whole. The code gets larger ones, and what a script uses of the course, from `inputs`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from lmcourse.exercises.case_inputs import is_of_course, labels_of, named_inputs
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.tracked import tensors_in
from lmcourse.exercises.values import as_code, in_short, is_small

IMPORT = "from lmcourse.notebook import inputs"
"""The line before a call of `inputs`: it works in every notebook, even if a variable is called `inputs`."""

MAX_CALL_CHARS = 88
"""The length of a call above which its inputs get lines of their own."""

WITHOUT_EFFECT = ("len", "list", "str", "sorted", "sum", "max", "min", "repr")
"""Functions without side effects: an expression that calls nothing else can be left out."""


def code_of(exercise: Exercise, case: Case, wrong: int | None = None) -> str:
    """Return a case as lines of code; of a script whose expression with the number `wrong` differs, as far as that."""
    given = named_inputs(exercise, case)
    return "\n".join(_call(exercise, case, given) if case.script is None else _script(exercise, case, given, wrong))


def _call(exercise: Exercise, case: Case, given: dict[str, Any]) -> list[str]:
    codes = _codes(case, given)
    whole = _call_with(exercise, case, given, codes)
    if len(codes) == len(given) and len(whole) <= MAX_CALL_CHARS:
        return [whole]
    apart = [name for name, value in given.items() if not isinstance(value, bool | int | float | str | None)]
    apart = [name for name in given if name in apart or name not in codes]
    call = _call_with(exercise, case, given, {name: code for name, code in codes.items() if name not in apart})
    return [*_set_up(exercise, case, given, codes, apart), call]


def _call_with(exercise: Exercise, case: Case, given: dict[str, Any], codes: dict[str, str]) -> str:
    parts = [codes.get(name, name) for name in given]
    named = [f"{name}={part}" for name, part in zip(given, parts, strict=True) if name in case.kwargs]
    return f"{exercise.name}({', '.join([*parts[: len(case.args)], *named])})"


def _script(exercise: Exercise, case: Case, given: dict[str, Any], wrong: int | None) -> list[str]:
    imports, body = _statements(case, wrong)
    used = _names(body)
    lines = _set_up(exercise, case, given, _codes(case, given), [name for name in given if name in used])
    # lines without inputs come first, because other cases may begin with them, too; so may helpers
    first = next((place for place, one in enumerate(body[:-1]) if _names([one]) & {*given}), len(body) - 1)
    first = first if case.inputs else 0
    texts = [_text(case, statement) for statement in body]
    if wrong is not None and len(texts) > 1:
        texts[-1] += "  # ← this differs"
    head = [*_kept(imports, used), *(line for line in lines if line == IMPORT)]
    return [*head, *texts[:first], *(line for line in lines if line != IMPORT), *texts[first:]]


def _codes(case: Case, given: dict[str, Any]) -> dict[str, str]:
    """Return the code of each input that has one: none is large, a helper, or a tensor with its own layout or graph."""
    special = bool(case.layout or case.gradients)
    return {
        name: code
        for name, value in given.items()
        if not (special and [*tensors_in(value)]) and (code := as_code(value))
    }


def _set_up(
    exercise: Exercise, case: Case, given: dict[str, Any], codes: dict[str, str], apart: Sequence[str]
) -> list[str]:
    """Return lines that define these inputs: from `inputs` as far as one has no code, each with a comment."""
    names = [*given]
    count = max((place + 1 for place, name in enumerate(names) if name in apart and name not in codes), default=0)
    lines = [line for name in names[count:] if name in apart for line in broken(f"{name} = {codes[name]}")]
    if not count:
        return lines
    label = _label(exercise, case, given)
    quoted = f'"{label}"' if label.isprintable() and not {*label} & {*'"\\'} else repr(label)
    unpacked = ", ".join([*names[:count], *["*_"] * (count < len(names))])
    unpacked = unpacked if len(names) > 1 else f"[{unpacked}]"
    told = [f"# {line}" for name in names[:count] for line in broken(f"{name}{_said(given[name])}")]
    return [IMPORT, f'{unpacked} = inputs("{exercise.name}", {quoted})', *told, *lines]


def _label(exercise: Exercise, case: Case, given: dict[str, Any]) -> str:
    """Return the name of a case for `inputs`; if it has only helpers, that of the first case with the same ones."""

    def fits(other: Case) -> bool:
        return not (case.inputs or other.inputs) and named_inputs(exercise, other).keys() == given.keys()

    return next((label for label, one in labels_of(exercise) if one is case or fits(one)), case.name)


def _said(value: Any) -> str:
    """Return a few words on an input: its numbers, or its shape; for a helper of the course, what it does."""
    if callable(value):
        told = " ".join((value.__doc__ or "A helper of the course.").split("\n\n")[0].split())
        return f": {told.split('. ')[0].removesuffix('.')}."
    if code := as_code(value):
        return f" = {code}"
    return f" ≈ {in_short(value)}" if is_small(value) else f": {in_short(value)}"


def broken(line: str) -> list[str]:
    """Break a line that is too long after each row of a matrix, or after each item of a list of containers."""
    opening = re.search(r"[\[{]", line)
    if len(line) <= MAX_CALL_CHARS or not opening:
        return [line]
    ends: dict[int, list[int]] = {}
    depth = 0
    for found in re.finditer(r"""'[^']*'|"[^"]*"|[\[{(]|[\]})]|, (?=[\[{(t'"])""", line[opening.start() :]):
        depth += (found[0] in "[{(") - (found[0] in "]})")
        if found[0] == ", ":
            ends.setdefault(depth, []).append(opening.start() + found.end())
    depth, places = min(ends.items(), default=(0, []))
    parts = [line[begin:end].rstrip() for begin, end in pairwise([0, *places, len(line)])]
    return [parts[0], *(" " * (opening.start() + depth) + part for part in parts[1:])]


def _statements(case: Case, wrong: int | None) -> tuple[Sequence[ast.Import | ast.ImportFrom], list[ast.stmt]]:
    """Return the imports and the other statements of a script: before a wrong expression, those it needs."""
    tree = ast.parse(case.script or "").body
    imports = [one for one in tree if isinstance(one, ast.Import | ast.ImportFrom)]
    body = [one for one in tree if one not in imports]
    if wrong is None:
        return imports, body
    end = [place for place, one in enumerate(body) if isinstance(one, ast.Expr)][wrong]
    return imports, [*(one for one in body[:end] if not _is_idle(one)), body[end]]


def expressions_shown(case: Case, wrong: int) -> int:
    """Return the number of expressions in the code of a script whose expression with the number `wrong` differs."""
    return sum(isinstance(one, ast.Expr) for one in _statements(case, wrong)[1])


def _is_idle(statement: ast.stmt) -> bool:
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    named = all(isinstance(one, ast.Name) and one.id in WITHOUT_EFFECT for one in calls)
    return isinstance(statement, ast.Expr) and named


def _names(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names in statements, without those of a function's own parameters."""
    found: set[str] = set()
    for one in statements:
        function = isinstance(one, ast.FunctionDef)
        own = {node.arg for node in ast.walk(one) if function and isinstance(node, ast.arg)}
        found |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}.difference(own)
    return found


def _kept(imports: Iterable[ast.Import | ast.ImportFrom], used: set[str]) -> list[str]:
    """Return the imports that the code needs, without the course's, and without torch, which every notebook imports."""
    lines = []
    for node in imports:
        names = [one for one in node.names if (one.asname or one.name) in used - {"torch"}]
        if names and not is_of_course(node):
            kept = ast.ImportFrom(node.module, names, 0) if isinstance(node, ast.ImportFrom) else ast.Import(names)
            lines.append(ast.unparse(kept))
    return lines


def _text(case: Case, statement: ast.stmt) -> str:
    text = ast.get_source_segment(case.script or "", statement) or ""
    return ast.unparse(statement) if ";" in text else text
