"""A scalar that records how it was computed: reverse-mode automatic differentiation.

Every operation makes a node: its result, the nodes it was computed from, and the derivative of the result with respect
to each of them (Linnainmaa, 1970; Griewank & Walther, 2008, chapter 3). `backward` then walks the graph once, from the
end to the beginning. PyTorch does the same with tensors, and leaves the local derivatives until then as well.
"""

from __future__ import annotations

import math

Number = float | int


class Value:
    """A scalar node of a computation graph.

    Attributes:
        data: its value.
        grad: the derivative of what `backward` was called on with respect to it; 0 before.
        parents: the nodes it was computed from, in the operation's order; none for a leaf.
        locals: for each parent, the derivative of this node with respect to it.
        op: what computed it: "+", "×", "tanh"; "" for a leaf.
        name: what a drawing calls it; may be set at any time.
    """

    def __init__(self, data: Number, name: str = "", *, op: str = "", edges: tuple[tuple[Value, float], ...] = ()):
        self.data, self.grad = float(data), 0.0
        self.name, self.op = name, op
        self.parents = tuple(parent for parent, _ in edges)
        self.locals = tuple(local for _, local in edges)

    def backward(self) -> None:
        """Fill in `grad` of every node that this one depends on.

        As in PyTorch, the gradients of leaves add up over several calls; those of all other nodes start afresh.
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
        """The natural logarithm. ValueError unless positive."""
        return _node("log", math.log(self.data), (self, 1 / self.data))

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        result = math.tanh(self.data)
        return _node("tanh", result, (self, 1 - result**2))

    def relu(self) -> Value:
        """The larger of this and 0. At 0 the derivative is taken as 0, as in PyTorch."""
        return _node("relu", max(self.data, 0.0), (self, float(self.data > 0)))

    def __repr__(self) -> str:
        return f"Value({self.data:g}, grad={self.grad:g})"


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


def _value(number: Value | Number) -> Value:
    return number if isinstance(number, Value) else Value(number)


def _node(op: str, data: float, *edges: tuple[Value, float]) -> Value:
    return Value(data, op=op, edges=edges)
