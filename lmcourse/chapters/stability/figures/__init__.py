"""Figures of notebook 16: softmax under attack, gradients that grow, runs side by side."""

from lmcourse.chapters.stability.figures.gradients import deaf_weights, gradient_spikes, loss_scale_history
from lmcourse.chapters.stability.figures.map import hot_spots, norm_positions
from lmcourse.chapters.stability.figures.runs import side_by_side, vital_signs
from lmcourse.chapters.stability.figures.scores import score_growth
from lmcourse.chapters.stability.figures.softmax import soft_cap_curve, softmax_under_attack

__all__ = [
    "deaf_weights",
    "gradient_spikes",
    "hot_spots",
    "loss_scale_history",
    "norm_positions",
    "score_growth",
    "side_by_side",
    "soft_cap_curve",
    "softmax_under_attack",
    "vital_signs",
]
