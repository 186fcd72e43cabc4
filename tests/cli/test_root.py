"""The course's folder is found from wherever somebody types."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.root import find_root


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks like the course."""
    folder = tmp_path / "clone"
    (folder / "notebooks" / "01-floating-point").mkdir(parents=True)
    (folder / "nbgrader_config.py").touch()
    return folder


def test_found_from_a_folder_inside(clone: Path, tmp_path: Path) -> None:
    inside = clone / "notebooks" / "01-floating-point"
    assert find_root(here=inside, checkout=tmp_path) == clone


def test_found_where_the_package_is_installed_from(clone: Path, tmp_path: Path) -> None:
    assert find_root(here=tmp_path, checkout=clone) == clone


def test_solutions_alone_are_enough(clone: Path) -> None:
    (clone / "notebooks").rename(clone / "solutions")
    assert find_root(clone) == clone


def test_a_named_folder_must_be_the_course(clone: Path) -> None:
    assert find_root(clone) == clone
    with pytest.raises(CourseError, match="is not the course"):
        find_root(clone / "notebooks")


def test_nowhere_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="--course FOLDER"):
        find_root(here=tmp_path, checkout=tmp_path)
