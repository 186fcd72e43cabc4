"""Controls for the figures of `lmcourse.plots`, live in JupyterLab and a still picture everywhere else."""

from lmcourse.widgets.choice import Choice
from lmcourse.widgets.controls import Control, Log
from lmcourse.widgets.explorer import Explorer, explore
from lmcourse.widgets.live import LiveFigure
from lmcourse.widgets.training import LivePlot

__all__ = [
    "Choice",
    "Control",
    "Explorer",
    "LiveFigure",
    "LivePlot",
    "Log",
    "explore",
]
