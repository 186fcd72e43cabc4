"""Write the modules of a learner's package: one for each notebook, with its answers."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lmcourse.course.chapters import Chapter, find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.own_package.saved_answers import Answer, Notebook
from lmcourse.own_package.standalone import CannotStandAloneError, Statement, needed

PARTS = {
    "rms_norm": "10",
    "block": "10",
    "rope": "09",
    "grouped_query_attention": "08",
    "glu_ffn": "11",
    "self_attention": "12",
    "decoder": "12",
    "causal_lm_loss": "12",
}
"""The functions of the model, with the numbers of their notebooks."""

Origin = Literal["yours", "course", ""]


@dataclass(frozen=True)
class Part:
    """A function of the package with the imports and helpers that it needs, or why it is not the learner's."""

    exercise: str
    origin: Origin
    reason: str = ""
    statements: tuple[Statement, ...] = ()
    uses: frozenset[str] = frozenset()


@dataclass
class Collection:
    """The functions of the package, by notebook.

    If `lend`, the course's answer replaces a missing or wrong one; if not, a wrong answer is included unchanged.
    """

    answers: Sequence[Answer]
    own: Mapping[Chapter, Notebook]
    printed: Mapping[Chapter, Notebook]
    lend: bool = True
    parts: dict[Chapter, dict[str, Part]] = field(default_factory=lambda: defaultdict(dict), init=False)

    def __post_init__(self) -> None:
        self._answers = {answer.exercise: answer for answer in self.answers}
        for answer in self.answers:
            if self._is_taken(answer):
                self._add(answer.chapter, answer.exercise)
        for name, number in PARTS.items():
            self._add(find_chapter(number), name)

    def _is_taken(self, answer: Answer | None) -> bool:
        return answer is not None and (answer.state == "passes" or (answer.state == "wrong" and not self.lend))

    def _add(self, chapter: Chapter, name: str) -> None:
        """Add a function, and the functions of the same notebook that it calls."""
        if name in self.parts[chapter]:
            return
        part = self._part(chapter, name)
        self.parts[chapter][name] = part
        for other in sorted(part.uses):
            self._add(chapter, other)

    def _part(self, chapter: Chapter, name: str) -> Part:
        answer = self._answers.get(name)
        reason = f"notebook {chapter.number} was not read"
        if answer is not None:
            reason = answer.reason or "not answered" * (answer.state == "missing")
        if self._is_taken(answer):
            try:
                return self._cut(chapter, name, self.own[chapter], "yours", reason)
            except CannotStandAloneError as error:
                reason = str(error)
        if not self.lend:
            return Part(name, "", reason)
        try:
            return self._cut(chapter, name, self.printed[chapter], "course", reason)
        except CannotStandAloneError as error:
            return Part(name, "", f"{reason}; the course's: {error}")

    def ordered(self, chapter: Chapter) -> list[Part]:
        """Return a notebook's functions in the order of its exercises, because a definition may use earlier ones."""
        order = [exercise.name for exercise in exercises_of(chapter)]
        parts = self.parts[chapter].values()
        return sorted(parts, key=lambda part: order.index(part.exercise) if part.exercise in order else len(order))

    def _cut(self, chapter: Chapter, name: str, notebook: Notebook, origin: Origin, reason: str) -> Part:
        others = set(notebook.places) | {answer.exercise for answer in self.answers if answer.chapter == chapter}
        statements, uses = needed(notebook.cells, notebook.places[name], name, others)
        self._check_helpers(chapter, name, statements)
        return Part(name, origin, reason, tuple(statements), frozenset(uses))

    def _check_helpers(self, chapter: Chapter, name: str, statements: Iterable[Statement]) -> None:
        """Check that each name in a module has only one meaning."""
        for other in self.parts[chapter].values():
            defined = {each: one.text for one in other.statements for each in one.names}
            for statement in statements:
                for each in statement.names:
                    if defined.get(each, statement.text) != statement.text:
                        raise CannotStandAloneError(f"its `{each}` differs from the one that `{other.exercise}` uses")


def module_text(chapter: Chapter, parts: Iterable[Part]) -> str:
    """Return the text of a notebook's module: docstring, imports, then each function after its helpers."""
    imports: list[str] = []
    body: dict[str, str] = {}
    for part in parts:
        for statement in part.statements:
            if statement.kind == "import":
                imports.append(statement.text)
            elif part.origin == "course" and part.exercise in statement.names:
                body[statement.text] = f"# The course's version, in place of yours: {part.reason}\n{statement.text}"
            else:
                body.setdefault(statement.text, statement.text)
    title = f'"""Notebook {chapter.number}, {chapter.title}: the answers."""'
    return "\n\n".join([title, merged_imports(imports), *(f"\n{text}" for text in body.values())]) + "\n"


def merged_imports(lines: Iterable[str]) -> str:
    """Merge import statements with one name each by module; the standard library comes first."""
    froms: dict[str, set[str]] = defaultdict(set)
    merged: set[str] = set()
    for line in lines:
        words = line.split(maxsplit=3)
        if words[0] == "from":
            froms[words[1]].add(words[3])
        else:
            merged.add(line)
    merged |= {f"from {module} import {', '.join(sorted(names))}" for module, names in froms.items()}

    def rank(line: str) -> tuple[bool, bool, bool, str]:
        module = line.split()[1].split(".")[0]
        return module != "__future__", module not in sys.stdlib_module_names, line.startswith("from"), line

    return "\n".join(sorted(merged, key=rank))


def parts_text(package: str, collection: Collection) -> str:
    """Return the text of the module that maps the parts of the model to functions.

    A missing part is replaced by a function that raises an error when it is called.
    """
    found = {name: collection.parts[find_chapter(number)][name] for name, number in PARTS.items()}
    lines = ['"""The functions that the model is made of, by name."""', ""]
    by_module: dict[str, list[str]] = defaultdict(list)
    for name, number in PARTS.items():
        if found[name].origin:
            by_module[find_chapter(number).topic].append(name)
    if found["rope"].origin:
        by_module["model"].append("with_theta")
    lines += [f"from {package}.{topic} import {', '.join(sorted(names))}" for topic, names in sorted(by_module.items())]
    for name in (name for name in PARTS if not found[name].origin):
        told = f"{name} of notebook {PARTS[name]} is left out: {found[name].reason}"
        lines += ["", "", f"def {name}(*_):", f"    raise NotImplementedError({told!r})", ""]
    functions = {name: "with_theta(rope)" if name == "rope" and found[name].origin else name for name in PARTS}
    lines += ["", "PARTS = {", *(f'    "{name}": {function},' for name, function in functions.items()), "}", ""]
    return "\n".join(lines)
