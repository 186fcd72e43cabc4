"""Small example graphs to draw and to step through; each returns a result and its parameters."""

from __future__ import annotations

from collections.abc import Callable

from lmcourse.autograd.graph import Graph, graph_of
from lmcourse.autograd.value import Value


def linear_regression(x: float = 3.0, y: float = 10.0, w0: float = 0.0, w1: float = 2.0) -> Graph:
    """Return the squared error of a straight line at one point, (w1·x + w0 − y)², and its parameters."""
    weight, bias = Value(w1, "w₁"), Value(w0, "w₀")
    u = _named(weight * Value(x, "x"), "u")
    prediction = _named(bias + u, "ŷ")
    z = _named(prediction - Value(y, "y"), "z")
    return _done(_named(z**2, "L"), weight, bias)


def fan_out(x: float = 2.0) -> Graph:
    """Return a graph that uses one node twice: y = x², u = 3y, v = y², L = u + v."""
    y = _named(Value(x, "x") ** 2, "y")
    u, v = _named(3 * y, "u"), _named(y**2, "v")
    return _done(_named(u + v, "L"))


def neuron(x1: float = 1.0, x2: float = -2.0) -> Graph:
    """Return a neuron, tanh(w1·x1 + w2·x2 + b), and its parameters."""
    w1, w2, b = Value(0.5, "w₁"), Value(-0.25, "w₂"), Value(0.1, "b")
    first, second = _named(w1 * Value(x1, "x₁"), "p"), _named(w2 * Value(x2, "x₂"), "q")
    total = _named(_named(first + second, "s") + b, "h")
    return _done(_named(total.tanh(), "y"), w1, w2, b)


def two_word_softmax(logit: float = 2.0, other: float = 1.0) -> Graph:
    """Return the loss −log softmax of a language model with two words; its graph uses one node three times."""
    a, b = Value(logit, "a"), Value(other, "b")
    right, wrong = _named(a.exp(), "eᵃ"), _named(b.exp(), "eᵇ")
    p = _named(right / _named(right + wrong, "Σ"), "p")
    return _done(_named(-_named(p.log(), "ℓ"), "L"), a, b)


EXAMPLES: dict[str, Callable[[], Graph]] = {
    "linear regression": linear_regression,
    "fan-out": fan_out,
    "neuron": neuron,
    "two-word softmax": two_word_softmax,
}


def example(name: str) -> Graph:
    """Return the graph with this name; raise ValueError with all names if it is unknown."""
    if name not in EXAMPLES:
        raise ValueError(f"unknown graph {name!r}; choose from {', '.join(EXAMPLES)}")
    return EXAMPLES[name]()


def _named(node: Value, name: str) -> Value:
    node.name = name
    return node


def _done(end: Value, *parameters: Value) -> Graph:
    end.backward()
    return graph_of(end, parameters)
