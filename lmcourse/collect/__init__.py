"""A learner's answers, collected from their notebooks into a package that runs without the course."""

from lmcourse.collect.collect import Collected, Row, collect

__all__ = ["Collected", "Row", "collect"]
