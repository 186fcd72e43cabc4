"""Remember a reader's predictions in a small file beside the notebook, so that they outlive its kernel.

Only a kernel that JupyterLab started for a notebook remembers: the server names the notebook in JPY_SESSION_NAME.
nbval, grading and `jupyter execute` start kernels without this name, and so read and write nothing.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from lmcourse.base.atomic import write_all
from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import read_json

FILE = ".predictions.json"
"""The file's name. Handing in copies no hidden files, and a copy of the notebook's folder includes them."""


def recall(prediction: str) -> str:
    """Return the remembered answer to the prediction with this name, or "" if there is none."""
    path = _path()
    return _answers(path).get(prediction, "") if path else ""


def remember(prediction: str, answer: str) -> None:
    """Remember the answer to a prediction, if its file can be written. A damaged file is replaced."""
    if path := _path():
        with suppress(CourseError):
            write_all({path: json.dumps(_answers(path) | {prediction: answer}, indent=1)})


def _path() -> Path | None:
    notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
    return notebook.with_name(FILE) if notebook.is_absolute() and notebook.parent.is_dir() else None


def _answers(path: Path) -> dict[str, str]:
    with suppress(CourseError):
        return {name: answer for name, answer in read_json(path).items() if isinstance(answer, str)}
    return {}
