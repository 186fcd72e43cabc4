"""The exercise on numbers that remember their parents and local derivatives: a class that scripts use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partialmethod
from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise


class _TorchValue:
    """A node with the interface of a learner's `Value`: torch computes its results and local derivatives."""

    def __init__(self, data: float, parents: Sequence[_TorchValue] = (), locals: Sequence[float] = ()) -> None:
        self.data, self.grad, self.parents, self.locals = float(data), 0.0, [*parents], [*locals]

    def _node(self, operation: Callable[..., Tensor], *others: Any) -> _TorchValue:
        parents = [self, *(other if isinstance(other, _TorchValue) else _TorchValue(other) for other in others)]
        leaves = [torch.tensor(parent.data, dtype=torch.float64, requires_grad=True) for parent in parents]
        result = operation(*leaves)
        return _TorchValue(result.item(), parents, [grad.item() for grad in torch.autograd.grad(result, leaves)])

    def __pow__(self, exponent: float) -> _TorchValue:
        return self._node(lambda base: base**exponent)

    __add__ = __radd__ = partialmethod(_node, torch.add)
    __mul__ = __rmul__ = partialmethod(_node, torch.mul)
    __sub__, __rsub__ = partialmethod(_node, torch.sub), partialmethod(_node, lambda own, other: other - own)
    __truediv__, __rtruediv__ = partialmethod(_node, torch.div), partialmethod(_node, lambda own, other: other / own)
    __neg__, exp = partialmethod(_node, torch.neg), partialmethod(_node, torch.exp)
    tanh, relu = partialmethod(_node, torch.tanh), partialmethod(_node, torch.relu)


def _operations(name: str, *formulas: str, a: float = 2.0, b: float = -0.5) -> Case:
    """A case that returns for each formula in a and b its result, the values of its parents and its local
    derivatives."""
    seen = "c.data\n[parent.data for parent in c.parents]\n[float(local) for local in c.locals]"
    steps = "\n".join(f"c = {formula}\n{seen}" for formula in formulas)
    return script(name, f"a = Value({a})\nb = Value({b})\n{steps}")


_GIVEN = ("-a", "a - b", "a - 5", "7 - a", "a / b", "b / 8", "6 / b")


def _others(random: Random) -> list[Case]:
    x, y = round(random.uniform(0.2, 2.0), 3), round(random.uniform(-2.0, -0.2), 3)
    return [
        _operations("other sums and products", "b + a", "b * a", "0 * a", "a + 1.5", a=x, b=y),
        _operations("other powers", "a ** 0.5", "a ** -1", "b ** 3", "a ** 1", a=x, b=y),
        edge(_operations("powers of zero", "a ** 2", "a ** 1", "a ** 0", a=0.0)),
        _operations("other arguments of exp", "a.exp()", "b.exp()", a=x, b=y),
        _operations("other arguments of tanh", "a.tanh()", "b.tanh()", a=x, b=y),
        _operations("other arguments of relu", "a.relu()", "b.relu()", a=x, b=y),
        _operations("whole numbers", "a * b", "a ** 2", "b.relu()", a=3, b=-4),
    ]


Value = Exercise(
    "Value",
    points=2,
    minutes=8,
    difficulty=2,
    reference=_TorchValue,
    given_methods=["__init__", "__neg__", "__sub__", "__truediv__", "__rsub__", "__rtruediv__"],
    cases=[
        _operations("a + b", "a + b", "b + b"),
        _operations("a * b", "a * b", "b * a"),
        _operations("a number on either side", "a * 3", "4 + b"),
        _operations("powers", "a ** 3", "b ** -2"),
        _operations("exp", "a.exp()", "b.exp()"),
        _operations("tanh", "a.tanh()", "b.tanh()"),
        _operations("relu", "a.relu()", "b.relu()"),
        edge(_operations("relu of a small number", "a.relu()", a=0.25)),
        script("what is given", "a = Value(2.0)\nb = Value(-0.5)\n" + "\n".join(f"({f}).data" for f in _GIVEN)),
        script(
            "a * a has a twice",
            "a = Value(3.0)\nc = a * a\n[parent is a for parent in c.parents]\n[float(local) for local in c.locals]\n"
            "c.grad\na.grad",
        ),
        script(
            "every grad is 0 before the backward pass",
            "a = Value(3.0)\nb = Value(-0.5)\nc = (a + b * 2) ** 2 + a.exp() + b.tanh() + a.relu()\n"
            "a.grad\nb.grad\nc.grad",
        ),
        edge(_operations("relu at 0", "a.relu()", a=0.0)),
        edge(_operations("powers of 0", "a ** 1", "a ** 0", a=0.0)),
        edge(_operations("tanh at 1000", "a.tanh()", a=1000.0)),
        edge(_operations("tanh at −1000", "a.tanh()", a=-1000.0)),
    ],
    hidden_cases=_others,
    hints=[
        "A new node is made in one line: Value(result, parents, locals), with as many locals as parents, in the same "
        "order.",
        "Nudge one input in your head. By how much does a · b move if a grows by a little? How often does a appear in "
        "its own derivative?",
        "exp and tanh are their own best helpers: write their derivatives with the *result* of the operation.",
    ],
    forbid=["torch", "graphlib"],
)

Value.equivalent_mutant(
    "return Value(max(self.data, 0.0), (self,), (float(self.data > 0),), 'relu') → "
    "return Value(max(0.0, self.data), (self,), (float(self.data > 0),), 'relu')",
    "They differ for NaN alone, of which nothing is said.",
)
Value.equivalent_mutant("return self * -1 → return self / -1", "Dividing by −1 is multiplying by −1.")


@Value.variant
class OneRuleForAll:
    def __init__(self, data: Any, steps: Any = (), op: str = "") -> None:
        self.data, self.grad, self.op = data, 0.0, op
        self.parents = tuple(parent for parent, _ in steps)
        self.locals = [local for _, local in steps]

    @staticmethod
    def leaf(number: Any) -> Any:
        return number if isinstance(number, OneRuleForAll) else OneRuleForAll(float(number))

    def along(self, result: Any, slope: Any, op: str) -> Any:
        return OneRuleForAll(result, [(self, slope)], op)

    def __add__(self, other: Any) -> Any:
        right = self.leaf(other)
        return OneRuleForAll(self.data + right.data, [(self, 1.0), (right, 1.0)], "+")

    def __mul__(self, other: Any) -> Any:
        right = self.leaf(other)
        return OneRuleForAll(self.data * right.data, [(self, right.data), (right, self.data)], "×")

    def __pow__(self, n: Any) -> Any:
        return self.along(self.data**n, n * self.data ** (n - 1) if n else 0.0, f"**{n:g}")

    def exp(self) -> Any:
        e = math.exp(self.data)
        return self.along(e, e, "exp")

    def tanh(self) -> Any:
        t = math.tanh(self.data)
        return self.along(t, 1 - t**2, "tanh")

    def relu(self) -> Any:
        return self.along(max(0.0, self.data), 1.0 if self.data > 0 else 0.0, "relu")

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + self.leaf(other) * -1

    def __rsub__(self, other: Any) -> Any:
        return self.leaf(other) - self

    def __truediv__(self, other: Any) -> Any:
        return self * self.leaf(other) ** -1

    def __rtruediv__(self, other: Any) -> Any:
        return self.leaf(other) / self

    __radd__, __rmul__ = __add__, __mul__


_OVERFLOWS = "Your tanh overflows far from 0: e¹⁰⁰⁰ is too large for a float. math.tanh works for every number."

Value.slips(
    OneRuleForAll,
    {
        "(self, right.data), (right, self.data) → (self, self.data), (right, right.data)": "In your product each "
        "factor gets its own value as local derivative. The local derivative is the other factor: ∂(a·b)/∂a = b.",
        "(self, 1.0), (right, 1.0) → (self, right.data), (right, self.data)": "You give a sum the local derivatives of "
        "a product. a + b grows as fast as a, so both derivatives are 1.",
        "(right, 1.0)] → (right, 1.0)][: 1 + (right is other)]": "In a sum with a plain number you leave the number "
        "out of the parents. Make a leaf of it: `as_value(other)`.",
        "(right, self.data)] → (right, self.data)][: 1 + (right is other)]": "In a product with a plain number you "
        "leave the number out of the parents. Make a leaf of it: `as_value(other)`.",
        "class OneRuleForAll: → class Value: ;; (self, right.data), (right, self.data) → (self, right), (right, self) "
        ";; = __add__, __mul__ → = __add__, __mul__\n\nOneRuleForAll = Value": "Your product stores nodes in `locals`. "
        "Local derivatives are plain numbers: the `data` of the other factor.",
        "(self, right.data), (right, self.data) → (self, right.data * self.grad), (right, self.data * right.grad)": ""
        "The local derivatives of your product are 0. If you multiply them by a grad: every grad is still 0 in the "
        "forward pass. Store the other factor alone.",
        "return OneRuleForAll(self.data * right.data → if other is self:\n            return self.along(self.data**2, "
        "2 * self.data, '')\n        return OneRuleForAll(self.data * right.data": "Your a * a has one parent, with "
        "the local derivative 2a. List a twice, each time with the other factor as local derivative.",
        "n * self.data ** (n - 1) → self.data ** (n - 1)": "The derivative of aⁿ is n·aⁿ⁻¹. Yours lacks the factor n.",
        " if n else 0.0 → ": "For a = 0 and n = 0 you compute 0⁻¹, which divides by zero. a⁰ is the constant 1: its "
        "derivative is 0.",
        "if n else 0.0 → if self.data else 0.0": "At a = 0 your power has the derivative 0 whatever the exponent. "
        "The derivative of a¹ is 1 at 0, too; only a⁰ is constant.",
        "** (n - 1) → ** n": "The derivative of aⁿ is n·aⁿ⁻¹: the exponent falls by one. Yours is n·aⁿ.",
        "** (n - 1) → ** n - 1": "Your power subtracts 1 at the end: n·aⁿ − 1. The 1 belongs into the exponent: "
        "n·aⁿ⁻¹.",
        "self.along(self.data**n, n * self.data ** (n - 1) if n else 0.0 → OneRuleForAll(self.data**n, "
        "[(self, n * self.data ** (n - 1)), (self.leaf(n), 0.0)]": "Your power has two parents. The "
        "exponent is a plain number here: the only parent is a.",
        "return OneRuleForAll(self.data * right.data → self.grad += right.data; right.grad += self.data\n        "
        "return OneRuleForAll(self.data * right.data": "You change grad in the forward pass. Gradients arrive in the "
        "backward pass: leave grad at 0.",
        "along(e, e → along(e, self.data * e": "The derivative of exp is its result, eᵃ. Yours is eᵃ times a: a "
        "itself has the derivative 1.",
        "along(e, e → along(e, self.data": "The derivative of exp is its result, eᵃ. Yours is a, the input.",
        "along(e, e → along(e, self.data * math.exp(self.data - 1)": "exp is not a power: its derivative is eᵃ "
        "again, not a·eᵃ⁻¹.",
        "1 - t**2 → 1 - self.data**2": "Your tanh has the derivative 1 − a². It is 1 − tanh(a)²: square the result of "
        "the node, not its input.",
        "1 - t**2 → 1 - t": "Your tanh has the derivative 1 − tanh(a). The result is squared: 1 − tanh(a)².",
        "math.tanh(self.data) → (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)": _OVERFLOWS,
        "math.tanh(self.data) → 2 / (1 + math.exp(-2 * self.data)) - 1": _OVERFLOWS,
        "math.tanh(self.data) → math.sinh(self.data) / math.cosh(self.data)": _OVERFLOWS,
        "math.tanh(self.data) → 1.0 if abs(self.data) > 20 else math.tanh(self.data)": "Far from 0 your tanh is 1 on "
        "both sides. It has the sign of a: at −1000 it is −1.",
        "1.0 if self.data > 0 else 0.0 → 1.0": "relu passes the gradient on where the input is positive, and 0 "
        "elsewhere. Yours always passes it.",
        "1.0 if self.data > 0 else 0.0 → self.data": "The local derivative of relu is 1 where the input is positive, "
        "and 0 "
        "elsewhere. Yours is the input.",
        "return OneRuleForAll(self.data + right.data → self.grad += 1.0; right.grad += 1.0\n        return "
        "OneRuleForAll(self.data + right.data": "You change grad in the forward pass of a sum. Gradients arrive in the "
        "backward pass: leave grad at 0.",
        "1.0 if self.data > 0 else 0.0 → max(0.0, self.data)": "The local derivative of relu is 1 where the input is "
        "positive. Yours is the result of relu.",
        "self.data > 0 → self.data >= 0": "At 0 the local derivative of relu is 0 by convention, in PyTorch too. Yours "
        "is 1.",
        "for parent, _ in steps → for parent in dict(steps) ;; for _, local in steps → for local in "
        "dict(steps).values()": "A node whose two parents are the same, like a * a, lists it only once: do not keep "
        "the parents in a set or a dict.",
    },
)
