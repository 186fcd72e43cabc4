"""A learner's answers, collected from their notebooks: into a package that runs without the course, or as functions.

`collect` makes the package. It grades, and loads nbgrader for that; notebooks import only what is below.
"""

from lmcourse.collect.own import LoadedPart, load_parts
from lmcourse.collect.weights import package_config, package_weights

__all__ = ["LoadedPart", "load_parts", "package_config", "package_weights"]
