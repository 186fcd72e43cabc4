"""Collect a learner's answers from notebooks, as a package that runs without the course, or as functions.

`collect` makes the package. It grades answers, and so loads nbgrader; notebooks import only the names below.
"""

from lmcourse.own_package.load import LoadedPart, load_parts, verdict
from lmcourse.own_package.weights import package_config, package_weights

__all__ = ["LoadedPart", "load_parts", "package_config", "package_weights", "verdict"]
