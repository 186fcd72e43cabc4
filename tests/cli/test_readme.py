"""The table, links and commands in README.md are correct, and so are the plans for teachers."""

from __future__ import annotations

import re
from pathlib import Path

from lmcourse.authoring.numbering import with_plans
from lmcourse.authoring.reading_time import parts_of
from lmcourse.cli.parser import make_parser
from lmcourse.course.chapters import CHAPTERS, Chapter
from lmcourse.course.parts import joined, minutes_in
from lmcourse.exercises.registry import exercises_of
from tests.course.chapters import source

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.split("|")] for line in README.splitlines() if re.match(r"[IV]+ \| ", line)]


def row_of(chapter: Chapter) -> list[str]:
    """Return the expected row, without the sentence about the notebook."""
    name = f"{chapter.number} {chapter.title}"
    link = f"[{name}](notebooks/{chapter.id}/{chapter.topic}.ipynb)"
    parts = parts_of(source(chapter), exercises_of(chapter))
    minutes = minutes_in(source(chapter).cells[0].text)
    counts = minutes, [len(part.exercises) for part in parts], [part.points for part in parts]
    return [chapter.part.split(" · ")[0], link, *map(joined, counts)]


def test_each_row_matches_the_course_map() -> None:
    assert [[*row[:2], *row[3:]] for row in ROWS] == [row_of(chapter) for chapter in CHAPTERS]
    assert all(row[2] for row in ROWS)
    assert all(chapter.part in README for chapter in CHAPTERS)


def test_plans_for_teachers_add_up_the_minutes_of_their_notebooks(course: Path) -> None:
    text = (course / "docs" / "teaching.md").read_text(encoding="utf-8")
    assert with_plans(text, README) == text
    weeks = [
        row.split(" | ") for row in re.findall(r"^\| notebooks \| (.+) \|\n\| minutes \| .+ \|$", text, re.MULTILINE)
    ]
    assert [len(plan) for plan in weeks] == [6, 10, 14]
    assert {name for plan in weeks for week in plan for name in week.split(", ")} == {each.number for each in CHAPTERS}


def test_links_and_pictures_lead_somewhere(course: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https://")]
    assert [link for link in links if not (course / link).is_file()] == []


def test_pictures_are_small_and_described(course: Path) -> None:
    pictures = re.findall(r"!\[([^\]]+)\]\((docs/pictures/[^)]+)\)", README)
    assert len(pictures) == 2
    for described, path in pictures:
        assert len(described) > 80
        assert (course / path).stat().st_size < 300_000


def test_documented_commands_exist(course: Path) -> None:
    known = make_parser().format_help()
    for command in re.findall(r"(?:`|^)lmcourse ([a-z]+)", README, re.M):
        assert f"    {command} " in known, command
    makefile = (course / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^)make ([a-z]+)", README, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_python_versions_match_the_package(course: Path) -> None:
    versions = re.findall(r"Python :: (3\.\d+)", (course / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"Python {', '.join(versions[:-1])} or {versions[-1]}" in README


def test_pip_lines_of_the_page_on_running_equal_the_locks(course: Path) -> None:
    lock = (course / "requirements.lock").read_text(encoding="utf-8")
    page = (course / "docs" / "running.md").read_text(encoding="utf-8").split("\n## conda")[0]
    lines = re.findall(r"^python -m pip .+$", page, re.M)
    assert len(lines) == 3
    assert all(f"#     {line}" in lock for line in lines)
