"""In which order a graph is walked, so that no node is used before it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmcourse.autograd.value import Value


def topological_order(end: Value) -> list[Value]:
    """Every node that `end` depends on, each after all its parents; `end` comes last.

    A depth-first search with a stack of its own: a recursive one would stop at a chain of about a thousand nodes.
    """
    order: list[Value] = []
    seen: set[Value] = set()
    stack = [(end, False)]
    while stack:
        node, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(node.parents))
    return order
