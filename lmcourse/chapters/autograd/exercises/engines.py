"""Engines: one on top of torch, to compare with, and one of our own with parts that can be got wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Edge = tuple["Engine", float]

_LEAF: dict[str, Any] = {"dtype": torch.float64, "requires_grad": True}


class TorchValue:
    """The same interface as a learner's `Value`, with all work left to torch."""

    def __init__(self, data: float | Tensor) -> None:
        self.tensor: Tensor = data if isinstance(data, Tensor) else torch.tensor(float(data), **_LEAF)
        self.tensor.retain_grad()

    @property
    def data(self) -> float:
        return self.tensor.item()

    @property
    def grad(self) -> float:
        return 0.0 if self.tensor.grad is None else self.tensor.grad.item()

    def backward(self) -> None:
        torch.autograd.backward(self.tensor)

    def __add__(self, other: Any) -> TorchValue:
        return TorchValue(self.tensor + _tensor(other))

    def __mul__(self, other: Any) -> TorchValue:
        return TorchValue(self.tensor * _tensor(other))

    def __sub__(self, other: Any) -> TorchValue:
        return TorchValue(self.tensor - _tensor(other))

    def __rsub__(self, other: Any) -> TorchValue:
        return TorchValue(_tensor(other) - self.tensor)

    def __truediv__(self, other: Any) -> TorchValue:
        return TorchValue(self.tensor / _tensor(other))

    def __rtruediv__(self, other: Any) -> TorchValue:
        return TorchValue(_tensor(other) / self.tensor)

    def __pow__(self, exponent: float) -> TorchValue:
        return TorchValue(self.tensor**exponent)

    def __neg__(self) -> TorchValue:
        return TorchValue(-self.tensor)

    def exp(self) -> TorchValue:
        return TorchValue(self.tensor.exp())

    def tanh(self) -> TorchValue:
        return TorchValue(self.tensor.tanh())

    def relu(self) -> TorchValue:
        return TorchValue(self.tensor.relu())

    __radd__, __rmul__ = __add__, __mul__


def _tensor(other: Any) -> Any:
    return other.tensor if isinstance(other, TorchValue) else other


class Engine:
    """A right engine, in pieces: each wrong one replaces a piece."""

    def __init__(self, data: float, edges: tuple[Edge, ...] = ()) -> None:
        self.data, self.grad, self.edges, self.uses = float(data), 0.0, edges, 0

    def node(self, data: float, *edges: Edge) -> Engine:
        return type(self)(data, edges)

    def of(self, other: Engine | float) -> Engine:
        return other if isinstance(other, Engine) else type(self)(other)

    def __add__(self, other: Engine | float) -> Engine:
        return self.node(self.data + self.of(other).data, (self, 1.0), (self.of(other), 1.0))

    def __mul__(self, other: Engine | float) -> Engine:
        right = self.of(other)
        return self.node(self.data * right.data, (self, right.data), (right, self.data))

    def __pow__(self, exponent: float) -> Engine:
        return self.node(self.data**exponent, (self, self.power_slope(exponent)))

    def power_slope(self, exponent: float) -> float:
        return float(exponent * self.data ** (exponent - 1))

    def exp(self) -> Engine:
        return self.node(math.exp(self.data), (self, math.exp(self.data)))

    def tanh(self) -> Engine:
        return self.node(math.tanh(self.data), (self, 1 - math.tanh(self.data) ** 2))

    def relu(self) -> Engine:
        return self.node(max(self.data, 0.0), (self, float(self.data > 0)))

    def order(self) -> list[Engine]:
        """From the end to the leaves, each node after all that use it."""
        done: dict[Engine, None] = {}
        stack = [(self, False)]
        while stack:
            node, complete = stack.pop()
            if complete:
                done[node] = None
            elif node not in done:
                stack.append((node, True))
                stack += [(parent, False) for parent, _ in node.edges if parent not in done]
        return [*done][::-1]

    def backward(self) -> None:
        self.grad = 1.0
        for node in self.order():
            for parent, local in node.edges:
                parent.grad = self.collected(parent.grad, node.grad, local)

    collected: Callable[..., float] = staticmethod(lambda before, arriving, local: before + arriving * local)

    def __neg__(self) -> Engine:
        return self * -1

    def __sub__(self, other: Engine | float) -> Engine:
        return self + self.of(other) * -1

    def __rsub__(self, other: float) -> Engine:
        return self.of(other) - self

    def __truediv__(self, other: Engine | float) -> Engine:
        return self * self.of(other) ** -1

    def __rtruediv__(self, other: float) -> Engine:
        return self.of(other) / self

    __radd__, __rmul__ = __add__, __mul__
