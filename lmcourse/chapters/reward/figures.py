"""Figures of notebook 22: chances of sums, and runs that are rewarded."""

from __future__ import annotations

from matplotlib.figure import Figure
from torch import Tensor

from lmcourse.chapters.reward.runs import stored
from lmcourse.plots.style import PALETTE, describe, new_axes, new_figure


def best_of(p: Tensor) -> Figure:
    """Draw how often at least one of n answers is right, for each sum; `p` has the chances of one answer, (121,)."""
    counts = (1, 2, 4, 8, 16)
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, "Ask more than once", "answers n", "at least one is right")
    rows = [(1 - (1 - p) ** n) for n in counts]
    for sum_ in range(len(p)):
        axes.plot(
            range(len(counts)), [row[sum_].item() for row in rows], color=PALETTE["sky"], linewidth=0.5, alpha=0.4
        )
    means = [row.mean().item() for row in rows]
    axes.plot(range(len(counts)), means, "o-", color=PALETTE["blue"], label="mean of 121 sums")
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.set_ylim(0, 1.04)
    axes.legend(loc="lower right")
    said = ", ".join(f"{mean:.2f} with {n}" for n, mean in zip(counts, means, strict=True))
    caption = "Thin lines: the sums one by one. Even the hardest is nearly always among 16 answers."
    return describe(figure, caption=caption, alt=f"Mean chance that one of n answers is right: {said}")


def rewarded_runs(penalty: bool = False) -> Figure:
    """Draw the runs with the right checker: sums, and the larger of two, which nobody asks for."""
    lines = {"right": ("sums", "blue"), "larger": ("the larger of two", "orange")}
    figure = _runs("right checker", penalty, "Rewarded for right sums", "chance of the right answer", lines)
    figure.axes[0].set_ylim(0.5, 1.02)
    return figure


def wrong_checker(penalty: bool = False) -> Figure:
    """Draw the runs with the wrong checker: what it says, and how many sums are right."""
    lines = {"reward": ("the reward", "vermilion"), "right": ("right", "blue")}
    title = "Rewarded for containing the right number"
    figure = _runs("wrong checker", penalty, title, "fraction of answers", lines)
    figure.axes[0].set_ylim(0, 1.04)
    return figure


def _runs(checker: str, penalty: bool, title: str, unit: str, lines: dict[str, tuple[str, str]]) -> Figure:
    """Draw the stored runs of a checker; `lines` has a label and a colour for each curve."""
    title += ", with a penalty of 0.1" * penalty
    figure = new_figure(8.0, 3.6)
    axes = new_axes(figure, title, "steps of 32 sums, 8 answers each", unit)
    said = []
    for seed, (curves, style) in enumerate(
        zip(stored()["runs"][checker + ", penalty" * penalty], ("-", "--"), strict=True)
    ):
        for key, (label, colour) in lines.items():
            axes.plot(curves["step"], curves[key], style, color=PALETTE[colour], label="" if seed else label)
            said.append(f"seed {seed}: {label} from {curves[key][0]:.2f} to {curves[key][-1]:.2f}")
    axes.legend(loc="center right")
    caption = "Two seeds, solid and dashed. In these runs only sums are asked, 8 answers to each of 32 in a step."
    return describe(figure, caption=caption, alt=f"{title}. {'; '.join(said)}")
