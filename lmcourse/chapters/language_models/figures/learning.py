"""Loss curves of training, step by step."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.chapters.language_models.kinds import Curves
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def learning_curves(curves: Curves, entropy: float, counting: float) -> Figure:
    """Losses of one run against the step, with the entropy of the source.

    Args:
        curves: nats per word at each step.
        entropy: the entropy of the source, in nats per word.
        counting: the loss of smoothed counts of the same text on new text.
    """
    steps, stopped = range(len(curves.train)), curves.stopped
    figure = new_figure(8.0, 3.8)
    title = f"Stopped at step {stopped}: {curves.new[stopped] - entropy:.2f} nats above the entropy on new text"
    axes = new_axes(figure, title, "step", "nats per word")
    axes.plot(steps, curves.train, color=PALETTE["blue"], label="text it trains on")
    axes.plot(steps, curves.held_out, color=PALETTE["green"], linewidth=1.2, label="last tenth, kept aside")
    axes.plot(steps, curves.new, color=PALETTE["vermilion"], label="endless new text")
    axes.axhline(counting, color=GREY, linestyle="--", linewidth=1.2, label="counting, on new text")
    axes.axhline(entropy, color="black", linestyle=":", linewidth=1.5, label=f"entropy {entropy:.2f}")
    axes.axvline(stopped, color=PALETTE["sky"], linewidth=6, alpha=0.35)
    axes.set_xlim(0, len(curves.train))
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    caption = (
        "The band marks the step at which the last tenth of the text is cheapest. After it the text that the model "
        "trains on still gets cheaper, and new text gets more expensive."
    )
    alt = (
        f"Losses over {len(curves.train)} steps. On the text it trains on the loss falls from {curves.train[0]:.2f} to "
        f"{curves.train[-1]:.2f}; on new text it is lowest at {min(curves.new):.2f} and ends at {curves.new[-1]:.2f}; "
        f"counting pays {counting:.2f}; the entropy is {entropy:.2f}"
    )
    return describe(figure, caption=caption, alt=alt)
