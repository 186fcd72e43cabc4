"""How many bytes a tensor takes, by the type of its elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

_DTYPES: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16, bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "bool": torch.bool,
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def dtype_bytes(shape: Sequence[int] = (12288, 49152)) -> Figure:
    """Bytes of a tensor of that shape by element type, and the ideal for booleans at 1 bit each.

    The default is one feed-forward matrix of GPT-3 175B (Brown et al. 2020). ValueError for sizes below 1.
    """
    if any(size < 1 for size in shape):
        raise ValueError(f"every size of a shape is at least 1, not {tuple(shape)}")
    elements = math.prod(shape)
    sizes = {name: elements * dtype.itemsize for name, dtype in _DTYPES.items()}
    sizes["bool at 1 bit (ideal)"] = math.ceil(elements / 8)
    figure = new_figure(8.0, 3.4)
    text = " × ".join(f"{size:,}" for size in shape)
    unit = _unit(max(sizes.values()))
    scale = 1024 ** _UNITS.index(unit)
    axes = new_axes(figure, f"{text} = {elements:,} elements", f"size ({unit})")
    colours = [PALETTE["blue"]] * 4 + [PALETTE["orange"], PALETTE["yellow"]]
    bars = axes.barh(list(sizes), [size / scale for size in sizes.values()], color=colours, height=0.65)
    axes.bar_label(bars, [_label(size) for size in sizes.values()], padding=4, fontsize=9, color=GREY)
    axes.set_xlim(0, max(sizes.values()) / scale * 1.35)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    caption = (
        "Bytes = number of elements × bytes per element. A torch.bool takes a whole byte, eight times "
        "what its one bit of information needs."
    )
    listed = ", ".join(f"{name} {_label(size)}" for name, size in sizes.items())
    return describe(figure, caption=caption, alt=f"Size of a {text} tensor: {listed}")


def _unit(size: int) -> str:
    """The largest binary unit of which `size` bytes make at least one."""
    return _UNITS[min((size.bit_length() - 1) // 10, len(_UNITS) - 1)]


def _label(size: int) -> str:
    unit = _unit(size)
    in_bytes = f"{size:,} B"
    return in_bytes if unit == "B" else f"{in_bytes} = {size / 1024 ** _UNITS.index(unit):.4g} {unit}"
