"""Figures of notebook 10: vectors and streams, wirings, measurements by depth, published models."""

from lmcourse.chapters.normalization_and_blocks.figures.depth import (
    depth_runs,
    gradient_by_block,
    gradient_by_scale,
    weight_jitter,
)
from lmcourse.chapters.normalization_and_blocks.figures.models import norm_costs, norm_placement_grid
from lmcourse.chapters.normalization_and_blocks.figures.rescue import rescue_runs
from lmcourse.chapters.normalization_and_blocks.figures.stream import contribution_bars, norm_circle, stream_share
from lmcourse.chapters.normalization_and_blocks.figures.wiring import block_timeline, block_wiring

__all__ = [
    "block_timeline",
    "block_wiring",
    "contribution_bars",
    "depth_runs",
    "gradient_by_block",
    "gradient_by_scale",
    "norm_circle",
    "norm_costs",
    "norm_placement_grid",
    "rescue_runs",
    "stream_share",
    "weight_jitter",
]
