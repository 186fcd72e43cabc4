"""A tiny course that is built once; tests that change it get a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lmcourse.authoring.build import build
from lmcourse.authoring.folders import ChapterFiles
from tests.authoring.tiny import TINY, write_source


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder with the built tiny chapter, which tests must not change."""
    root = tmp_path_factory.mktemp("built")
    write_source(root)
    build([TINY], root)
    return root


@pytest.fixture
def tiny_course(built: Path, tmp_path: Path) -> Path:
    """A copy of the course folder with the built tiny chapter, which a test may change."""
    return Path(shutil.copytree(built, tmp_path / "course"))


@pytest.fixture
def files(tiny_course: Path) -> ChapterFiles:
    """The tiny chapter's files in `tiny_course`."""
    return ChapterFiles.of(TINY, tiny_course)
