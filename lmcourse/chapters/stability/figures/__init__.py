"""Figures of notebook 16: softmax under attack, gradients that grow, runs side by side."""

from lmcourse.chapters.stability.figures.gradients import gradient_spikes, loss_scale_history, lost_updates
from lmcourse.chapters.stability.figures.map import norm_positions, overflow_risks
from lmcourse.chapters.stability.figures.runs import compare_runs, loss_against_rate, training_diagnostics
from lmcourse.chapters.stability.figures.scores import score_growth
from lmcourse.chapters.stability.figures.softmax import soft_cap_curve, softmax_of_growing_logits

__all__ = [
    "compare_runs",
    "gradient_spikes",
    "loss_against_rate",
    "loss_scale_history",
    "lost_updates",
    "norm_positions",
    "overflow_risks",
    "score_growth",
    "soft_cap_curve",
    "softmax_of_growing_logits",
    "training_diagnostics",
]
