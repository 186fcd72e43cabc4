"""Configuration of plain `nbgrader` commands and JupyterLab's nbgrader panels; run them in this folder."""

from pathlib import Path

from lmcourse.grading.config import configure

c = get_config()  # traitlets runs this file and provides get_config
configure(c, Path(__file__).resolve().parent)
