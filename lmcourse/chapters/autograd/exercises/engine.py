"""The exercise on the scalar engine: a class, driven by scripts."""

from __future__ import annotations

from collections import deque

from lmcourse.chapters.autograd.exercises.engines import Engine, TorchValue
from lmcourse.chapters.autograd.exercises.programs import BESIDE, CHAIN, DETOUR, other_programs
from lmcourse.chapters.autograd.exercises.right_engines import RIGHT_ENGINES
from lmcourse.exercises.cases import script
from lmcourse.exercises.exercise import Exercise

Value = Exercise(
    "Value",
    points=5,
    minutes=18,
    difficulty=3,
    reference=TorchValue,
    cases=[
        script("a sum", "a = Value(2.0)\nb = Value(3.0)\nc = a + b\nc.backward()\nc.data\nc.grad\na.grad\nb.grad"),
        script("a product", "a = Value(2.0)\nb = Value(3.0)\nc = a * b\nc.backward()\nc.data\na.grad\nb.grad"),
        script("numbers on either side", "a = Value(4.0)\nc = 3 * a + 1\nc.backward()\nc.data\na.grad"),
        script("a power", "a = Value(3.0)\nc = a ** 2 + a ** -1\nc.backward()\nc.data\na.grad"),
        script("exp and tanh", "a = Value(0.5)\nc = a.exp() * 2 + a.tanh()\nc.backward()\nc.data\na.grad"),
        script("relu", "a = Value(-2.0)\nb = Value(2.0)\nc = a.relu() * 5 + b.relu()\nc.backward()\na.grad\nb.grad"),
        script("a chain of three", "x = Value(2.0)\ny = x * 3\nL = y * y\nL.backward()\ny.grad\nx.grad"),
        script("used twice by one node", "a = Value(3.0)\nc = a * a + (a + a)\nc.backward()\na.grad"),
        script("a short way and a detour", f"x = Value(0.25)\n{DETOUR}"),
        script("a node beside the end", BESIDE.format(x=0.5)),
        script("a chain of 10,000 nodes, no recursion", CHAIN.format(n=5_000, factor=0.95)),
    ],
    hidden_cases=other_programs,
    hints=[
        "Each operation knows its local derivatives while it runs: a + b has 1 and 1, a * b has b.data and a.data. "
        "Store them next to the parents.",
        "tanh: 1 − tanh², with the *result*. exp: the result itself. x ** n: n · x ** (n − 1). relu: 1 if x > 0, else "
        "0.",
        "backward: find an order in which every node comes before its parents (count the uses, as in the last "
        "exercise, but only among nodes that lead to this one). Set self.grad = 1.0, then add node.grad * local to "
        "each parent's grad.",
    ],
    forbid=["torch", "graphlib"],
)


Value.equivalent_mutant(
    "return Value(max(self.data, 0.0), (self,), (float(self.data > 0),)) → "
    "return Value(max(0.0, self.data), (self,), (float(self.data > 0),))",
    "They differ for NaN alone, of which nothing is said.",
)
Value.equivalent_mutant("return self * -1 → return self / -1", "Dividing by −1 is multiplying by −1.")
Value.equivalent_mutant(
    "for node in reversed(order): → for node in list(reversed(order))[:-1]:",
    "The last node of the order is a leaf, which hands nothing on.",
)


for right_engine in RIGHT_ENGINES:
    Value.variant(right_engine)


@Value.misconception(
    "A node that is used twice keeps only one of its gradients: use += where you write a parent's grad."
)
class Overwrites(Engine):
    collected = staticmethod(lambda before, arriving, local: arriving * local)


@Value.misconception(
    "A node that is also used beside the end never becomes ready: you count that use, and nobody takes it off again. "
    "Count in `backward`, among the nodes that lead to the end."
)
class CountsAllUses(Engine):
    def node(self, data: float, *edges: tuple[Engine, float]) -> Engine:
        for parent, _ in edges:
            parent.uses += 1
        return super().node(data, *edges)

    def order(self) -> list[Engine]:
        order: list[Engine] = []
        ready: list[Engine] = [self]
        while ready:
            order.append(ready.pop())
            for parent, _ in order[-1].edges:
                parent.uses -= 1
                if parent.uses == 0:
                    ready.append(parent)
        return order


@Value.misconception("You add the local derivative alone. Multiply it by the gradient of the node it comes from.")
class LocalDerivativeOnly(Engine):
    collected = staticmethod(lambda before, arriving, local: before + local)


@Value.misconception("Every gradient is 0: backward has to start by setting its own grad to 1.")
class NoSeed(Engine):
    def backward(self) -> None:
        pass


@Value.misconception(
    "You walk back level by level, and a node hands on its gradient when it is first reached. What arrives later, by a "
    "longer way, never gets further: put the nodes in order first."
)
class BreadthFirst(Engine):
    def order(self) -> list[Engine]:
        found: dict[Engine, None] = {self: None}
        waiting: deque[Engine] = deque([self])
        while waiting:
            for parent, _ in waiting.popleft().edges:
                if parent not in found:
                    found[parent] = None
                    waiting.append(parent)
        return [*found]


@Value.misconception(
    "In a product each factor gets its own value as local derivative. It is the other one: ∂(a·b)/∂a = b."
)
class OwnFactor(Engine):
    def __mul__(self, other: Engine | float) -> Engine:
        right = self.of(other)
        return self.node(self.data * right.data, (self, self.data), (right, right.data))

    __rmul__ = __mul__


@Value.misconception(
    "Your tanh has the derivative 1 − x². It is 1 − tanh(x)²: square the result of the node, not its input."
)
class TanhOfTheInput(Engine):
    def tanh(self) -> Engine:
        return self.node(super().tanh().data, (self, 1 - self.data**2))


@Value.misconception("The derivative of xⁿ is n·xⁿ⁻¹. Yours lacks the factor n.")
class PowerWithoutFactor(Engine):
    def power_slope(self, exponent: float) -> float:
        return float(self.data ** (exponent - 1))


@Value.misconception(
    "relu passes the gradient on where the input is positive, and 0 elsewhere. Yours always passes it."
)
class ReluPassesAll(Engine):
    def relu(self) -> Engine:
        return self.node(max(self.data, 0.0), (self, 1.0))


@Value.misconception("exp is not a power: its derivative is exp(x) again, not x·exp(x − 1) or x·exp(x).")
class ExpWithFactor(Engine):
    def exp(self) -> Engine:
        result = super().exp().data
        return self.node(result, (self, self.data * result))


@Value.misconception(
    "A node whose two parents are the same, like a * a, hands its gradient on only once: do not keep the parents in a "
    "set or a dict."
)
class ParentsInASet(Engine):
    def node(self, data: float, *edges: tuple[Engine, float]) -> Engine:
        return super().node(data, *dict(edges).items())


@Value.misconception(
    "Every gradient is too large, because all start at 1. Only that of the end does; all others start at 0."
)
class EveryoneGetsOne(Engine):
    def __init__(self, data: float, edges: tuple[tuple[Engine, float], ...] = ()) -> None:
        super().__init__(data, edges)
        self.grad = 1.0
