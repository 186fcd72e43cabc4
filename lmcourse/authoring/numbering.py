"""Write what an author need not count: numbers and facts in the headings of exercises, totals, the README's row.

An author writes `### Exercise · Title`, and the build makes it `### Exercise 3 · Title  (2 points · 5 min · ●●)`. If an
exercise's number changes, references to it ("Exercise 6", "Exercises 4 and 5") change with it. Lines are changed, but
none is added or removed, so the line numbers in messages stay true.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lmcourse.authoring.needed_cells import Code
from lmcourse.authoring.reading_time import Part, minutes_of_sections, parts_of
from lmcourse.authoring.source import Mistake, Source, SourceCell, parse_source
from lmcourse.base.errors import CourseError
from lmcourse.base.text import shorten
from lmcourse.course.chapters import Chapter, FolderChapter
from lmcourse.course.parts import TOTALS, joined, minutes_in
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.registry import BESIDE, exercises_of

HEADING = re.compile(r"### Exercise(?: (?P<number>\d+))? · (?P<title>.+?)(?P<facts> *\(\d+ points?\b[^()]*\))? *")
"""A line that is the heading of an exercise."""

SECTION = re.compile(r"(# ##(?: \d+|# [A-Z]) · .+?)(?: *\(\d+ min\))? *")
"""A line that is the heading of a section of Further, which the build completes with its minutes."""

_STATED = re.compile(r"^#{1,6} .*?\b(\d+) (?:points?|pts?)\b", re.MULTILINE)
"""A heading that states points, in any form."""

_GAP = r"(?:[ \t]+|[ \t]*\n#[ \t]+)"
_NUMBER = r"\d{1,3}(?!\d|\.\d)"
_LIST = rf"{_NUMBER}(?:,{_GAP}{_NUMBER})*,?{_GAP}(?:and|or|to){_GAP}{_NUMBER}|{_NUMBER}[–-]{_NUMBER}"
REFERENCE = re.compile(rf"(?<!### )\b[Ee]xercise(?:{_GAP}(?P<one>{_NUMBER})|s{_GAP}(?P<many>{_LIST}))")
"""A reference to exercises: "Exercise 6", "Exercises 4 and 5", "exercises 2, 3 and 5", "Exercises 3 to 5"."""

_MINUTES = re.compile(r"^[IV]+ \| \[(\d\d) .* \| (\d+)(?: \+ (\d+))?(?: \| [\d +]+){2}$", re.MULTILINE)
"""A notebook's row of the README, with its number and the minutes of its parts."""

_PLAN = re.compile(r"^(\| notebooks \| (.+) \|\n)\| minutes \| .+ \|$", re.MULTILINE)
"""The notebooks and minutes of the weeks of a plan for teachers."""

_RANGE = re.compile(rf"(\d+)(?:[–-]|{_GAP}to{_GAP})(\d+)")
_OF_ANOTHER = re.compile(rf",?{_GAP}(?:there\b|(?:of|in|from){_GAP}(?:the{_GAP})?[Nn]otebook)")
_ANOTHERS = re.compile(r"[Nn]otebook \d+(?:['’]s|[,:;])? \(?$")


@dataclass(frozen=True)
class Heading:
    """The heading of an exercise or a task: its line in the file, from 1, its number and facts as they are written, and
    the name of what is below it.
    """

    line: int
    number: int | None
    facts: str
    name: str | None


def exercises_in(source: Source, chapter: Chapter) -> list[Exercise]:
    """Return the exercises of a chapter that have a cell in its source, in the order of the cells."""
    by_name = {exercise.name: exercise for exercise in exercises_of(chapter)}
    return [by_name[cell.exercise] for cell in source.cells if cell.exercise in by_name]


def complete(source: Source, chapter: Chapter) -> bool:
    """Return True if no exercise of the chapter is left out of its source."""
    there, asked = exercises_in(source, chapter), exercises_of(chapter)
    return bool(there) and {exercise.name for exercise in there} == {exercise.name for exercise in asked}


def headings(source: Source) -> list[Heading]:
    """Return the headings of exercises. An exercise belongs to the last heading since the exercise before it."""
    found: list[Heading] = []
    below: str | None = None
    for cell in reversed(source.cells):
        below = cell.exercise or cell.task or below
        lines = cell.text.split("\n") if cell.kind == "markdown" else []
        for place in reversed(range(len(lines))):
            if match := HEADING.fullmatch(lines[place]):
                number = int(match["number"]) if match["number"] else None
                found.append(Heading(cell.line_of(place), number, match["facts"] or "", below))
                below = None
    return found[::-1]


def heading_mistakes(source: Source, chapter: Chapter) -> Iterator[Mistake]:
    """Yield the headings that have no exercise or no number, and the references that renumbering would make wrong."""
    found = headings(source)
    whole = complete(source, chapter)
    yield from _wrong_points(source, chapter)
    for heading in found:
        if heading.facts and not heading.name:
            yield heading.line, "the heading of an exercise without its cell"
        elif heading.name and not heading.number and not whole:
            yield heading.line, "number this heading: exercises are left out, so the build does not number them"
    numbers = [heading.number for heading in found if heading.number]
    if not whole or numbers == [*range(1, len(found) + 1)]:
        return
    for reference in references(source.text):
        line = source.text.count("\n", 0, reference.start()) + 1
        for number in numbers_of(reference):
            if numbers.count(number) > 1:
                yield line, f"two headings have the number {number}: remove the number from the new one"
            elif 0 < number < max(numbers, default=0) and number not in numbers:
                yield line, f"there is no exercise {number} any more: correct this reference"


def _wrong_points(source: Source, chapter: Chapter) -> Iterator[Mistake]:
    """Yield the headings in another form than `HEADING` that state other points than the next exercise has."""
    points = {exercise.name: exercise.points for exercise in exercises_of(chapter)}
    below: str | None = None
    for cell in reversed(source.cells):
        below = cell.exercise or below
        for place, line in enumerate(cell.text.split("\n") if cell.kind == "markdown" and below in points else []):
            stated = _STATED.match(line)
            if stated and not HEADING.fullmatch(line) and int(stated[1]) != points[str(below)]:
                says = f"this heading says {stated[1]} points, and `{below}` has {points[str(below)]}"
                yield cell.line_of(place), says
        if cell.kind == "markdown" and _STATED.search(cell.text):
            below = None


def moved(source: Source, chapter: Chapter) -> dict[int, int]:
    """Return the new number of each exercise whose number changes, by its written number."""
    if not complete(source, chapter):
        return {}
    found = enumerate(headings(source), start=1)
    return {heading.number: number for number, heading in found if heading.number and heading.number != number}


def numbered(source: Source, chapter: Chapter) -> Source:
    """Return the source with the right numbers, facts and totals. If exercises are left out, all numbers stay."""
    exercises = exercises_in(source, chapter)
    facts = {exercise.name: f"  ({exercise.summary})" for exercise in exercises}
    whole = complete(source, chapter)
    lines = with_references(source.text, moved(source, chapter)).split("\n")
    for place, heading in enumerate(headings(source), start=1):
        old = HEADING.fullmatch(lines[heading.line - 1][2:])
        assert old is not None
        number = f" {place}" if whole else f" {heading.number}" * bool(heading.number)
        text = f"### Exercise{number} · {old['title']}{facts.get(str(heading.name), heading.facts)}"
        lines[heading.line - 1] = f"# {text}"
    now = parse_source(source.path, "\n".join(lines))
    parts = parts_of(now, exercises)
    for line, minutes in minutes_of_sections(now, exercises).items():
        if section := SECTION.fullmatch(lines[line - 1]):
            lines[line - 1] = f"{section[1]}  ({minutes} min)"
    for first in source.cells[:1]:
        totals = _totals(parts, minutes_in(first.text), whole=whole)
        part = slice(first.line, first.line_of(first.text.count("\n")))
        lines[part] = [f"{line[:2]}{TOTALS.sub(totals, line[2:])}" for line in lines[part]]
    return parse_source(source.path, "\n".join(lines))


def _totals(parts: Sequence[Part], stated: Sequence[int], *, whole: bool) -> str:
    """Return the replacement of `TOTALS` in the first cell. A notebook without Further keeps its stated minutes; if its
    exercises of Further are left out, too, those of the core.
    """
    if len(parts) > 1:
        return f"**Core · {parts[0].totals}** · **Further · {parts[1].totals}**"
    minutes = sum(stated if whole else stated[:1])
    return "".join(f"**{minutes} min · {part.counts}**" for part in parts)


def core_alone(source: Source, chapter: Chapter) -> Source:
    """Return a source without its cells from the heading `## Further` on, and with the totals of the core."""
    if source.core == len(source.cells):
        return source
    core, _ = parts_of(source, exercises_of(chapter))
    first, *others = source.cells[: source.core]
    return replace(source, cells=(replace(first, text=TOTALS.sub(f"**{core.totals}**", first.text)), *others))


def left_out(source: Source, names: Collection[str], chapter: Chapter) -> Source:
    """Return a source without these exercises: text, answer and check. Where a later cell uses an answer, the printed
    solution stays in a folded cell.

    Raises CourseError if an exercise is not in the source, or its text shares a cell with other text.
    """
    asked = [cell.exercise for cell in source.cells if cell.exercise]
    if unknown := sorted({*names} - {*asked}):
        raise CourseError(f"{source.path}: it has no exercise {unknown[0]!r} to leave out, only {', '.join(asked)}.")
    texts = _texts_of(source)
    kept: list[SourceCell] = []
    used: set[str] = set()
    for place, cell in reversed([*enumerate(source.cells)]):
        name = cell.exercise or cell.check or texts.get(place, "")
        if name not in names:
            kept.append(cell)
            used |= Code(cell.text).loaded if cell.kind == "code" else set()
        elif cell.exercise and name in used:
            solution = re.sub(r"^ *### (?:BEGIN|END) SOLUTION\n?", "", cell.text, flags=re.MULTILINE).rstrip()
            text = f'from lmcourse.notebook import left_out\n\n{solution}\n\nleft_out("{name}")'
            kept.append(replace(cell, text=text, options={"tags": ["hide-input"]}))
        elif place in texts and not HEADING.fullmatch(cell.text.split("\n")[0]):
            raise CourseError(f"{source.path}:{cell.line}: the text of {name!r} shares a cell with the text above it.")
    less = replace(source, cells=tuple(reversed(kept)))
    parts = parts_of(less, exercises_in(less, chapter))
    first, *others = less.cells
    core = {cell.exercise for cell in source.cells[: source.core]}.intersection(names)
    fewer = sum(exercise.minutes for exercise in exercises_of(chapter) if exercise.name in core)
    totals = _totals(parts, [minutes - fewer for minutes in minutes_in(first.text)[:1]], whole=False)
    return replace(less, cells=(replace(first, text=TOTALS.sub(totals, first.text)), *others))


def _texts_of(source: Source) -> dict[int, str]:
    """Return the exercise to whose text a cell belongs, by the place of the cell."""
    found: dict[int, str] = {}
    below: str | None = None
    for place, cell in reversed([*enumerate(source.cells)]):
        below = cell.exercise or cell.task or below
        if below and cell.kind == "markdown" and any(map(HEADING.fullmatch, cell.text.split("\n"))):
            found[place], below = below, None
    return found


def with_row(readme: str, source: Source, chapter: Chapter) -> str:
    """Return the README with the right row for one of the course's notebooks; its description stays."""
    if not (complete(source, chapter) and minutes_in(source.cells[0].text)):
        return readme
    place = f"(notebooks/{chapter.id}/{chapter.topic}.ipynb)"
    row = re.compile(rf"^[IV]+ \| \[.*\]{re.escape(place)} \| (.*)(?: \| \d+(?: \+ \d+)?){{3}}$", re.MULTILINE)
    new = numbered(source, chapter)
    parts = parts_of(new, exercises_of(chapter))
    columns = (minutes_in(new.cells[0].text), [len(one.exercises) for one in parts], [one.points for one in parts])
    part, name = chapter.part.split(" · ")[0], f"{chapter.number} {chapter.title}"
    counts = " | ".join(map(joined, columns))
    return row.sub(lambda old: f"{part} | [{name}]{place} | {old[1]} | {counts}", readme)


def with_plans(teaching: str, readme: str) -> str:
    """Return the page for teachers with the minutes of each week of its plans, added up from the README's rows."""
    core, further = ({row[1]: int(row[part] or 0) for row in _MINUTES.finditer(readme)} for part in (2, 3))

    def week(numbers: str) -> str:
        parts = (sum(part.get(number, 0) for number in numbers.split(", ")) for part in (core, further))
        return joined(minutes for minutes in parts if minutes)

    def plan(old: re.Match[str]) -> str:
        return f"{old[1]}| minutes | {' | '.join(map(week, old[2].split(' | ')))} |"

    return _PLAN.sub(plan, teaching)


def changed_lines(path: Path | str, old: str, new: str) -> list[str]:
    """Return a line for each line of a file that has changed: where it is, and what it says now."""
    pairs = enumerate(zip(old.split("\n"), new.split("\n"), strict=True), start=1)
    return [f"{path}:{number}: {_around_change(*pair)}" for number, pair in pairs if pair[0] != pair[1]]


def mentions(changes: Mapping[int, int], chapter: Chapter, root: Path) -> Iterator[tuple[Path, int, int]]:
    """Yield where else renumbered exercises may be mentioned, as file, line and old number: in the chapter's package,
    and beside the notebook's number in other sources.
    """
    there = re.compile(rf"[Nn]otebook {re.escape(chapter.number)}\b")
    others = [path for path in sorted((root / "solutions").glob("*/*.py")) if path.parent.name != chapter.id]
    for path in [*_package(chapter), *others] if changes else ():
        for line, text in enumerate(path.read_text("utf-8", "replace").split("\n"), start=1):
            if path not in others or there.search(text):
                numbers = [number for found in REFERENCE.finditer(text) for number in numbers_of(found)]
                yield from ((path, line, number) for number in numbers if number in changes)


def _package(chapter: Chapter) -> list[Path]:
    if isinstance(chapter, FolderChapter):
        return [path for path in (chapter.source.with_name(BESIDE),) if path.is_file()]
    file = Path(str(importlib.import_module(chapter.module).__file__))
    return sorted((file.parents[1] if file.name == "__init__.py" else file.parent).rglob("*.py"))


def _around_change(old: str, new: str) -> str:
    """Return a changed line, or of a long one the part that begins shortly before the change."""
    same = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, same - 40) if len(new) > 120 else 0
    return f"{'…' if start else ''}{shorten(new[start:], 120)}"


def references(text: str) -> Iterator[re.Match[str]]:
    """Yield the references to exercises of the same notebook."""
    for found in REFERENCE.finditer(text):
        before = _ANOTHERS.search(text, max(0, found.start() - 30), found.start())
        if not before and not _OF_ANOTHER.match(text, found.end()):
            yield found


def numbers_of(reference: re.Match[str]) -> list[int]:
    """Return the numbers of the exercises in a match of `REFERENCE`."""
    words = reference["one"] or reference["many"]
    if (span := _RANGE.fullmatch(words)) and int(span[1]) < int(span[2]):
        return [*range(int(span[1]), int(span[2]) + 1)]
    return [int(number) for number in re.findall(r"\d+", words)]


def with_references(text: str, changes: Mapping[int, int]) -> str:
    """Return a text whose references to exercises of the same notebook have the new numbers."""
    for found in reversed([*references(text)] if changes else []):
        words = found["one"] or found["many"]
        start = found.end() - len(words)
        text = f"{text[:start]}{_renumbered(words, numbers_of(found), changes)}{text[found.end() :]}"
    return text


def _renumbered(words: str, old: list[int], changes: Mapping[int, int]) -> str:
    """Return the numbers of a reference with changes. A range that has come apart is written as a list."""
    new = [changes.get(number, number) for number in old]
    if _RANGE.fullmatch(words) and new != [*range(new[0], new[0] + len(new))]:
        broken = re.search(r"\n#[ \t]+", words)
        return f"{', '.join(map(str, new[:-1]))} and{broken[0] if broken else ' '}{new[-1]}"
    return re.sub(r"\d+", lambda number: str(changes.get(int(number[0]), int(number[0]))), words)
