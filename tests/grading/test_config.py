"""nbgrader's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.grading.config import configure


def test_nbgrader_finds_alembic_where_no_environment_is_active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from traitlets.config import Config

    monkeypatch.setenv("PATH", str(tmp_path))
    configure(Config(), tmp_path)
    assert shutil.which("alembic")
