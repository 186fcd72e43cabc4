"""No answer, hidden test or source of the course's own solutions is anywhere under notebooks/."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.release import SOLUTION_MARKS
from lmcourse.authoring.source import SOLUTION, find_regions
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import ROOT, WRITTEN, solution, source

LONGER_THAN = 25
"""Number of characters above which a line is specific to one file."""


def solution_lines(chapter: Chapter) -> tuple[set[str], set[str]]:
    """Return the lines in a source's solution regions, and all its other lines."""
    inside: set[str] = set()
    outside: set[str] = set()
    for cell in source(chapter).cells:
        lines = [line.strip() for line in cell.text.split("\n")]
        hidden = {
            number
            for region in find_regions(cell.text)[0]
            if region.kind == SOLUTION
            for number in range(region.first, region.last + 1)
        }
        inside |= {line for number, line in enumerate(lines) if number in hidden}
        outside |= {line for number, line in enumerate(lines) if number not in hidden}
    return inside, outside


def exercise_lines(chapter: Chapter) -> set[str]:
    """Return the lines of references, hidden cases and misconceptions with their sentences."""
    lines: set[str] = set()
    for exercise in exercises_of(chapter):
        lines |= {wrong.sentence for wrong in exercise.misconceptions}
        for function in [
            exercise.reference,
            exercise.hidden_cases,
            *(wrong.answer for wrong in exercise.misconceptions if not wrong.base),
        ]:
            if inspect.isfunction(function):
                lines |= {line.strip() for line in inspect.getsource(function).split("\n")}
    return lines


@cache
def secrets() -> dict[str, str]:
    """Return the secrets that students must not find, with their origins. Lines that a text shows on purpose, and names
    that occur in other files, are not secrets."""
    found = dict.fromkeys(SOLUTION_MARKS, "a marker")
    shown = set().union(*(solution_lines(chapter)[1] for chapter in WRITTEN))
    files = {path.name for folder in ("lmcourse", "experiments") for path in (ROOT / folder).rglob("*.py")}
    for chapter in WRITTEN:
        found |= dict.fromkeys(solution_lines(chapter)[0] - shown, f"a solution of {chapter.id}")
        found |= dict.fromkeys(exercise_lines(chapter) - shown, f"an exercise of {chapter.id}")
        name = ChapterFiles.of(chapter, ROOT).source.name
        found[f"{chapter.id}/{name}" if name in files else name] = "the name of a source"
    return {
        text: origin
        for text, origin in found.items()
        if len(text) > LONGER_THAN or text in SOLUTION_MARKS or text.endswith(".py")
    }


def strings(item: Any) -> Iterator[str]:
    """Yield all strings in a JSON document, including keys."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict):
        for key, value in item.items():
            yield key
            yield from strings(value)
    elif isinstance(item, list):
        if item and all(isinstance(part, str) for part in item):
            yield "".join(item)
        for value in item:
            yield from strings(value)


@cache
def words_within(secret: str) -> frozenset[str]:
    """Return the inner words of a secret, which must also occur in a text that contains the secret."""
    return frozenset(re.findall(r"(?<=\W)\w+(?=\W)", secret))


def leaks(folder: Path) -> list[str]:
    """Return all secrets in files below a folder. Most are excluded by their words, because searching all texts for
    each secret takes a minute."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".ipynb":
            text += "\n".join(strings(json.loads(text)))
        words = {*re.findall(r"\w+", text)}
        found += [
            f"{path.name}: {secret!r}, {origin}"
            for secret, origin in secrets().items()
            if words_within(secret) <= words and secret in text
        ]
    return found


def test_no_secret_is_under_notebooks(tmp_path: Path) -> None:
    for chapter in WRITTEN:  # without the welcome page and checkpoints of solved notebooks
        release = ChapterFiles.of(chapter, ROOT).release
        (tmp_path / chapter.id).mkdir()
        shutil.copy(release, tmp_path / chapter.id)
    assert leaks(tmp_path) == []


def test_solution_notebooks_contain_many_secrets(tmp_path: Path) -> None:
    for chapter in WRITTEN:
        cells = [cell.source for cell in solution(chapter).cells]  # without pictures, which are most of the file
        (tmp_path / f"{chapter.id}.ipynb").write_text(json.dumps(cells), encoding="utf-8")
    exercises = sum(len(exercises_of(chapter)) for chapter in WRITTEN)
    assert len(secrets()) > 10 * exercises
    assert len([line for line in leaks(tmp_path) if "a solution of" in line]) > exercises


@pytest.mark.parametrize("origin", ["a marker", "a solution of", "an exercise of", "the name of a source"])
@pytest.mark.parametrize("place", ["source", "output", "metadata", "cell metadata", "attachment", "file"])
def test_a_leak_is_found_wherever_it_is(place: str, origin: str, tmp_path: Path) -> None:
    secret = next(text for text, said in secrets().items() if said.startswith(origin))
    shutil.copy(ChapterFiles.of(WRITTEN[0], ROOT).release, tmp_path / "copy.ipynb")
    notebook = nbformat.read(tmp_path / "copy.ipynb", as_version=4)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    text = f"some words\n    {secret}\nmore"
    if place == "source":
        code.source += text
    elif place == "output":
        code.outputs = [nbformat.v4.new_output("execute_result", data={"text/html": text})]
    elif place == "metadata":
        notebook.metadata["note"] = text
    elif place == "cell metadata":
        code.metadata["note"] = {text: 1}
    elif place == "attachment":
        notebook.cells[0]["attachments"] = {"note": {"text/plain": text}}
    else:
        (tmp_path / "helper.txt").write_text(text)
    nbformat.write(notebook, tmp_path / "copy.ipynb")
    assert any(repr(secret) in line for line in leaks(tmp_path))
