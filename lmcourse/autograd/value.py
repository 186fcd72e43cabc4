"""A scalar that records how it was computed: reverse-mode automatic differentiation.

Every operation makes a node: its result, the nodes it was computed from, and the derivative of the result with respect
to each of them (Linnainmaa, 1970; Griewank & Walther, 2008, chapter 3). `backward` then walks the graph once, from the
end to the beginning. PyTorch does the same with tensors, but computes the local derivatives only in the backward pass.
"""

from __future__ import annotations

import math

Number = float | int


class Value:
    """A scalar node of a computation graph.

    Attributes:
        data: the value of the node.
        grad: the derivative of the result, on which `backward` was called, with respect to this node; at first 0.
        parents: the nodes that it was computed from, in the operation's order; empty for a leaf.
        locals: for each parent, the derivative of this node with respect to it.
        op: the operation that computed it: "+", "×", "tanh"; "" for a leaf.
        name: its name in drawings; you can set it at any time.
    """

    def __init__(self, data: Number, name: str = "", *, op: str = "", edges: tuple[tuple[Value, float], ...] = ()):
        self.data, self.grad = float(data), 0.0
        self.name, self.op = name, op
        self.parents = tuple(parent for parent, _ in edges)
        self.locals = tuple(local for _, local in edges)

    def backward(self) -> None:
        """Compute `grad` of every node that this node depends on.

        As in PyTorch, the gradients of leaves add up over several calls, and the gradients of other nodes start again
        at 0.
        """
        order = topological_order(self)
        for node in order:
            if node.parents:
                node.grad = 0.0
        self.grad += 1.0
        for node in reversed(order):
            for parent, local in zip(node.parents, node.locals, strict=True):
                parent.grad += node.grad * local

    def __add__(self, other: Value | Number) -> Value:
        right = _value(other)
        return _node("+", self.data + right.data, (self, 1.0), (right, 1.0))

    def __sub__(self, other: Value | Number) -> Value:
        right = _value(other)
        return _node("−", self.data - right.data, (self, 1.0), (right, -1.0))

    def __mul__(self, other: Value | Number) -> Value:
        right = _value(other)
        return _node("×", self.data * right.data, (self, right.data), (right, self.data))

    def __truediv__(self, other: Value | Number) -> Value:
        right = _value(other)
        result = self.data / right.data
        return _node("/", result, (self, 1 / right.data), (right, -result / right.data))

    def __pow__(self, exponent: Number) -> Value:
        if self.data < 0 and exponent != int(exponent):
            raise ValueError(f"{self.data:g} ** {exponent:g} is not a real number")
        local = exponent * self.data ** (exponent - 1) if exponent else 0.0
        return _node(f"**{exponent:g}", self.data**exponent, (self, local))

    def __neg__(self) -> Value:
        return _node("neg", -self.data, (self, -1.0))

    def __radd__(self, other: Number) -> Value:
        return _value(other) + self

    def __rsub__(self, other: Number) -> Value:
        return _value(other) - self

    def __rmul__(self, other: Number) -> Value:
        return _value(other) * self

    def __rtruediv__(self, other: Number) -> Value:
        return _value(other) / self

    def __rpow__(self, base: Number) -> Value:
        return (self * math.log(base)).exp()

    def exp(self) -> Value:
        """Return e to the power of this value."""
        return _node("exp", math.exp(self.data), (self, math.exp(self.data)))

    def log(self) -> Value:
        """Return the natural logarithm; raise ValueError if the value is not positive."""
        return _node("log", math.log(self.data), (self, 1 / self.data))

    def tanh(self) -> Value:
        """Return the hyperbolic tangent."""
        result = math.tanh(self.data)
        return _node("tanh", result, (self, 1 - result**2))

    def relu(self) -> Value:
        """Return the maximum of the value and 0. At 0 the derivative is 0, as in PyTorch."""
        return _node("relu", max(self.data, 0.0), (self, float(self.data > 0)))

    def __repr__(self) -> str:
        return f"Value({self.data:g}, grad={self.grad:g})"


def topological_order(end: Value) -> list[Value]:
    """Return all nodes that `end` depends on, each after its parents; `end` comes last.

    This is a depth-first search with an explicit stack, because a recursive search would fail for a chain of about a
    thousand nodes.
    """
    order: list[Value] = []
    visited: set[Value] = set()
    stack = [(end, False)]
    while stack:
        node, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(node)
        elif node not in visited:
            visited.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(node.parents))
    return order


def _value(number: Value | Number) -> Value:
    return number if isinstance(number, Value) else Value(number)


def _node(op: str, data: float, *edges: tuple[Value, float]) -> Value:
    return Value(data, op=op, edges=edges)
