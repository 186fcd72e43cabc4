"""Tensors that a block keeps for the backward pass."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lmcourse.base.units import GIB, MIB
from lmcourse.chapters.memory.block_tensors import BlockPart, tensors_saved_by_block
from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

PART_COLOURS: dict[BlockPart, str] = {
    "norms": PALETTE["purple"],
    "attention": PALETTE["blue"],
    "feed-forward": PALETTE["orange"],
}


def memory_saved_tensors(length: int = 2048, number: str = "16 bits", feed_forward: str = "GELU, 4 d") -> Figure:
    """Tensors that one block of GPT-3 keeps for one text.

    Args:
        length: tokens of the text.
        number: "16 bits" or "32 bits".
        feed_forward: "GELU, 4 d" or "SwiGLU, 8/3 d", which has as many parameters.

    Raises:
        ValueError: `length` is below 1, or a choice is unknown.
    """
    if length < 1 or number not in ("16 bits", "32 bits") or feed_forward not in ("GELU, 4 d", "SwiGLU, 8/3 d"):
        raise ValueError(
            "length must be at least 1, number '16 bits' or '32 bits', and feed_forward 'GELU, 4 d' or 'SwiGLU, 8/3 d'"
        )
    gated, D = feed_forward.startswith("SwiGLU"), 12_288
    kept = tensors_saved_by_block(
        1, length, D, 96, 8 * D // 3 if gated else 4 * D, 4 if number == "32 bits" else 2, gated=gated
    )
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
    axes.legend(handles=handles, frameon=False, fontsize=10, loc="upper left", bbox_to_anchor=(1, 1))
    caption = (
        "Each bar is a tensor that some backward step will ask for; hatched ones are masks of dropout, one byte per "
        "number. The sums of the residual stream are not in the list: they keep nothing."
    )
    parts = ", ".join(f"{part} {_label(size)}" for part, size in shares.items())
    return describe(figure, caption=caption, alt=f"{title}; {parts}")


def _label(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / MIB:.4g} MiB"
