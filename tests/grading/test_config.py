"""nbgrader's configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lmcourse.grading.config import configure


def test_nbgrader_finds_alembic_where_no_environment_is_active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from traitlets.config import Config

    monkeypatch.setenv("PATH", str(tmp_path))
    configure(Config(), tmp_path)
    assert shutil.which("alembic")


def test_a_new_gradebook_has_the_version_that_nbgrader_itself_would_ask_a_program_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbgrader.api import Gradebook
    from sqlalchemy import text
    from traitlets.config import Config

    configure(Config(), tmp_path)  # which lets the program be found, too
    ask = [sys.executable, "-c", "from nbgrader.api import get_alembic_version as ask; print(ask())"]
    expected = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a program was started"))
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        assert book.db.execute(text("SELECT version_num FROM alembic_version")).scalar() == expected
