"""Speed-up by speculative decoding."""

from __future__ import annotations

from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

LONGEST = 12


def speed_up(alpha: float, draft_cost: float, drafted: int) -> float:
    """Speed-up over decoding without a draft (Leviathan et al., 2023, theorem 3.8).

    There are (1 + α + … + α^γ) tokens for γ guesses, which cost c passes each, and one pass that checks them.

    Raises:
        ValueError: alpha is not a probability, or a cost or number is negative.
    """
    if not 0 <= alpha <= 1 or draft_cost < 0 or drafted < 0:
        raise ValueError("alpha must be from 0 to 1, and draft_cost and drafted must be at least 0")
    return sum(alpha**power for power in range(drafted + 1)) / (1 + drafted * draft_cost)


def speculation(alpha: float = 0.8, draft_cost: float = 0.05) -> Figure:
    """Speed-up by the number of guessed tokens, for one probability that a guess is kept and one cost of a guess."""
    figure = new_figure(8.0, 3.8)
    axes = new_axes(figure, "Guess how many?", "guessed tokens γ", "times as fast")
    numbers = range(LONGEST + 1)
    rates = [speed_up(alpha, draft_cost, drafted) for drafted in numbers]
    axes.plot(numbers, [speed_up(alpha, 0.0, drafted) for drafted in numbers], ":", color=GREY, label="a free draft")
    axes.plot(numbers, rates, "-o", color=PALETTE["blue"], markersize=5, label=f"a guess costs {draft_cost:.2g} passes")
    best = max(numbers, key=lambda drafted: rates[drafted])
    axes.plot(best, rates[best], "o", color=PALETTE["vermilion"], markersize=10)
    axes.axhline(1, color=PALETTE["black"], linewidth=1)
    axes.set_ylim(0, 1.12 * axes.get_ylim()[1])
    axes.set_xticks(list(numbers))
    axes.legend(frameon=False, fontsize=9, loc="best")
    caption = (
        f"A guess is kept with α = {alpha:.2g}. Best of up to {LONGEST} guesses: {best}, {rates[best]:.2f} times "
        "as fast. Below 1 a draft makes it slower."
    )
    alt = f"Speed-up at alpha {alpha:.3g} and draft cost {draft_cost:.3g}: best {rates[best]:.2f} with {best} guesses"
    return describe(figure, caption=caption, alt=alt)
