"""The course's folder is found from any working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.course.root import find_root


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks like the course."""
    folder = tmp_path / "clone"
    (folder / "notebooks" / "01-floating-point").mkdir(parents=True)
    (folder / "nbgrader_config.py").touch()
    return folder


def test_the_course_is_found_from_a_folder_inside(clone: Path, tmp_path: Path) -> None:
    inside = clone / "notebooks" / "01-floating-point"
    assert find_root(here=inside, checkout=tmp_path) == clone


def test_the_course_is_found_in_the_installed_clone(clone: Path, tmp_path: Path) -> None:
    assert find_root(here=tmp_path, checkout=clone) == clone


def test_a_folder_with_only_solutions_is_a_course(clone: Path) -> None:
    (clone / "notebooks").rename(clone / "solutions")
    assert find_root(clone) == clone


def test_a_named_folder_must_be_the_course(clone: Path) -> None:
    assert find_root(clone) == clone
    with pytest.raises(CourseError, match="is not the course"):
        find_root(clone / "notebooks")


def test_a_missing_course_folder_is_reported_with_advice(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="--course FOLDER"):
        find_root(here=tmp_path, checkout=tmp_path)
