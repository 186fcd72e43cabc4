"""The scripts that drive a scalar engine."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, script

DETOUR = "u = x * 2\nv = u.tanh()\nw = v * 3\nL = u + w\nL.backward()\nL.data\nu.grad\nx.grad"
ALL = "x = Value({x})\ny = ((x ** 3).tanh() + x.exp() * x.relu()) / (2 - x * 0.1)\ny.backward()\ny.data\nx.grad"
CHAIN = "x = Value(0.5)\ny = x\nfor _ in range({n}):\n    y = y * {factor} + x\ny.backward()\ny.data\nx.grad"


def _random_program(random: Random, length: int) -> str:
    """A script of `length` operations on three leaves; every node may be used again. Values stay moderate."""
    names = ["a", "b", "c"]
    lines = [f"{name} = Value({round(random.uniform(-2, 2), 2)})" for name in names]
    for number in range(length):
        left, right = random.choice(names), random.choice(names)
        lines.append(
            f"n{number} = "
            + random.choice(
                [
                    f"{left} + {right}",
                    f"{left} * {right} * 0.5",
                    f"{left} - {right}",
                    f"({left} + {right}).tanh()",
                    f"({left} * 0.5).tanh().exp()",
                    f"({left}.tanh() + 2) ** {random.choice([-1, 2, 0.5, 3])}",
                    f"({left} + {round(random.uniform(-1, 1), 2)}).relu()",
                    f"{left}.tanh() / ({right} ** 2 + 1)",
                ]
            )
        )
        names.append(f"n{number}")
    lines.append(f"L = {' + '.join(names)}")
    return "\n".join([*lines, "L.backward()", "L.data", "a.grad", "b.grad", "c.grad", "n0.grad"])


GIVEN = "a = Value(3.0)\nb = Value(-4.0)\nc = {formula}\nc.backward()\nc.data\na.grad\nb.grad"
BESIDE = "x = Value({x})\nu = x * 2\nbeside = u.exp() + x\nL = u * 5\nL.backward()\nu.grad\nx.grad\nbeside.grad"
RELU = "a = Value({a})\nb = a.relu()\nL = b * 3 + a\nL.backward()\nb.data\nb.grad\na.grad"

_FORMULAS = ("-a * b", "a - b * 2", "a - 5", "7 - a * b", "a / b", "b / 8", "6 / b", "0.5 + b * a", "a + 0 * b")

_FIXED = [
    *(script("random graphs", _random_program(Random(seed), length)) for seed, length in ((1, 4), (2, 8), (3, 16))),
    *(script("all operations", ALL.format(x=x)) for x in (0.7, -1.3)),
    *(script("what is given", GIVEN.format(formula=formula)) for formula in _FORMULAS),
    *(script("relu", RELU.format(a=a)) for a in (0.0, 0.5, -0.5)),
    script("powers of zero", "x = Value(0.0)\nL = x ** 2 + x ** 1 * 3\nL.backward()\nL.data\nx.grad"),
    script("a leaf alone", "x = Value(3)\nx.grad\nx.backward()\nx.data\nx.grad"),
]
# The last, because who follows each path by itself runs out of time.
_MANY_PATHS = script(
    "many paths", "x = Value(0.5)\ny = x\nfor _ in range(40):\n    y = y + y * 0.5\ny.backward()\ny.data\nx.grad"
)


def other_programs(random: Random) -> list[Case]:
    x, y = random.uniform(0.2, 0.9), random.uniform(-2.0, -0.2)
    return [
        *_FIXED,
        *(script("all operations", ALL.format(x=x)) for x in (x, y)),
        script("short ways and detours", f"x = Value({y})\n{DETOUR}"),
        script("nodes beside the loss", BESIDE.format(x=x)),
        script("long chains", CHAIN.format(n=1_000, factor=round(random.uniform(0.9, 0.99), 3))),
        _MANY_PATHS,
    ]
