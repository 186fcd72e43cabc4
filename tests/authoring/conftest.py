"""A tiny course, built once; a test that spoils it gets a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lmcourse.authoring.build import build
from lmcourse.authoring.folders import ChapterFiles
from tests.authoring.tiny import TINY, write_source


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder with the tiny chapter, built. Not to be changed."""
    root = tmp_path_factory.mktemp("built")
    write_source(root)
    build([TINY], root)
    return root


@pytest.fixture
def tiny_course(built: Path, tmp_path: Path) -> Path:
    """A course folder with the tiny chapter, built, that a test may spoil."""
    return Path(shutil.copytree(built, tmp_path / "course"))


@pytest.fixture
def files(tiny_course: Path) -> ChapterFiles:
    """The tiny chapter's files in `tiny_course`."""
    return ChapterFiles.of(TINY, tiny_course)
