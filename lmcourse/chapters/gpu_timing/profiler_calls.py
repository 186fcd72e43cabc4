"""Calls that torch.profiler records, as plain triples, and the groups in which they are drawn."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from torch.profiler import profile

Event = list[Any]
"""A call: `[name, begin, end]`, in µs."""

PHASES = ("forward", "backward", "optimizer")
"""The parts of a training step, as `lmcourse.bench.speedups.make_training_step` names them for a profiler."""

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or else the profiler reports its own start and stop


def record(step: Callable[[], object], labels: Sequence[str] = PHASES) -> tuple[list[Event], list[Event], profile]:
    """Record a step. Return its calls, those with one of the labels, and the profiler.

    The calls are those of the CUDA row if there is one, which shows when work was done, not when it was launched.
    """
    with profile() as profiler:  # all activities that torch can record here: the CPU's, and CUDA's
        step()
    rows: dict[str, list[Event]] = {"CPU": [], "CUDA": []}
    for call in profiler.events():
        row = call.device_type.name
        if row == "CPU" or not call.is_user_annotation:
            rows[row].append([call.name, call.time_range.start, call.time_range.end])
    return rows["CUDA"] or rows["CPU"], [event for event in rows["CPU"] if event[0] in labels], profiler


PRODUCTS, ATTENTION, COPIES = "matrix products", "attention kernels", "copies"
ELEMENTWISE, REST, OPTIMIZER, IDLE = "element-wise, sums", "Python, views, autograd", "optimizer", "idle"
GROUPS = (PRODUCTS, ATTENTION, ELEMENTWISE, COPIES, OPTIMIZER, REST, IDLE)

_VIEWS = (
    "alias|as_strided|clone|contiguous|detach|empty|empty_like|empty_strided|expand|linear|lift_fresh|matmul|narrow|"
    "ones|permute|reshape|resolve_conj|rms_norm|scaled_dot_product_attention|select|slice|split|split_with_sizes|"
    "squeeze|t|to|_to_copy|transpose|unsqueeze|_unsafe_view|view|zeros|zeros_like"
)

_PATTERNS = {
    PRODUCTS: r"^aten::(mm|addmm|bmm|addbmm|baddbmm)$|gemm|nvjet|cutlass",
    ATTENTION: r"flash|efficient_attention|fmha",
    COPIES: r"^aten::(copy_|cat|fill_|zero_|embedding)|memcpy|memset|catarray|copy_kernel|fillfunctor",
    REST: rf"^aten::({_VIEWS})$|^autograd::|^optimizer\.|backward\d$|accumulategrad|^({'|'.join(PHASES)})$",
}
"""For each group, a pattern of the names of operations (`aten::…`, on a CPU) and kernels (on a GPU), tried in order."""


def group_of(name: str) -> str:
    """Return the group of an operation or a kernel. If no pattern fits, this is the group of element-wise operations
    and sums."""
    return next((group for group, pattern in _PATTERNS.items() if re.search(pattern, name.lower())), ELEMENTWISE)


def by_group(events: Sequence[Event], phases: Sequence[Event]) -> list[Event]:
    """Return the events, named by their groups. Events in the phase of the optimizer all belong to its group."""
    inside = [(begin, end) for name, begin, end in phases if name == OPTIMIZER]
    return [
        [OPTIMIZER if any(first <= begin < last for first, last in inside) else group_of(name), begin, end]
        for name, begin, end in events
    ]


def nested(events: Sequence[Event], first: str, count: int = 9) -> str:
    """Write some calls in their order, from the first of a name on, indented by how many calls are around them."""
    in_order = sorted(events, key=lambda event: (event[1], -event[2]))
    zero, start = in_order[0][1], next((place for place, event in enumerate(in_order) if event[0] == first), 0)
    lines = []
    for name, begin, end in in_order[start : start + count]:
        depth = sum(other[1] <= begin and end <= other[2] for other in events) - 1
        lines.append(f"{begin - zero:9.1f} to {end - zero:9.1f}  {'    ' * depth}{name[:60]}")
    return "\n".join(lines)


def total_time(events: Sequence[Event]) -> float:
    """Add up the lengths of all calls, as a share of the time from the first begin to the last end."""
    span = max(end for *_, end in events) - min(begin for _, begin, _ in events)
    return float(sum(end - begin for _, begin, end in events) / span)
