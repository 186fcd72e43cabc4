"""Loss by position in a window, and the output rows of tokens that were never targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure


def loss_by_position(losses: Sequence[float], full: float) -> Figure:
    """The loss at each position of a window, its mean, and the loss with full context everywhere.

    Args:
        losses: the loss at each position from 0 on, in nats per token.
        full: the loss if every token has as much context as the model can use.
    """
    mean = sum(losses) / len(losses)
    figure = new_figure(8.0, 3.4)
    title = "The first positions of a window cost most"
    axes = new_axes(figure, title, "position in the window", "loss (nats per byte)")
    axes.bar(range(len(losses)), losses, color=PALETTE["sky"])
    axes.axhline(mean, color=PALETTE["vermilion"], linewidth=1.5, label=f"mean of the window: {mean:.2f}")
    axes.axhline(full, color="black", linestyle="--", linewidth=1.2, label=f"full context: {full:.2f}")
    axes.legend(frameon=False, fontsize=10)
    caption = "At position 0 the model sees one byte, at position 7 it sees eight."
    told = ", ".join(f"{loss:.2f}" for loss in losses[:8])
    alt = f"Loss by position: {told}, …; mean {mean:.2f}, full context {full:.2f}"
    return describe(figure, caption=caption, alt=alt)


def output_rows(similarities: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the cosines of output rows with one direction: a line for each token, a row for each kind of token.

    Args:
        similarities: cosines, by kind.
    """
    figure = new_figure(8.0, 2.4)
    title = "Rows of tokens that never came point the same way"
    axes = new_axes(figure, title, "cosine with the mean row of bytes that UTF-8 never uses")
    colours = [PALETTE["blue"], PALETTE["vermilion"]]
    axes.eventplot(list(similarities.values()), lineoffsets=[0, 1], linelengths=0.7, linewidths=0.8, colors=colours)
    axes.set_yticks([0, 1], [f"{name} ({len(values)})" for name, values in similarities.items()])
    axes.axvline(0.9, color=GREY, linestyle="--")
    caption = "One line per token, from the weights of the output layer alone. Dashed: 0.9."
    told = "; ".join(f"{name} from {min(values):.1f} to {max(values):.1f}" for name, values in similarities.items())
    return describe(figure, caption=caption, alt=f"Cosines of tokens: {told}")
