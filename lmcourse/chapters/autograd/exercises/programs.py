"""Scripts that pass graphs of the course's own nodes to an answer."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, edge, script


def sweep(name: str, lines: str, end: str, *nodes: str) -> Case:
    """A case that builds a graph of the course's nodes, goes back from `end`, and reads the gradients of `nodes`."""
    read = "\n".join(f"{node}.grad" for node in nodes)
    return script(name, f"from lmcourse.autograd import Value as Node\n{lines}\n_ = backpropagate({end})\n{read}")


def detour(name: str, x: float) -> Case:
    return sweep(name, f"x = Node({x})\nu = x * 2\nv = u.tanh()\nw = v * 3\nL = u + w + u * 5", "L", "L", "u", "x")


def beside(name: str, x: float) -> Case:
    lines = f"x = Node({x})\nu = x * 2\nbeside = u.exp() + x\nL = u * 5"
    return sweep(name, lines, "L", "u", "x", "beside")


def chain(name: str, n: int, factor: float) -> Case:
    """A graph of 2n nodes and n leaves in which x is used n times."""
    return edge(sweep(name, f"x = Node(0.5)\ny = x\nfor _ in range({n}):\n    y = y * {factor} + x", "y", "y", "x"))


def ladder(name: str, rungs: int) -> Case:
    """A case whose graph doubles the number of paths between its two ends with each rung."""
    return edge(sweep(name, f"x = Node(0.5)\ny = x\nfor _ in range({rungs}):\n    y = y + y * 0.5", "y", "x"))


def _random_graph(random: Random, length: int) -> Case:
    """A graph of about `length` operations on three leaves; every node may be used again. Values stay moderate."""
    names = ["a", "b", "c"]
    lines = [f"{name} = Node({round(random.uniform(-2, 2), 2)})" for name in names]
    for number in range(length):
        left, right = random.choice(names), random.choice(names)
        formulas = [
            f"{left} + {right}",
            f"{left} * {right} * 0.5",
            f"{left} - {right}",
            f"({left} + {right}).tanh()",
            f"({left} * 0.5).tanh().exp()",
            f"({left}.tanh() + 2) ** {random.choice([-1, 2, 0.5, 3])}",
            f"({left} + {round(random.uniform(-1, 1), 2)}).relu()",
            f"{left}.tanh() / ({right} ** 2 + 1)",
        ]
        lines.append(f"n{number} = {random.choice(formulas)}")
        names.append(f"n{number}")
    lines.append(f"L = {' + '.join(names)}")
    return sweep("other graphs", "\n".join(lines), "L", "a", "b", "c", "n0", "L")


def other_programs(random: Random) -> list[Case]:
    x, y = random.uniform(0.2, 0.9), random.uniform(-2.0, -0.2)
    return [
        *(_random_graph(Random(seed), length) for seed, length in ((1, 4), (2, 8), (3, 16))),
        sweep("a leaf alone", "x = Node(3)", "x", "x"),
        sweep("an end in the middle", f"x = Node({x})\nu = x * 3\nL = u * u", "u", "u", "x", "L"),
        detour("short ways and detours", y),
        beside("nodes that do not lead to the end", x),
        chain("long chains", 1_000, round(random.uniform(0.9, 0.99), 3)),
        # Last, because an answer that follows each path separately runs out of time.
        ladder("many paths", 40),
    ]
