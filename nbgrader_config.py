"""Plain `nbgrader` commands and JupyterLab's nbgrader panels read this file: run them in this folder."""

from pathlib import Path

from traitlets.config import get_config

from lmcourse.grading.config import configure

configure(get_config(), Path(__file__).resolve().parent)
