"""The specification of an accelerator: peak FLOP/s, memory, bandwidth, link and power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmcourse.accounting.formats import Format


@dataclass(frozen=True)
class Accelerator:
    """A GPU, or a CPU that was measured.

    Attributes:
        name: how it is called on the command line, such as "h100-sxm".
        title: its full name and variant.
        peaks: dense matrix FLOP/s by format; formats that it does not have are left out. Dense: many data sheets print
            the figure for 2:4 sparse matrices, which is twice as much.
        bandwidth: of its memory, bytes/s.
        memory: bytes, as sold (80 GB may be 80e9 or 80·2³⁰: the source decides).
        link: to other accelerators of the same machine, bytes/s, both directions together; None where there is none.
        power: its limit, watts; None for a CPU.
        sources: where each of these numbers is from.
    """

    name: str
    title: str
    peaks: Mapping[Format, float]
    bandwidth: float
    memory: int
    link: float | None
    power: float | None
    sources: tuple[str, ...]

    def peak(self, precision: Format) -> float:
        """Dense FLOP/s in a format.

        Raises:
            ValueError: it cannot compute in it.
        """
        if precision not in self.peaks:
            raise ValueError(f"{self.title} has no {precision} units; it has {', '.join(self.peaks)}")
        return self.peaks[precision]

    def ridge(self, precision: Format) -> float:
        """The ridge point: FLOPs per byte above which arithmetic limits it, not memory bandwidth."""
        return self.peak(precision) / self.bandwidth
