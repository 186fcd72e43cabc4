"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def course() -> Path:
    """The folder of the course."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def in_ci() -> bool:
    """Whether a missing tool is a failure, on a machine set up for tests, or a skip, on a person's."""
    return os.environ.get("CI", "").lower() in ("1", "true")
