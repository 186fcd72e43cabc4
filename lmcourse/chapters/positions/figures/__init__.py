"""Figures of notebook 09: waves, biases, rotations."""

from lmcourse.chapters.positions.figures.length import loss_by_length, loss_by_position
from lmcourse.chapters.positions.figures.relative import alibi_reach, relative_bands, slopes_by_head, t5_buckets
from lmcourse.chapters.positions.figures.rotary import pair_layouts, rope_scaling, rotating_pair, rotation_clocks
from lmcourse.chapters.positions.figures.scores import nope_estimate, position_scores, scheme_scores
from lmcourse.chapters.positions.figures.waves import position_heatmap, wavelengths

__all__ = [
    "alibi_reach",
    "loss_by_length",
    "loss_by_position",
    "nope_estimate",
    "pair_layouts",
    "position_heatmap",
    "position_scores",
    "relative_bands",
    "rope_scaling",
    "rotating_pair",
    "rotation_clocks",
    "scheme_scores",
    "slopes_by_head",
    "t5_buckets",
    "wavelengths",
]
