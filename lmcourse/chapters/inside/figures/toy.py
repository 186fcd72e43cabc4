"""Features that share a few numbers."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.plots import describe, new_axes, new_figure


def crowded_features(weights: Mapping[str, Tensor]) -> Figure:
    """The products of all pairs of features, a square for each toy: on the diagonal lengths, beside it collisions."""
    figure = new_figure(8.0, 3.0)
    panels = figure.add_gridspec(1, len(weights))
    alt = []
    for place, (name, w) in enumerate(weights.items()):
        axes = new_axes(figure, name, "feature", "feature" if place == 0 else "")
        axes.set_subplotspec(panels[place])
        axes.imshow((w.T @ w).numpy(), cmap="RdBu", vmin=-1.2, vmax=1.2)
        axes.grid(visible=False)
        axes.set_xticks([0, 10, 19])
        axes.set_yticks([0, 10, 19] if place == 0 else [])
        alt.append(f"{name}: {int((w.norm(dim=0) > 0.5).sum())} kept")
    caption = (
        "Blue on the diagonal: the feature is kept. Colour beside the diagonal: two features share a direction; red "
        "pairs point in opposite directions, which the ReLU can keep apart."
    )
    return describe(figure, caption=caption, alt=f"Features kept of 20 in 5 numbers. {', '.join(alt)}")
