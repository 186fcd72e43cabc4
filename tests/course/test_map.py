"""Test the map of the course and the contents of its folders."""

from __future__ import annotations

import keyword
from itertools import groupby
from pathlib import Path

import pytest

from lmcourse.authoring.build import check_built
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.course.chapters import BUILDS_ON, CHAPTERS, ROUTES, Chapter, find_chapter
from tests.course.chapters import ROOT, WRITTEN

NOT_OURS = {".ipynb_checkpoints", ".predictions.json", "__pycache__", "trained.safetensors", "sealed.json"}


def files_in(folder: str) -> set[Path]:
    return {path for path in (ROOT / folder).rglob("*") if path.is_file() and not NOT_OURS & set(path.parts)}


def test_chapters_are_numbered_from_one_without_a_gap() -> None:
    assert [chapter.number for chapter in CHAPTERS] == [f"{number:02}" for number in range(1, len(CHAPTERS) + 1)]


def test_topics_and_titles_are_unique_and_topics_can_be_modules() -> None:
    for names in ([chapter.topic for chapter in CHAPTERS], [chapter.title for chapter in CHAPTERS]):
        assert len(set(names)) == len(names)
    assert all(chapter.topic.isidentifier() and not keyword.iskeyword(chapter.topic) for chapter in CHAPTERS)


def test_each_part_is_contiguous() -> None:
    parts = [part for part, _ in groupby(chapter.part for chapter in CHAPTERS)]
    assert len(set(parts)) == len(parts)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_a_chapter_builds_on_earlier_ones(chapter: Chapter) -> None:
    before = BUILDS_ON[chapter.number].split()
    assert before == sorted(number for number in before if number < chapter.number)
    assert all(find_chapter(number) for number in before)


def test_sections_named_in_routes_exist() -> None:
    for number, last in (stop for route in ROUTES for stop in route.stops):
        source = ChapterFiles.of(find_chapter(number), ROOT).source.read_text(encoding="utf-8")
        assert not last or f"\n# ## {last} · " in source, (number, last)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_a_chapter_is_found_by_each_of_its_names(chapter: Chapter) -> None:
    names = (chapter.id, chapter.number, chapter.number.lstrip("0"), chapter.topic)
    assert {find_chapter(name) for name in names} == {chapter}


def test_notebooks_folder_has_only_built_files() -> None:
    allowed = {ROOT / "notebooks" / "welcome.ipynb"}  # `lmcourse lab` writes this file, and git ignores it
    assert files_in("notebooks") - allowed == {ChapterFiles.of(chapter, ROOT).release for chapter in WRITTEN}


def test_solutions_has_a_source_and_a_notebook_per_chapter() -> None:
    files = [ChapterFiles.of(chapter, ROOT) for chapter in WRITTEN]
    assert files_in("solutions") == {path for item in files for path in (item.source, item.solution)}


def test_committed_notebooks_match_their_sources() -> None:
    assert check_built(WRITTEN, ROOT) == []
