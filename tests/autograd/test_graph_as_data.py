"""The graph as data and the steps of both passes agree with the engine's results."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lmcourse.autograd import EXAMPLES, Graph, Value, example, graph_of, steps_of


def own_graph() -> Graph:
    x, k = Value(0.5, "x"), Value(-2.0, "k")
    h = (x * k).tanh()
    h.name = "h"
    end = h * h + x
    end.backward()
    return graph_of(end, [k])


GRAPHS = pytest.mark.parametrize("graph", [*map(example, EXAMPLES), own_graph()], ids=[*EXAMPLES, "own"])


def test_the_graph_of_a_linear_regression_has_the_expected_nodes() -> None:
    graph = example("linear regression")
    said = {node.label: (node.kind, node.formula, node.data, node.grad) for node in graph.nodes}
    assert said == {
        "w₀": ("parameter", "", 0.0, -8.0),
        "w₁": ("parameter", "", 2.0, -24.0),
        "x": ("input", "", 3.0, -16.0),
        "u": ("compute", "w₁ × x", 6.0, -8.0),
        "ŷ": ("compute", "w₀ + u", 6.0, -8.0),
        "y": ("input", "", 10.0, 8.0),
        "z": ("compute", "ŷ − y", -4.0, -8.0),
        "L": ("compute", "z²", 16.0, 1.0),
    }
    columns = [{graph.nodes[index].label for index in layer} for layer in graph.layers]
    assert columns == [{"w₁", "x"}, {"w₀", "u"}, {"ŷ", "y"}, {"z"}, {"L"}]


def test_unnamed_nodes_are_numbered_and_constants_show_their_number() -> None:
    graph = own_graph()
    assert [node.label for node in graph.nodes] == ["x", "k", "v₁", "h", "v₂", "v₃"]
    assert [node.formula for node in graph.nodes] == ["", "", "x × k", "tanh(v₁)", "h × h", "v₂ + x"]
    halves = graph_of(-(Value(4.0, "a") ** -0.5) / 2)
    assert [node.label for node in halves.nodes] == ["a", "v₁", "v₂", "2", "v₃"]
    assert halves.nodes[1].formula == "a⁻⁰·⁵"
    assert halves.nodes[2].formula == "−v₁"


@GRAPHS
def test_edges_lead_to_the_right_and_no_two_nodes_share_a_place(graph: Graph) -> None:
    assert all(graph.nodes[edge.parent].layer < graph.nodes[edge.child].layer for edge in graph.edges)
    assert len({(node.layer, node.row) for node in graph.nodes}) == len(graph.nodes)
    assert sorted(index for layer in graph.layers for index in layer) == list(range(len(graph.nodes)))


@GRAPHS
def test_the_steps_end_with_the_engines_gradients(graph: Graph) -> None:
    steps = steps_of(graph)
    assert steps[-1].values == tuple(node.data for node in graph.nodes)
    assert steps[-1].grads == pytest.approx([node.grad for node in graph.nodes], rel=1e-12)
    assert len(steps) == 2 + sum(bool(node.formula) for node in graph.nodes) + len(graph.edges)


@GRAPHS
def test_every_step_changes_one_thing(graph: Graph) -> None:
    steps = steps_of(graph)
    assert [i for i, value in enumerate(steps[0].values) if value is None] == [
        i for i, node in enumerate(graph.nodes) if node.formula
    ]
    for before, step in pairwise(steps):
        values = [i for i, pair in enumerate(zip(before.values, step.values, strict=True)) if pair[0] != pair[1]]
        assert values == ([step.node] if step.phase == "forward" else [])
        if step.edge is not None:
            gain = step.grads[step.edge.parent] - before.grads[step.edge.parent]
            assert gain == pytest.approx(before.grads[step.edge.child] * step.edge.local, rel=1e-9, abs=1e-12)


@GRAPHS
def test_a_gradient_is_passed_on_only_when_it_is_complete(graph: Graph) -> None:
    steps = steps_of(graph)
    for step in steps:
        if step.edge is not None:
            assert step.grads[step.edge.child] == steps[-1].grads[step.edge.child]


def test_steps_are_reported_as_assignments() -> None:
    texts = [step.text for step in steps_of(example("linear regression"))]
    assert texts[1] == "u = w₁ × x = 6"
    assert texts[5] == "L.grad = ∂L/∂L = 1"
    assert texts[6] == "z.grad += L.grad · ∂L/∂z = 1 · -8  →  -8"


def test_an_unknown_example_is_reported_with_all_names() -> None:
    with pytest.raises(ValueError, match="unknown graph 'lstm'; choose from linear regression, fan-out"):
        example("lstm")
