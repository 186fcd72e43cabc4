"""Figures of notebook 11: activations, gates, widths, hidden units."""

from lmcourse.chapters.feed_forward.figures.activations import activation_explorer, universal_fit
from lmcourse.chapters.feed_forward.figures.evidence import BASIN, THIN_HEADS, glue_scores
from lmcourse.chapters.feed_forward.figures.experts import expert_shares
from lmcourse.chapters.feed_forward.figures.gates import gate_surface
from lmcourse.chapters.feed_forward.figures.sizes import model_shapes, published, width_ratios
from lmcourse.chapters.feed_forward.figures.units import hidden_unit

__all__ = [
    "BASIN",
    "THIN_HEADS",
    "activation_explorer",
    "expert_shares",
    "gate_surface",
    "glue_scores",
    "hidden_unit",
    "model_shapes",
    "published",
    "universal_fit",
    "width_ratios",
]
