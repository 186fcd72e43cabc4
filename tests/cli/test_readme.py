"""README.md says what is true: its table, its links, its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmcourse.cli.parser import make_parser
from lmcourse.course import CHAPTERS, Chapter
from lmcourse.exercises.registry import exercises_of

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.split("|")] for line in README.splitlines() if re.match(r"I+V? \| |IV \| ", line)
]


def test_the_table_has_every_notebook_in_order() -> None:
    titles = [re.sub(r"^\[(.+)\]\(.+\)$", r"\1", row[1]) for row in ROWS]
    assert titles == [f"{chapter.id[:2]} {chapter.title}" for chapter in CHAPTERS]


@pytest.mark.parametrize(
    ("chapter", "row"), list(zip(CHAPTERS, ROWS, strict=False)), ids=lambda item: getattr(item, "id", "")
)
def test_each_row_says_what_the_course_says(chapter: Chapter, row: list[str]) -> None:
    part, title, what, minutes, *counts = row
    assert chapter.part.startswith(f"{part} · ")
    assert chapter.part in README
    assert what
    assert minutes == str(chapter.minutes)
    if not chapter.available:
        assert counts == ["*planned*", ""]
        return
    assert f"](notebooks/{chapter.id}/{chapter.topic}.ipynb)" in title
    exercises = exercises_of(chapter)
    assert counts == [str(len(exercises)), str(sum(exercise.points for exercise in exercises))]


def test_links_and_pictures_lead_somewhere(course: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https://")]
    assert [link for link in links if not (course / link).is_file()] == []


def test_pictures_are_small_and_described(course: Path) -> None:
    pictures = re.findall(r"!\[([^\]]+)\]\((docs/pictures/[^)]+)\)", README)
    assert len(pictures) == 2
    for described, path in pictures:
        assert len(described) > 80
        assert (course / path).stat().st_size < 300_000


def test_commands_exist(course: Path) -> None:
    known = make_parser().format_help()
    for command in re.findall(r"(?:`|^)lmcourse ([a-z]+)", README, re.M):
        assert f"    {command} " in known, command
    makefile = (course / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^)make ([a-z]+)", README, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_python_versions_are_those_of_the_package(course: Path) -> None:
    versions = re.findall(r"Python :: (3\.\d+)", (course / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"Python {', '.join(versions[:-1])} or {versions[-1]}" in README


def test_the_pip_lines_are_those_of_the_lock(course: Path) -> None:
    lock = (course / "requirements.lock").read_text(encoding="utf-8")
    lines = re.findall(r"^python -m pip .+$", README, re.M)
    assert len(lines) == 3
    assert all(f"#     {line}" in lock for line in lines)
