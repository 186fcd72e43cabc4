"""Plain `nbgrader` commands and JupyterLab's nbgrader panels read this file: run them in this folder."""

from pathlib import Path

from lmcourse.grading.config import configure

configure(
    get_config(), Path(__file__).resolve().parent
)  # `get_config` is put here by traitlets, which runs this file
