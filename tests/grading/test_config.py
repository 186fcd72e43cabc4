"""Test nbgrader's configuration."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from traitlets.config import Config

from lmcourse.grading.config import configure

pytestmark = pytest.mark.prove


def test_nbgrader_finds_alembic_without_an_active_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    configure(Config(), tmp_path)
    assert shutil.which("alembic")


def test_configuration_does_not_load_torch(tmp_path: Path) -> None:
    """JupyterLab reads the configuration at every start."""
    code = "import sys; from traitlets.config import Config; from pathlib import Path; "
    code += (
        "from lmcourse.grading.config import configure; configure(Config(), Path('.')); print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
