"""Small JSON files, written atomically."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmcourse.errors import CourseError


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write an object; it appears under its name when it is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any]:
    """An object.

    Raises:
        CourseError: there is no such file, or it is damaged.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise CourseError(f"{path} is damaged: it holds no JSON object")
    return values
