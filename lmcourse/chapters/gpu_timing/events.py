"""Calls that torch.profiler recorded, as plain triples, and the groups in which they are drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Event = list[Any]
"""A call: `[name, begin, end]`, in µs."""

PHASES = ("forward", "backward", "optimizer")
"""The parts of a training step, as `lmcourse.bench.speedups.make_training_step` names them for a profiler."""

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
