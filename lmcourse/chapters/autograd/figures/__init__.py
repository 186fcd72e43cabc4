"""Figures of notebook 03: computation graphs, gradients, and the tensors kept for them."""

from lmcourse.chapters.autograd.figures.curves import gaussian_loss, gradient_check_error, two_paths
from lmcourse.chapters.autograd.figures.graph import computation_graph, graph_step
from lmcourse.chapters.autograd.figures.graph_player import GraphPlayer
from lmcourse.chapters.autograd.figures.tensors import (
    batch_gradients,
    layernorm_gradient,
    saved_for_backward,
    three_matmuls,
)
from lmcourse.chapters.autograd.figures.training import compare_losses

__all__ = [
    "GraphPlayer",
    "batch_gradients",
    "compare_losses",
    "computation_graph",
    "gaussian_loss",
    "gradient_check_error",
    "graph_step",
    "layernorm_gradient",
    "saved_for_backward",
    "three_matmuls",
    "two_paths",
]
