"""Figures of notebook 11: activations, gates, widths, hidden units."""

from lmcourse.chapters.feed_forward.figures.activations import activation_explorer, activation_zoo, universal_fit
from lmcourse.chapters.feed_forward.figures.cost import elementwise_roofline
from lmcourse.chapters.feed_forward.figures.evidence import BASIN, ablation_losses, glue_scores, ratio_basin
from lmcourse.chapters.feed_forward.figures.experts import expert_shares
from lmcourse.chapters.feed_forward.figures.gates import gate_surface
from lmcourse.chapters.feed_forward.figures.sizes import (
    matched_parameters,
    model_shapes,
    published,
    ratio_trade,
    width_ratios,
)
from lmcourse.chapters.feed_forward.figures.units import hidden_unit

__all__ = [
    "BASIN",
    "ablation_losses",
    "activation_explorer",
    "activation_zoo",
    "elementwise_roofline",
    "expert_shares",
    "gate_surface",
    "glue_scores",
    "hidden_unit",
    "matched_parameters",
    "model_shapes",
    "published",
    "ratio_basin",
    "ratio_trade",
    "universal_fit",
    "width_ratios",
]
