"""FLOPs of an update of the weights. AdamW has a dozen per weight, which no table counts; Muon multiplies matrices."""

from __future__ import annotations

from collections import Counter

from lmcourse.accounting.matrices import layer_matrices
from lmcourse.models.config import TransformerConfig

NEWTON_SCHULZ_ITERATIONS = 5
"""As many as Jordan et al. (2024) take."""


def newton_schulz_flops(rows: int, columns: int, iterations: int = NEWTON_SCHULZ_ITERATIONS) -> int:
    """FLOPs to make a matrix nearly orthogonal: (4 m² n + 2 m³) per iteration, with m the shorter side.

    X Xᵀ takes 2 m² n, its square 2 m³, and their sum times X again 2 m² n (Jordan et al., 2024).
    """
    m, n = sorted((rows, columns))
    return iterations * (4 * m**2 * n + 2 * m**3)


def muon_flops(config: TransformerConfig, iterations: int = NEWTON_SCHULZ_ITERATIONS) -> int:
    """FLOPs of Muon's matrix products in an update of all blocks, however many tokens it has learned from."""
    return sum(
        times * newton_schulz_flops(matrix.outputs, matrix.inputs, iterations)
        for layer, times in Counter(config.layers).items()
        for matrix in layer_matrices(layer, config.d_model)
    )


def block_matrix_weights(config: TransformerConfig) -> int:
    """The weights of all matrices of the blocks: those that Muon updates."""
    return sum(matrix.weights for layer in config.layers for matrix in layer_matrices(layer, config.d_model))
