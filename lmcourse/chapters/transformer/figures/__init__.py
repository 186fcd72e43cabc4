"""Figures of notebook 12: the path of a text through a model, measurements before training, published models."""

from lmcourse.chapters.transformer.figures.blocks import then_and_now
from lmcourse.chapters.transformer.figures.measured import readers
from lmcourse.chapters.transformer.figures.models import feature_timeline, parameters_by_part
from lmcourse.chapters.transformer.figures.pipeline import pipeline

__all__ = ["feature_timeline", "parameters_by_part", "pipeline", "readers", "then_and_now"]
