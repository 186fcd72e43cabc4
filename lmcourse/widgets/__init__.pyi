from lmcourse.widgets.choice import Choice as Choice
from lmcourse.widgets.controls import Control as Control
from lmcourse.widgets.controls import Log as Log
from lmcourse.widgets.explorer import Explorer as Explorer
from lmcourse.widgets.explorer import explore as explore
from lmcourse.widgets.guess import Guess as Guess
from lmcourse.widgets.live import LiveFigure as LiveFigure
from lmcourse.widgets.training import LivePlot as LivePlot
