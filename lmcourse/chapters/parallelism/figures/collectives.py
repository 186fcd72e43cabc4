"""Figures of collectives: the chunks of each worker after each round, and their seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.plots import GREY, PALETTE, describe, drawn_together, new_axes, new_drawing_axes, new_figure, stops

COLLECTIVES = ("broadcast", "all-gather", "reduce-scatter", "ring all-reduce", "through rank 0")

Held = list[list[frozenset[int]]]
"""For each worker and chunk, the workers whose numbers it contains."""

Message = tuple[int, int, int, bool]
"""Sender, receiver, chunk, and whether the receiver adds it to what it has."""


def _rounds(kind: str, n: int) -> list[list[Message]]:
    """Return the messages of each round."""
    ring = range(n - 1)
    ahead = kind == "ring all-reduce"  # worker r begins with chunk r, and ends the first half with chunk r + 1
    added = [[(r, (r + 1) % n, (r - s - (not ahead)) % n, True) for r in range(n)] for s in ring]
    passed = [[(r, (r + 1) % n, (r - s + ahead) % n, False) for r in range(n)] for s in ring]
    match kind:
        case "all-gather":
            return passed
        case "reduce-scatter":
            return added
        case "ring all-reduce":
            return added + passed
        case "broadcast":
            steps = [1 << bit for bit in range((n - 1).bit_length())]
            return [[(r, r + s, c, False) for r in range(min(s, n - s)) for c in range(n)] for s in steps]
        case "through rank 0":
            inward = [[(r, 0, c, True) for c in range(n)] for r in range(1, n)]
            return inward + [[(0, r, c, False) for c in range(n)] for r in range(1, n)]
    raise ValueError(f"there is no collective {kind!r}; choose from {', '.join(COLLECTIVES)}")


def _start(kind: str, n: int) -> Held:
    if kind == "broadcast":
        return [[frozenset({0}) if r == 0 else frozenset() for _ in range(n)] for r in range(n)]
    if kind == "all-gather":
        return [[frozenset({r}) if c == r else frozenset() for c in range(n)] for r in range(n)]
    return [[frozenset({r}) for _ in range(n)] for r in range(n)]


def after(kind: str, n: int, step: int) -> tuple[Held, list[Fraction], int]:
    """Return what each worker holds after `step` rounds, what each has sent (1 is the whole tensor), and all rounds.

    Raises:
        ValueError: there is no such collective.
    """
    rounds = _rounds(kind, n)
    held, sent = _start(kind, n), [Fraction(0)] * n
    for messages in rounds[:step]:
        old = [row.copy() for row in held]
        for sender, to, chunk, adds in messages:
            held[to][chunk] = old[sender][chunk] | (held[to][chunk] if adds else frozenset())
            sent[sender] += Fraction(1, n)
    return held, sent, len(rounds)


@stops(workers=(3, 4, 8), step=(0, 1, 2, 3, 4, 14))
@drawn_together()
def collective(kind: str = "ring all-reduce", workers: int = 4, step: int = 2) -> Figure:
    """The chunks of each worker after this many rounds: a row for each worker, a column for each chunk; and the sent
    bytes.

    ValueError for an unknown kind.
    """
    held, sent, last = after(kind, workers, step)
    shown = min(step, last)
    figure = new_figure(8.0, 2.94)
    axes = new_drawing_axes(figure, f"{kind}, {workers} workers, after round {shown} of {last}")
    sums = kind not in ("broadcast", "all-gather")
    blue = to_rgb(PALETTE["blue"])
    for r, row in enumerate(held):
        axes.text(-0.15, r + 0.5, f"worker {r}", ha="right", va="center", fontsize=10)
        for c, owners in enumerate(row):
            share = len(owners) / (workers if sums else 1)
            colour = (*blue, share * 0.8)
            axes.add_patch(Rectangle((c + 0.03, r + 0.06), 0.94, 0.88, facecolor=colour, edgecolor=GREY, linewidth=0.8))
            fits = 4 if workers < 7 else 3
            label = "+".join(map(str, sorted(owners))) if len(owners) <= fits else f"{len(owners)} of {workers}"
            axes.text(c + 0.5, r + 0.5, label, ha="center", va="center", fontsize=9)
        axes.text(workers + 0.2, r + 0.5, f"sent {float(sent[r]):.2f} M", va="center", fontsize=10)
    axes.set_xlim(-1.6 * workers / 6, workers * 1.35)
    axes.set_ylim(workers, 0)
    caption = (
        "Numbers in a box: the workers whose parts are added up in this chunk. M is the size of the "
        "tensor. After the last round nothing changes."
    )
    complete = [sum(len(owners) == workers for owners in row) for row in held]
    told = "; ".join(
        f"worker {r} has {n} of {workers} chunks complete, sent {float(sent[r]):.2f} M" for r, n in enumerate(complete)
    )
    if not sums:
        filled = [sum(bool(owners) for owners in row) for row in held]
        told = "; ".join(
            f"worker {r} holds {n} of {workers} chunks, sent {float(sent[r]):.2f} M" for r, n in enumerate(filled)
        )
    return describe(figure, caption=caption, alt=f"{kind}, {workers} workers, after round {shown} of {last}: {told}")


def all_reduce_seconds(
    sizes: Sequence[int], measured: Mapping[str, Sequence[float]], alpha: float, beta: float
) -> Figure:
    """Measured seconds of a ring and of doubling on four workers, against the size; and those by the fit, dashed."""
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "An all-reduce on four processes", "bytes", "ms")
    by_fit = {"ring": (6, 1.5), "doubling": (2, 2.0)}
    for (name, (rounds, part)), colour in zip(by_fit.items(), ("blue", "vermilion"), strict=True):
        axes.loglog(sizes, [1e3 * s for s in measured[name]], "o", color=PALETTE[colour], label=f"{name}, measured")
        fitted = [1e3 * (rounds * alpha + part * beta * size) for size in sizes]
        axes.loglog(sizes, fitted, "--", color=PALETTE[colour], linewidth=1.8, label=f"{name}, by the fit")
    axes.set_ylim(top=6 * axes.get_ylim()[1])  # room for the legend
    axes.legend(frameon=False, fontsize=10, loc="upper center", ncols=2)
    caption = "Doubling has few rounds and sends whole tensors; the ring has more rounds and sends chunks."
    alt = f"Ring and doubling for {len(sizes)} sizes from {sizes[0]:,} to {sizes[-1]:,} bytes, measured and by the fit"
    return describe(figure, caption=caption, alt=alt)
