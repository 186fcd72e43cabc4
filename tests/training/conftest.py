"""Shared fixtures for tests of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training import runs


@pytest.fixture(scope="module")
def whole(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    assert runs.trainer(folder).run() == "steps"
    return folder
