"""Computation graphs in layers: leaves at the left, the loss at the right, a local derivative on every edge."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch

from lmcourse.autograd import Edge, Graph, Step, example, steps_of
from lmcourse.plots.style import GREY, PALETTE, describe, new_drawing_axes, new_figure

KIND_COLOURS = {"input": "#DCEBF7", "parameter": "#FBE6C2", "compute": "#F4F5F6"}
PHASES = {"start": "before the forward pass", "forward": "forward", "seed": "backward", "backward": "backward"}

_WIDTH = 8.0
_ROW = 1.02
_BOX_HEIGHT = 0.78
_SKIP_EDGE_HEIGHT = 0.9
_HIGHLIGHT = PALETTE["vermilion"]


def computation_graph(
    graph: Graph | str = "linear regression", gradients: bool = True, *, locals_only: bool = False
) -> Figure:
    """A graph after both passes, or with gradients=False after the forward pass, without any derivatives.

    With locals_only=True the edges carry their local derivatives, and no box has a gradient yet. A name stands for one
    of `lmcourse.autograd.EXAMPLES`. ValueError for an unknown one.
    """
    title = graph if isinstance(graph, str) else "A computation graph"
    shown = example(graph) if isinstance(graph, str) else graph
    values = [node.data for node in shown.nodes]
    gradients = gradients and not locals_only
    grads = [node.grad for node in shown.nodes] if gradients else None
    figure, axes = _canvas(shown, title[:1].upper() + title[1:])
    _draw_edges(axes, shown, values if gradients or locals_only else [None] * len(values), None)
    _draw_nodes(axes, shown, values, grads, None)
    caption = "Each box is an atomic assignment: what it is and its value."
    if gradients:
        caption = (
            "Each box is an atomic assignment: what it is, its value and the gradient of the last node with respect to "
            "it. The number on an edge is the derivative of its right end with respect to its left end."
        )
    alt = f"Computation graph. {_listed(shown, values, grads)}"
    if locals_only:
        caption += " The number on an edge is the derivative of its right end with respect to its left end."
        alt += f". Local derivatives: {_locals(shown)}"
    return describe(figure, caption=caption, alt=alt)


def graph_step(graph: Graph | str = "linear regression", step: int = 0) -> Figure:
    """One moment of the two passes: step 0 shows the leaves, the last step shows all gradients.

    ValueError for an unknown example, or a step that does not exist.
    """
    shown = example(graph) if isinstance(graph, str) else graph
    steps = steps_of(shown)
    if not 0 <= step < len(steps):
        raise ValueError(f"there is no step {step}: this graph has steps 0 to {len(steps) - 1}")
    now = steps[step]
    grads = now.grads if now.phase in ("seed", "backward") else None
    figure, axes = _canvas(shown, f"Step {step} of {len(steps) - 1}, {PHASES[now.phase]}: {now.text}")
    _draw_edges(axes, shown, now.values, now)
    _draw_nodes(axes, shown, now.values, grads, now.node)
    caption = (
        "Forward, every box is computed from the boxes to its left. Backward, every edge multiplies the gradient at "
        "its right end by the number on it and adds the product to the gradient at its left end."
    )
    alt = f"Step {step} of {len(steps) - 1}, {now.phase}: {now.text}. {_listed(shown, now.values, grads)}"
    return describe(figure, caption=caption, alt=alt)


def _canvas(graph: Graph, title: str) -> tuple[Figure, Axes]:
    height = _ROW * max(len(layer) for layer in graph.layers)
    inches = height if height < 3 * _ROW else 0.67 * height
    figure = new_figure(_WIDTH, inches + 1.15 + 0.3 * _has_skip_edges(graph))
    axes = new_drawing_axes(figure, title)
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(-height / 2 - 0.35, height / 2 + 0.3 * _has_skip_edges(graph))
    present = [kind for kind in KIND_COLOURS if any(node.kind == kind for node in graph.nodes)]
    patches = [Patch(facecolor=KIND_COLOURS[kind], edgecolor=GREY, label=kind) for kind in present]
    axes.legend(handles=patches, loc="lower center", ncols=3, frameon=False, fontsize=8.5, handlelength=1.2)
    return figure, axes


def _has_skip_edges(graph: Graph) -> bool:
    return any(graph.nodes[edge.child].layer - graph.nodes[edge.parent].layer > 1 for edge in graph.edges)


def _box_centre(graph: Graph, index: int) -> tuple[float, float]:
    """The centre of a node's box, in inches."""
    node = graph.nodes[index]
    rows = len(graph.layers[node.layer])
    return (node.layer + 0.5) * _spacing(graph), _ROW * ((rows - 1) / 2 - node.row)


def _spacing(graph: Graph) -> float:
    return _WIDTH / len(graph.layers)


def _box_width(graph: Graph) -> float:
    return min(1.2, 0.66 * _spacing(graph))


def _draw_nodes(
    axes: Axes, graph: Graph, values: Sequence[float | None], grads: Sequence[float] | None, highlighted: int | None
) -> None:
    width = _box_width(graph)
    for index, node in enumerate(graph.nodes):
        x, y = _box_centre(graph, index)
        value = values[index]
        axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - _BOX_HEIGHT / 2),
                width,
                _BOX_HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=KIND_COLOURS[node.kind],
                edgecolor=_HIGHLIGHT if index == highlighted else GREY,
                linewidth=2.4 if index == highlighted else 0.9,
                alpha=1.0 if value is not None else 0.45,
                zorder=3,
            )
        )
        title = f"{node.label} = {node.formula}" if node.formula else node.label
        title = "constant" if title == f"{node.data:g}" else title
        size = min(9.5, 88 * width / len(title))
        axes.text(x, y + 0.23, title, ha="center", va="center", fontsize=size, fontweight="bold", zorder=4)
        shown = "?" if value is None else f"{value:.3g}"
        axes.text(x, y, shown, ha="center", va="center", fontsize=9.5, zorder=4)
        if grads is not None:
            text = f"grad {grads[index]:.3g}"
            axes.text(x, y - 0.24, text, ha="center", va="center", fontsize=8.5, color=PALETTE["blue"], zorder=4)


def _draw_edges(axes: Axes, graph: Graph, values: Sequence[float | None], now: Step | None) -> None:
    for index, edge in enumerate(graph.edges):
        highlighted = now is not None and _is_highlighted(edge, now)
        backward = highlighted and now is not None and now.phase == "backward"
        left, right, bend = _edge_path(graph, index)
        axes.add_patch(
            FancyArrowPatch(
                right if backward else left,
                left if backward else right,
                arrowstyle="-|>",
                mutation_scale=11,
                connectionstyle=f"arc3,rad={-bend if backward else bend}",
                color=_HIGHLIGHT if highlighted else GREY,
                linewidth=2.2 if highlighted else 0.9,
                zorder=2,
            )
        )
        if values[edge.child] is not None:
            lift = 0.13 if left[1] == right[1] and not bend else -bend * (right[0] - left[0]) / 2
            middle = (left[0] + right[0]) / 2, (left[1] + right[1]) / 2 + lift
            _write_on(axes, *middle, f"{edge.local:.3g}", highlighted=backward)


def _is_highlighted(edge: Edge, now: Step) -> bool:
    """Return True if a step uses this edge: the edge it follows back, or an edge to the node it computes."""
    return edge is now.edge if now.phase == "backward" else now.phase == "forward" and edge.child == now.node


def _edge_path(graph: Graph, index: int) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Start and end of the arrow for an edge, and its curvature.

    Two edges between the same nodes bend apart. An edge over several layers bends around the boxes between, and ends
    at its child from above or below.
    """
    edge, half = graph.edges[index], _box_width(graph) / 2
    (x0, y0), (x1, y1) = _box_centre(graph, edge.parent), _box_centre(graph, edge.child)
    twins = [i for i, e in enumerate(graph.edges) if (e.parent, e.child) == (edge.parent, edge.child)]
    if graph.nodes[edge.child].layer - graph.nodes[edge.parent].layer > 1:
        up = 1 if y0 + y1 >= 0 else -1
        return (x0 + half, y0), (x1, y1 + up * _BOX_HEIGHT / 2), -up * min(0.3, _SKIP_EDGE_HEIGHT / (x1 - x0))
    bend = 0.0 if len(twins) == 1 else 0.45 if index == twins[0] else -0.45
    return (x0 + half, y0), (x1 - half, y1), bend


def _write_on(axes: Axes, x: float, y: float, text: str, *, highlighted: bool) -> None:
    axes.text(
        x,
        y,
        text,
        ha="center",
        va="center",
        fontsize=(9 if highlighted else 8) - (len(text) > 5),
        fontweight="bold" if highlighted else "normal",
        color=_HIGHLIGHT if highlighted else GREY,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        zorder=5,
    )


def _listed(graph: Graph, values: Sequence[float | None], grads: Sequence[float] | None) -> str:
    """Describe every node in words, for the alt text."""
    known = [index for index, value in enumerate(values) if value is not None]
    gradient = [f", grad {grad:.3g}" for grad in grads] if grads is not None else [""] * len(values)
    return "; ".join(
        f"{graph.nodes[i].kind} {graph.nodes[i].label} = {graph.nodes[i].data:.3g}{gradient[i]}" for i in known
    )


def _locals(graph: Graph) -> str:
    label = [node.label for node in graph.nodes]
    return "; ".join(f"∂{label[edge.child]}/∂{label[edge.parent]} = {edge.local:.3g}" for edge in graph.edges)
