"""Plain `nbgrader` commands and JupyterLab's nbgrader panels read this file: run them in this folder."""

from pathlib import Path

from lmcourse.grading.config import configure

c = get_config()  # traitlets, which runs this file, puts the function here
configure(c, Path(__file__).resolve().parent)
