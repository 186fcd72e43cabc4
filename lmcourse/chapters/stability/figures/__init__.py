"""Figures of notebook 16: softmax under attack, gradients that grow, runs side by side."""

from lmcourse.chapters.stability.figures.gradients import gradient_spikes, lost_updates
from lmcourse.chapters.stability.figures.map import norm_positions
from lmcourse.chapters.stability.figures.runs import UNKNOWN, loss_against_rate, round_of, vital_signs
from lmcourse.chapters.stability.figures.softmax import soft_cap_curve, softmax_of_growing_logits

__all__ = [
    "UNKNOWN",
    "gradient_spikes",
    "loss_against_rate",
    "lost_updates",
    "norm_positions",
    "round_of",
    "soft_cap_curve",
    "softmax_of_growing_logits",
    "vital_signs",
]
