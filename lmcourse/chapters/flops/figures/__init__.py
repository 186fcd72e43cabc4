"""Figures of notebook 15: the FLOPs of each part, and the time that they take."""

from lmcourse.chapters.flops.figures.backward import backward_bars, recompute_bars
from lmcourse.chapters.flops.figures.bounds import products_on_the_roof
from lmcourse.chapters.flops.figures.budget import training_budget
from lmcourse.chapters.flops.figures.generation import generation_cost
from lmcourse.chapters.flops.figures.landmarks import training_landmarks
from lmcourse.chapters.flops.figures.layer import layer_drawing
from lmcourse.chapters.flops.figures.parts import attention_by_length, flops_by_part
from lmcourse.chapters.flops.figures.peaks import utilisation_by_peak
from lmcourse.chapters.flops.figures.products import elementwise_share, matmul_cube
from lmcourse.chapters.flops.figures.rules import six_n_gap
from lmcourse.chapters.flops.figures.tries import tries

__all__ = [
    "attention_by_length",
    "backward_bars",
    "elementwise_share",
    "flops_by_part",
    "generation_cost",
    "layer_drawing",
    "matmul_cube",
    "products_on_the_roof",
    "recompute_bars",
    "six_n_gap",
    "training_budget",
    "training_landmarks",
    "tries",
    "utilisation_by_peak",
]
