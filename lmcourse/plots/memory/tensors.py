"""What a block keeps for the backward pass, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

MIB, GIB = 2**20, 2**30

Part = Literal["norms", "attention", "feed-forward"]
PART_COLOURS: dict[Part, str] = {
    "norms": PALETTE["purple"],
    "attention": PALETTE["blue"],
    "feed-forward": PALETTE["orange"],
}


@dataclass(frozen=True)
class Kept:
    """A tensor that autograd keeps.

    Attributes:
        part: of the block.
        name: what it is.
        size: in bytes.
        mask: whether it is a mask of dropout, which takes a byte per number in any precision.
    """

    part: Part
    name: str
    size: int
    mask: bool = False


def kept_by_block(B: int, S: int, D: int, A: int, d_ff: int, p: int, *, gated: bool = False) -> list[Kept]:
    """The tensors of one block, in the order in which it makes them.

    It is a block as Korthikanti et al. (2022, §4.1) count it: LayerNorm, as many key heads as query heads, dropout on
    attention's weights and on what each branch adds, no fused kernels. Sums keep nothing, and what norms keep besides
    their input, two numbers a token, is left out.

    Args:
        B, S, D: texts, tokens of each, width.
        A: heads.
        d_ff: width of the feed-forward layer.
        p: bytes per number.
        gated: whether a gate multiplies the values of the feed-forward layer.
    """
    return [*_attention(B * S * D, A * B * S * S, p), *_feed_forward(B * S * D, B * S * d_ff, p, gated)]


def _attention(stream: int, pairs: int, p: int) -> Iterator[Kept]:
    yield Kept("norms", "input of the first norm", p * stream)
    yield Kept("attention", "input of q, k and v", p * stream)
    for name in ("queries", "keys", "values"):
        yield Kept("attention", name, p * stream)
    yield Kept("attention", "softmax's result", p * pairs)
    yield Kept("attention", "mask of the weights", pairs, mask=True)
    yield Kept("attention", "weights after dropout", p * pairs)
    yield Kept("attention", "input of the output matrix", p * stream)
    yield Kept("attention", "mask of the output", stream, mask=True)


def _feed_forward(stream: int, hidden: int, p: int, gated: bool) -> Iterator[Kept]:
    yield Kept("norms", "input of the second norm", p * stream)
    yield Kept("feed-forward", "input of up", p * stream)
    yield Kept("feed-forward", "result of gate, before f" if gated else "result of up, before f", p * hidden)
    if gated:
        yield Kept("feed-forward", "result of f", p * hidden)
        yield Kept("feed-forward", "result of up", p * hidden)
    yield Kept("feed-forward", "input of down", p * hidden)
    yield Kept("feed-forward", "mask of the result", stream, mask=True)


def memory_kept(length: int = 2048, number: str = "16 bits", feed_forward: str = "GELU, 4 d") -> Figure:
    """What one block of GPT-3 keeps of one text, tensor by tensor.

    Args:
        length: tokens.
        number: "16 bits" or "32 bits".
        feed_forward: "GELU, 4 d" or "SwiGLU, 8/3 d", which has as many parameters.

    Raises:
        ValueError: less than one token, or another word.
    """
    if length < 1 or number not in ("16 bits", "32 bits") or feed_forward not in ("GELU, 4 d", "SwiGLU, 8/3 d"):
        raise ValueError(f"no block has {length} tokens of {number} and {feed_forward}")
    gated, D = feed_forward.startswith("SwiGLU"), 12_288
    kept = kept_by_block(1, length, D, 96, 8 * D // 3 if gated else 4 * D, 4 if number == "32 bits" else 2, gated=gated)
    total = sum(tensor.size for tensor in kept)
    figure = new_figure(8.0, 5.2)
    title = f"One layer of GPT-3, {length:,} tokens in {number}: {_label(total)}"
    unit, scale = ("GiB", GIB) if max(tensor.size for tensor in kept) >= 4 * GIB else ("MiB", MIB)
    axes = new_axes(figure, title, f"kept for the backward pass ({unit})")
    rows = range(len(kept))
    bars = axes.barh(
        rows, [tensor.size / scale for tensor in kept], color=[PART_COLOURS[tensor.part] for tensor in kept], height=0.7
    )
    for bar, tensor in zip(bars, kept, strict=True):
        bar.set_hatch("///" if tensor.mask else "")
        bar.set_edgecolor("white")
    axes.bar_label(bars, [_label(tensor.size) for tensor in kept], padding=4, fontsize=9, color=GREY)
    axes.set_yticks(rows, [tensor.name for tensor in kept])
    axes.set_xlim(0, 1.18 * max(tensor.size for tensor in kept) / scale)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    shares = {part: sum(tensor.size for tensor in kept if tensor.part == part) for part in PART_COLOURS}
    handles = [
        Line2D([], [], color=PART_COLOURS[part], linewidth=8, label=f"{part}: {100 * size / total:.0f} %")
        for part, size in shares.items()
    ]
    axes.legend(handles=handles, frameon=False, fontsize=10, loc="lower right")
    caption = (
        "Each bar is a tensor that some backward step will ask for; hatched ones are masks of dropout, one byte per "
        "number. The sums of the residual stream are not in the list: they keep nothing."
    )
    parts = ", ".join(f"{part} {_label(size)}" for part, size in shares.items())
    return describe(figure, caption=caption, alt=f"{title}; {parts}")


def _label(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / MIB:.4g} MiB"
