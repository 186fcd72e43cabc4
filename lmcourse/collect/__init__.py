"""A learner's answers, collected from their notebooks: into a package that runs without the course, or as functions."""

from lmcourse.collect.collect import Collected, Row, collect
from lmcourse.collect.own import LoadedPart, load_parts
from lmcourse.collect.weights import package_config, package_weights

__all__ = ["Collected", "LoadedPart", "Row", "collect", "load_parts", "package_config", "package_weights"]
