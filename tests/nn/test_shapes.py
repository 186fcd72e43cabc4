"""Annotated shapes are right: every layer runs with a runtime type checker (jaxtyping with beartype)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.prove
def test_every_layer_returns_its_annotated_shapes(course: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(course)}
    script = Path(__file__).with_name("typed_run.py")
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["refused: shape dtype length"], (
        "a public function was not called, or not checked"
    )
