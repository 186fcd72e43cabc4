"""A computation graph as plain data, with its forward and backward pass in single steps.

Drawings use only this data, so they do not need live objects, and tests can compare the data.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from lmcourse.autograd.value import topological_order

SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SUPERSCRIPT = str.maketrans("0123456789-.", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻·")

Kind: TypeAlias = Literal["input", "parameter", "compute"]


@dataclass(frozen=True)
class Node:
    """A node of a graph.

    Attributes:
        label: its name. A leaf without a name is a constant and has its number as the label; operations are v₁, v₂ and
            so on.
        formula: its formula with the labels of its parents, such as "u + w0"; "" for a leaf.
        kind: "input" for data and constants, "parameter" for trained leaves, otherwise "compute".
        layer: its column. A node is to the right of its parents, and a leaf is directly to the left of the first node
            that uses it.
        row: its position in the column, from 0 at the top.
    """

    label: str
    formula: str
    kind: Kind
    data: float
    grad: float
    layer: int
    row: int


@dataclass(frozen=True)
class Edge:
    """`parent` is used by `child` (positions in `Graph.nodes`); `local` is ∂child/∂parent."""

    parent: int
    child: int
    local: float


@dataclass(frozen=True)
class Graph:
    """The nodes that a result depends on, in topological order, and the edges in the order of the forward pass."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def layers(self) -> tuple[tuple[int, ...], ...]:
        """The positions in `nodes` of the nodes in each layer, from top to bottom."""
        columns: list[list[int]] = [[] for _ in range(1 + max(node.layer for node in self.nodes))]
        for index in sorted(range(len(self.nodes)), key=lambda index: self.nodes[index].row):
            columns[self.nodes[index].layer].append(index)
        return tuple(map(tuple, columns))


def graph_of(end: Any, parameters: Collection[Any] = ()) -> Graph:
    """Return the graph that ends in `end`, with its current values and gradients.

    Args:
        end: the result, usually a loss: a `Value`, or any object with `data`, `grad`, `parents` and `locals`. Its
            `name` and `op` are drawn if it has them.
        parameters: the leaves that are trained; all other leaves are inputs.
    """
    order = topological_order(end)
    place = {node: index for index, node in enumerate(order)}
    label, layer = _labels(order), _layers(order)
    row = _rows(order, layer)
    nodes = tuple(
        Node(label[node], _formula(node, label), _kind(node, parameters), node.data, node.grad, layer[node], row[node])
        for node in order
    )
    edges = tuple(
        Edge(place[parent], place[node], local)
        for node in order
        for parent, local in zip(node.parents, node.locals, strict=True)
    )
    return Graph(nodes, edges)


def _kind(node: Any, parameters: Collection[Any]) -> Kind:
    if node.parents:
        return "compute"
    return "parameter" if node in parameters else "input"


def _labels(order: list[Any]) -> dict[Any, str]:
    names = {node: getattr(node, "name", "") for node in order}
    unnamed = [node for node in order if node.parents and not names[node]]
    numbered = {node: f"v{number}".translate(SUBSCRIPT) for number, node in enumerate(unnamed, 1)}
    return {node: names[node] or numbered.get(node) or f"{node.data:g}" for node in order}


def _formula(node: Any, label: dict[Any, str]) -> str:
    labels = [label[parent] for parent in node.parents]
    op = getattr(node, "op", "")
    if not labels:
        return ""
    if not op:
        return f"f({', '.join(labels)})"
    if len(labels) == 2:
        return f" {op} ".join(labels)
    if op == "neg":
        return f"−{labels[0]}"
    if op.startswith("**") and op[2:]:
        return labels[0] + op[2:].translate(SUPERSCRIPT)
    return f"{op}({labels[0]})"


def _layers(order: list[Any]) -> dict[Any, int]:
    layer: dict[Any, int] = {}
    first_use: dict[Any, int] = {}
    for node in order:
        layer[node] = 1 + max((layer[parent] for parent in node.parents), default=-1)
        for parent in node.parents:
            first_use[parent] = min(first_use.get(parent, layer[node]), layer[node])
    return {node: depth if node.parents else first_use.get(node, 1) - 1 for node, depth in layer.items()}


def _rows(order: list[Any], layer: dict[Any, int]) -> dict[Any, int]:
    """Arrange the nodes of each layer in topological order, which keeps most of them near their parents."""
    used = [0] * (1 + max(layer.values()))
    row: dict[Any, int] = {}
    for node in order:
        row[node] = used[layer[node]]
        used[layer[node]] += 1
    return row


Phase: TypeAlias = Literal["start", "forward", "seed", "backward"]


@dataclass(frozen=True)
class Step:
    """The state of all values and gradients after one step of the two passes, with a description of the step.

    Attributes:
        phase: "start": only the leaves have values; "forward": a node was computed; "seed": the gradient of the end
            was set to 1; "backward": one edge passed a gradient on to a parent.
        values: the value of each node, None while it is unvalues_before.
        grads: the gradient of each node so far; all are 0 before the backward pass.
        node: the node that changed, if any.
        edge: the edge that was followed, in the backward pass.
        text: the step as an assignment with numbers, such as "u.grad += ŷ.grad · ∂ŷ/∂u = -8 · 1 → -8".
    """

    phase: Phase
    values: tuple[float | None, ...]
    grads: tuple[float, ...]
    node: int | None
    edge: Edge | None
    text: str


def steps_of(graph: Graph) -> tuple[Step, ...]:
    """Return the steps of both passes: the leaves, every node forward, the seed, every edge backward."""
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
            before = steps[-1].values
            values = (*before[:index], node.data, *before[index + 1 :])
            text = f"{node.label} = {node.formula} = {node.data:.4g}"
            steps.append(Step("forward", values, zeros, index, None, text))
    return steps


def _back(graph: Graph, before: Step, edge: Edge) -> Step:
    """Follow an edge backward: add the child's gradient times the local derivative to the parent's gradient."""
    child_grad = before.grads[edge.child]
    total = before.grads[edge.parent] + child_grad * edge.local
    grads = (*before.grads[: edge.parent], total, *before.grads[edge.parent + 1 :])
    parent, child = graph.nodes[edge.parent].label, graph.nodes[edge.child].label
    text = f"{parent}.grad += {child}.grad · ∂{child}/∂{parent} = {child_grad:.4g} · {edge.local:.4g}  →  {total:.4g}"
    return Step("backward", before.values, grads, edge.parent, edge, text)
