"""Engines in other styles than the printed one, each of them right."""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from typing import Any

import numpy as np


class Closures:
    """Each node has a function that hands its gradient on; the nodes are sorted by how deep they lie."""

    def __init__(self, data: Any, parents: Any = ()) -> None:
        self.data, self.grad, self.parents = data, 0, parents
        self.depth = 1 + max((parent.depth for parent in parents), default=0)
        self.hand_on: Any = lambda: None

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a + b, 1, 1))

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a * b, b, a))

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a - b, 1, -1))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (b - a, -1, 1))

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a / b, 1 / b, -a / b**2))

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (b / a, -b / a**2, 1 / a))

    def __pow__(self, n: Any) -> Any:
        return self._with(n, lambda a, n: (a**n, n * a ** (n - 1), 0))

    def exp(self) -> Any:
        return self._with(0, lambda a, _: (math.exp(a), math.exp(a), 0))

    def tanh(self) -> Any:
        return self._with(0, lambda a, _: (math.tanh(a), 1 / math.cosh(a) ** 2, 0))

    def relu(self) -> Any:
        return self._with(0, lambda a, _: (a if a > 0 else 0, 1 if a > 0 else 0, 0))

    def __neg__(self) -> Any:
        return self._with(0, lambda a, _: (-a, -1, 0))

    __radd__, __rmul__ = __add__, __mul__

    def _with(self, other: Any, rule: Any) -> Any:
        other = other if isinstance(other, Closures) else Closures(other)
        data, left, right = rule(self.data, other.data)
        result = Closures(data, (self, other))

        def hand_on() -> None:
            self.grad += left * result.grad
            other.grad += right * result.grad

        result.hand_on = hand_on
        return result

    def backward(self) -> None:
        found, waiting = {id(self): self}, [self]
        while waiting:
            for parent in waiting.pop().parents:
                if id(parent) not in found:
                    found[id(parent)] = parent
                    waiting.append(parent)
        self.grad = 1
        for node in sorted(found.values(), key=lambda node: -node.depth):
            node.hand_on()


class NumberedAsTheyAreMade:
    """Who was made later comes first: a heap of numbers."""

    made = 0

    def __init__(self, data: Any, edges: Any = ()) -> None:
        self.data = np.float64(data)
        self.grad = np.float64(0)
        self.edges = edges
        NumberedAsTheyAreMade.made += 1
        self.number = NumberedAsTheyAreMade.made

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, NumberedAsTheyAreMade):
            return NumberedAsTheyAreMade(self.data + other, [(self, 1)])
        return NumberedAsTheyAreMade(self.data + other.data, [(self, 1), (other, 1)])

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, NumberedAsTheyAreMade):
            return NumberedAsTheyAreMade(self.data * other, [(self, other)])
        return NumberedAsTheyAreMade(self.data * other.data, [(self, other.data), (other, self.data)])

    def __pow__(self, n: Any) -> Any:
        return NumberedAsTheyAreMade(self.data ** float(n), [(self, n * self.data ** float(n - 1))])

    def exp(self) -> Any:
        return NumberedAsTheyAreMade(np.exp(self.data), [(self, np.exp(self.data))])

    def tanh(self) -> Any:
        tanh = 1 - 2 / (np.exp(2 * self.data) + 1)
        return NumberedAsTheyAreMade(tanh, [(self, 1 - tanh * tanh)])

    def relu(self) -> Any:
        return NumberedAsTheyAreMade(np.maximum(self.data, 0), [(self, 1)] if self.data > 0 else [])

    def backward(self) -> None:
        self.grad, heap, seen = np.float64(1), [(-self.number, self)], {self.number}
        while heap:
            _, node = heapq.heappop(heap)
            for parent, local in node.edges:
                parent.grad += local * node.grad
                if parent.number not in seen:
                    seen.add(parent.number)
                    heapq.heappush(heap, (-parent.number, parent))

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -1 * other

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / other)

    def __rsub__(self, other: Any) -> Any:
        return -1 * self + other

    def __rtruediv__(self, other: Any) -> Any:
        return self**-1 * other

    __radd__, __rmul__ = __add__, __mul__


class CountsTheUsesInBackward:
    """Local derivatives are computed on the way back; a gradient goes on when the last use has reported."""

    def __init__(self, data: Any, kind: str = "leaf", a: Any = None, b: Any = None) -> None:
        self.data, self.grad, self.kind, self.a, self.b = float(data), 0.0, kind, a, b

    def __add__(self, other: Any) -> Any:
        other = other if hasattr(other, "data") else CountsTheUsesInBackward(other)
        return CountsTheUsesInBackward(self.data + other.data, "+", self, other)

    def __mul__(self, other: Any) -> Any:
        other = other if hasattr(other, "data") else CountsTheUsesInBackward(other)
        return CountsTheUsesInBackward(self.data * other.data, "*", self, other)

    def __pow__(self, exponent: Any) -> Any:
        return CountsTheUsesInBackward(math.pow(self.data, exponent), "**", self, exponent)

    def exp(self) -> Any:
        return CountsTheUsesInBackward(math.e**self.data, "exp", self)

    def tanh(self) -> Any:
        return CountsTheUsesInBackward(math.sinh(self.data) / math.cosh(self.data), "tanh", self)

    def relu(self) -> Any:
        return CountsTheUsesInBackward((self.data + abs(self.data)) / 2, "relu", self)

    def edges(self) -> Any:
        if self.kind == "+":
            return [(self.a, 1.0), (self.b, 1.0)]
        if self.kind == "*":
            return [(self.a, self.b.data), (self.b, self.a.data)]
        if self.kind == "**":
            return [(self.a, self.b * math.pow(self.a.data, self.b - 1))]
        slopes = {"exp": self.data, "tanh": (1 - self.data) * (1 + self.data), "relu": float(self.data > 0)}
        return [(self.a, slopes[self.kind])] if self.kind in slopes else []

    def backward(self) -> None:
        uses: Counter[Any] = Counter()
        waiting, seen = [self], {self}
        while waiting:
            for parent, _ in waiting.pop().edges():
                uses[parent] += 1
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        self.grad, ready = 1.0, deque([self])
        while ready:
            node = ready.popleft()
            for parent, local in node.edges():
                parent.grad += local * node.grad
                uses[parent] -= 1
                if not uses[parent]:
                    ready.append(parent)

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __truediv__(self, other: Any) -> Any:
        return self * other**-1

    def __rtruediv__(self, other: Any) -> Any:
        return self**-1 * other

    __radd__, __rmul__ = __add__, __mul__


RIGHT_ENGINES = (Closures, NumberedAsTheyAreMade, CountsTheUsesInBackward)
