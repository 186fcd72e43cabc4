"""Precision recipes: the bytes per parameter in training, and the format of matrix products.

A recipe lists what stays in memory from step to step: weights, gradients, perhaps a master copy of the weights, and the
optimizer's moments. `memory` adds the memory of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import torch

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.formats import BYTES_PER_NUMBER, DTYPES, Format


@dataclass(frozen=True)
class PrecisionRecipe:
    """A mixed-precision recipe: bytes per parameter, and the precision of matrix products.

    Attributes:
        name: the name on the command line.
        title: a description.
        weights: bytes per parameter of the weights that the forward pass reads.
        gradients, master, moments: bytes per parameter of gradients, fp32 master weights and the optimizer's moments;
            0 if there are none.
        weight_precision: the format of the weights that the forward pass reads.
        matmul_precision: the format of matrix products.
        matrix_moments: `moments` for the matrices of the blocks if they have another optimizer; otherwise None.
    """

    name: str
    title: str
    weights: float
    gradients: float
    master: float
    moments: float
    weight_precision: Format
    matmul_precision: Format
    matrix_moments: float | None = None

    @property
    def per_parameter(self) -> float:
        """Bytes per parameter: weights, gradients, master weights and moments. With Muon this is the number for
        embedding and head."""
        return self.weights + self.gradients + self.master + self.moments

    @property
    def autocast(self) -> bool:
        """True if matrix products have another format than the weights (torch.autocast)."""
        return self.weight_precision != self.matmul_precision

    @property
    def dtype(self) -> torch.dtype:
        """The torch dtype of the weights that the forward pass reads."""
        return DTYPES[self.weight_precision]

    @property
    def product_bytes(self) -> int:
        """Bytes per number in matrix products."""
        return DTYPES[self.matmul_precision].itemsize

    @property
    def trains(self) -> bool:
        """True if this is a recipe for training, that is, it has gradients."""
        return self.gradients > 0

    def memory(self, parameters: int, *, matrices: int = 0) -> Breakdown[int]:
        """Return the bytes of weights, gradients and optimizer state, without Adam's step counters (4 bytes per
        tensor).

        Args:
            parameters: the number of trained parameters.
            matrices: the number of parameters in matrices of the blocks; used only with Muon.
        """
        sizes = {
            "weights": self.weights,
            "gradients": self.gradients,
            "master weights": self.master,
            "optimizer moments": self.moments,
        }
        parts = {part: ceil(size * parameters) for part, size in sizes.items() if size}
        if self.matrix_moments is not None:
            parts["optimizer moments"] -= ceil((self.moments - self.matrix_moments) * matrices)
        return Breakdown(parts)


FP32, BF16 = BYTES_PER_NUMBER["fp32"], BYTES_PER_NUMBER["bf16"]
MOMENTS = 2 * FP32
"""Adam's running means of the gradient and of its square (Kingma and Ba, 2015, algorithm 1)."""

QUANTIZATION_BLOCK_SIZE = 2048
"""Numbers that share a scale in 8-bit Adam (Dettmers et al., 2022, §2.1)."""

MOMENTS_8_BIT = 2 * (BYTES_PER_NUMBER["int8"] + FP32 / QUANTIZATION_BLOCK_SIZE)

_RECIPES = (
    PrecisionRecipe("fp32", "AdamW, all in fp32", FP32, FP32, 0, MOMENTS, "fp32", "fp32"),
    PrecisionRecipe("mixed", "AdamW, bf16 with master weights", BF16, FP32, FP32, MOMENTS, "bf16", "bf16"),
    # Rajbhandari et al. (2020), §3.1
    PrecisionRecipe("mixed-16-bit-gradients", "the same, bf16 gradients", BF16, BF16, FP32, MOMENTS, "bf16", "bf16"),
    PrecisionRecipe("autocast", "AdamW in fp32, products in bf16", FP32, FP32, 0, MOMENTS, "fp32", "bf16"),
    PrecisionRecipe("bf16", "AdamW, all in bf16", BF16, BF16, 0, 2 * BF16, "bf16", "bf16"),
    PrecisionRecipe("sgd", "SGD in fp32", FP32, FP32, 0, 0, "fp32", "fp32"),
    PrecisionRecipe("momentum", "SGD with momentum in fp32", FP32, FP32, 0, FP32, "fp32", "fp32"),
    # Dettmers et al. (2022)
    PrecisionRecipe("adam-8bit", "AdamW in fp32 with moments in 8 bits", FP32, FP32, 0, MOMENTS_8_BIT, "fp32", "fp32"),
    # Jordan et al. (2024)
    PrecisionRecipe("muon", "Muon and AdamW, all in fp32", FP32, FP32, 0, MOMENTS, "fp32", "fp32", FP32),
    PrecisionRecipe(
        "muon-autocast", "Muon, AdamW in fp32, products in bf16", FP32, FP32, 0, MOMENTS, "fp32", "bf16", FP32
    ),
    PrecisionRecipe("inference", "bf16 weights only", BF16, 0, 0, 0, "bf16", "bf16"),
)

RECIPES: dict[str, PrecisionRecipe] = {recipe.name: recipe for recipe in _RECIPES}
"""The recipes by name. Autocast's bf16 copies of the matrices are kept until the backward pass and count as
activations.
"""


def find_recipe(name: str) -> PrecisionRecipe:
    """Return the recipe with this name; raise ValueError, which lists all names, if there is none.

    Example:
        >>> find_recipe("mixed").per_parameter
        18
    """
    if name not in RECIPES:
        raise ValueError(f"there is no recipe {name!r}: choose from {', '.join(RECIPES)}")
    return RECIPES[name]
