"""Attention scores under growing weights, with and without QK-norm."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_NUM_TOKENS, _D_MODEL = 32, 256


def largest_scores(growth: float, d_head: int, gamma: float) -> tuple[float, float]:
    """The largest |q·k|/√d among 32 random tokens when W_q and W_k have grown: without and with QK-norm."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(_NUM_TOKENS, _D_MODEL, generator=random, dtype=torch.float64)
    w_q, w_k = torch.randn(2, _D_MODEL, d_head, generator=random, dtype=torch.float64) * growth / math.sqrt(_D_MODEL)
    q, k = x @ w_q, x @ w_k
    plain = (q @ k.T).abs().max().item()
    q_hat, k_hat = (gamma * part / part.square().mean(dim=-1, keepdim=True).sqrt() for part in (q, k))
    return plain / math.sqrt(d_head), (q_hat @ k_hat.T).abs().max().item() / math.sqrt(d_head)


def score_growth(growth: float = 10.0, d_head: int = 64, gamma: float = 1.0) -> Figure:
    """The largest attention score against the size of W_q and W_k, and the bound √d·γ² of QK-norm.

    ValueError unless all are positive.
    """
    if not (growth > 0 and d_head > 0 and gamma > 0):
        raise ValueError("growth, d_head and gamma must be above 0")
    factors = np.logspace(-1, 2, 31)
    curves = np.array([largest_scores(factor, d_head, gamma) for factor in factors])
    plain, normed = largest_scores(growth, d_head, gamma)
    bound = math.sqrt(d_head) * gamma**2
    figure = new_figure(8.0, 4.0)
    title = f"Weights {growth:.3g} times as large: a score of {plain:.3g}; with QK-norm {normed:.3g}"
    axes = new_axes(figure, title, "how much W_q and W_k have grown (factor)", "largest |score| of 32 × 32")
    axes.loglog(factors, curves[:, 0], color=PALETTE["vermilion"], linewidth=2.2, label="q·k/√d")
    axes.loglog(factors, curves[:, 1], color=PALETTE["blue"], linewidth=2.2, label="with QK-norm")
    axes.axhline(bound, color=GREY, linestyle="--", linewidth=1.3, label=f"√d·γ² = {bound:.3g}")
    axes.plot([growth, growth], [plain, normed], "o", color="black", markersize=7)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    caption = (
        "Scores grow with the square of the weights' size, a straight line of slope 2. The norm takes that size away; "
        "what is left can reach √d·γ² and no more."
    )
    return describe(figure, caption=caption, alt=f"{title}; the bound is {bound:.3g}")
