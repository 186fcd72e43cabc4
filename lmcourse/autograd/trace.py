"""The forward and the backward pass, step by step, as plain data for a player."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from lmcourse.autograd.graph import Edge, Graph

Phase: TypeAlias = Literal["start", "forward", "seed", "backward"]


@dataclass(frozen=True)
class Step:
    """State of all values and gradients after one step of the two passes, and what the step did.

    Attributes:
        phase: "start": only the leaves have values; "forward": a node was computed; "seed": the gradient of the end
            was set to 1; "backward": one edge handed a gradient on to a parent.
        values: the value of each node, None while it is unknown.
        grads: the gradient collected so far of each node; all 0 before the backward pass.
        node: the node that changed, if one did.
        edge: the edge that was followed, in the backward pass.
        text: the step as an assignment with numbers: "u.grad += ŷ.grad · ∂ŷ/∂u = -8 · 1 → -8".
    """

    phase: Phase
    values: tuple[float | None, ...]
    grads: tuple[float, ...]
    node: int | None
    edge: Edge | None
    text: str


def steps_of(graph: Graph) -> tuple[Step, ...]:
    """Both passes over a graph: the leaves, every node forward, the seed, every edge backward."""
    steps = _forward(graph)
    last = len(graph.nodes) - 1
    label = graph.nodes[last].label
    seeded = (*[0.0] * last, 1.0)
    steps.append(
        replace(steps[-1], phase="seed", grads=seeded, node=last, text=f"{label}.grad = ∂{label}/∂{label} = 1")
    )
    for child in reversed(range(len(graph.nodes))):
        for edge in graph.edges:
            if edge.child == child:
                steps.append(_back(graph, steps[-1], edge))
    return tuple(steps)


def _forward(graph: Graph) -> list[Step]:
    leaves = tuple(None if node.formula else node.data for node in graph.nodes)
    zeros = (0.0,) * len(graph.nodes)
    steps = [Step("start", leaves, zeros, None, None, "only the leaves have values")]
    for index, node in enumerate(graph.nodes):
        if node.formula:
            known = steps[-1].values
            values = (*known[:index], node.data, *known[index + 1 :])
            text = f"{node.label} = {node.formula} = {node.data:.4g}"
            steps.append(Step("forward", values, zeros, index, None, text))
    return steps


def _back(graph: Graph, before: Step, edge: Edge) -> Step:
    """Follow an edge: the parent's gradient grows by the child's times the local derivative."""
    given = before.grads[edge.child]
    total = before.grads[edge.parent] + given * edge.local
    grads = (*before.grads[: edge.parent], total, *before.grads[edge.parent + 1 :])
    parent, child = graph.nodes[edge.parent].label, graph.nodes[edge.child].label
    text = f"{parent}.grad += {child}.grad · ∂{child}/∂{parent} = {given:.4g} · {edge.local:.4g}  →  {total:.4g}"
    return Step("backward", before.values, grads, edge.parent, edge, text)
