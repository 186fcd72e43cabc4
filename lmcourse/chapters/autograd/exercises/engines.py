"""Nodes of a graph: torch's, to compare with, and a right engine in pieces that wrong engines replace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


class TorchValue:
    """A node with the interface of a learner's `Value`: torch computes its results and local derivatives."""

    def __init__(self, data: float, parents: Sequence[TorchValue] = (), locals: Sequence[float] = ()) -> None:
        self.data, self.grad, self.parents, self.locals = float(data), 0.0, [*parents], [*locals]

    def _node(self, operation: Callable[..., Tensor], *others: Any) -> TorchValue:
        parents = [self, *(other if isinstance(other, TorchValue) else TorchValue(other) for other in others)]
        leaves = [torch.tensor(parent.data, dtype=torch.float64, requires_grad=True) for parent in parents]
        result = operation(*leaves)
        return TorchValue(result.item(), parents, [grad.item() for grad in torch.autograd.grad(result, leaves)])

    def __add__(self, other: Any) -> TorchValue:
        return self._node(torch.add, other)

    def __mul__(self, other: Any) -> TorchValue:
        return self._node(torch.mul, other)

    def __sub__(self, other: Any) -> TorchValue:
        return self._node(torch.sub, other)

    def __rsub__(self, other: Any) -> TorchValue:
        return TorchValue(other) - self

    def __truediv__(self, other: Any) -> TorchValue:
        return self._node(torch.div, other)

    def __rtruediv__(self, other: Any) -> TorchValue:
        return TorchValue(other) / self

    def __pow__(self, exponent: float) -> TorchValue:
        return self._node(lambda base: base**exponent)

    def __neg__(self) -> TorchValue:
        return self._node(torch.neg)

    def exp(self) -> TorchValue:
        return self._node(torch.exp)

    def tanh(self) -> TorchValue:
        return self._node(torch.tanh)

    def relu(self) -> TorchValue:
        return self._node(torch.relu)

    __radd__, __rmul__ = __add__, __mul__


class Engine:
    """Right operations, in pieces: each wrong class replaces one piece."""

    def __init__(self, data: float, parents: Sequence[Engine] = (), locals: Sequence[float] = ()) -> None:
        self.data, self.grad, self.parents, self.locals = float(data), 0.0, tuple(parents), tuple(locals)

    def node(self, data: float, *edges: tuple[Engine, float]) -> Engine:
        return type(self)(data, [parent for parent, _ in edges], [local for _, local in edges])

    def of(self, other: Engine | float) -> Engine:
        return other if isinstance(other, Engine) else type(self)(other)

    def __add__(self, other: Engine | float) -> Engine:
        right = self.of(other)
        return self.node(self.data + right.data, (self, 1.0), (right, 1.0))

    def __mul__(self, other: Engine | float) -> Engine:
        right = self.of(other)
        return self.node(self.data * right.data, (self, right.data), (right, self.data))

    def __pow__(self, exponent: float) -> Engine:
        return self.node(self.data**exponent, (self, self.power_slope(exponent)))

    def power_slope(self, exponent: float) -> float:
        return float(exponent * self.data ** (exponent - 1))

    def exp(self) -> Engine:
        return self.node(math.exp(self.data), (self, self.exp_slope()))

    def exp_slope(self) -> float:
        return math.exp(self.data)

    def tanh(self) -> Engine:
        return self.node(math.tanh(self.data), (self, self.tanh_slope()))

    def tanh_slope(self) -> float:
        return 1 - math.tanh(self.data) ** 2

    def relu(self) -> Engine:
        return self.node(max(self.data, 0.0), (self, self.relu_slope()))

    def relu_slope(self) -> float:
        return float(self.data > 0)

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
