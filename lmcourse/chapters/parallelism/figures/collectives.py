"""Figures of collectives: the chunks of each worker after each round, and the bytes of the busiest worker."""

from __future__ import annotations

from fractions import Fraction

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lmcourse.accounting.parallel import all_reduce_bytes, naive_all_reduce_bytes
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
    figure = new_figure(8.0, 1.5 + 0.36 * workers)
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


def ring_bytes(workers: int = 64) -> Figure:
    """Bytes that the busiest worker sends in an all-reduce by number of workers, through rank 0 and in a ring."""
    figure = new_figure(8.0, 3.4)
    axes = new_axes(figure, "An all-reduce of M bytes", "workers", "bytes sent by the busiest worker (M)")
    counts = list(range(2, workers + 1))
    chief = [naive_all_reduce_bytes(1, n) / 2 for n in counts]
    ring = [all_reduce_bytes(1, n) for n in counts]
    axes.semilogy(counts, chief, color=PALETTE["vermilion"], linewidth=2, label="through rank 0")
    axes.semilogy(counts, ring, color=PALETTE["blue"], linewidth=2, label="in a ring")
    axes.legend(frameon=False, fontsize=10)
    caption = "Through rank 0: N − 1 whole tensors, sent by rank 0 alone. In the ring each worker sends less than two."
    alt = (
        f"Two curves up to {workers} workers. Through rank 0 the busiest worker sends {chief[-1]:.0f} M in the end, in "
        f"the ring {ring[-1]:.2f} M"
    )
    return describe(figure, caption=caption, alt=alt)
