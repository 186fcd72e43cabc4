"""The graphs of the exercise on the backward pass of any graph."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from lmcourse.exercises.cases import Case, case

Graph = dict[str, dict[str, float]]

DIAMOND: Graph = {"x": {}, "y": {"x": 4}, "u": {"y": 3}, "v": {"y": 8}, "L": {"u": 1, "v": 1}}
DETOUR: Graph = {"L": {"a": 2, "b": 3}, "a": {"x": 5}, "b": {"a": 7}, "x": {}}
"""a is one step from the end, and two steps by way of b. Continuing from it at the first visit is too early."""


def chain(length: int) -> Graph:
    """A chain of nodes n0, n1, …, each computed from the one before, listed in the order of computation."""
    names = [f"n{i}" for i in range(length)]
    return {names[0]: {}} | {name: {before: 1.0001} for before, name in pairwise(names)}


def shuffled(graph: Graph, random: Random) -> Graph:
    """The same graph, with its nodes listed in no order."""
    return {name: graph[name] for name in random.sample(list(graph), len(graph))}


def _random_graph(random: Random, size: int) -> Graph:
    """Return a random graph whose names are in no order: n7 may come before n2."""
    names = random.sample([f"n{i}" for i in range(size)], size)
    graph: Graph = {}
    for i, name in enumerate(names):
        parents = random.sample(names[:i], min(i, random.randint(1, 3)))
        graph[name] = {parent: _local(random) for parent in parents}
    return graph


def _local(random: Random) -> float:
    return round(random.choice([-1, 1]) * random.uniform(0.25, 2), 2)


def ladder(rungs: int) -> Graph:
    """A graph in which each rung doubles the number of paths between the two ends."""
    graph: Graph = {"n0": {}}
    for i in range(1, rungs + 1):
        graph |= {f"a{i}": {f"n{i - 1}": 0.75}, f"b{i}": {f"n{i - 1}": 0.5}, f"n{i}": {f"a{i}": 1.0, f"b{i}": 0.5}}
    return graph


def _others() -> list[Case]:
    """Graphs of fixed shapes: in all but one the end is the last node, in one it is in the middle."""
    random = Random(7)
    found = []
    for size in (6, 9, 9, 15):
        graph = _random_graph(random, size)
        found.append(case("other graphs", shuffled(graph, random), [*graph][-1]))
    middle = _random_graph(random, 9)
    return [*found, case("an end in the middle", shuffled(middle, random), [*middle][5])]


_OTHERS = _others()


def other_graphs(random: Random) -> list[Case]:
    """The fixed graphs, some with random local derivatives. Their shapes stay the same, so no mark depends on luck."""
    again = [
        case("other graphs", {node: {p: _local(random) for p in parents} for node, parents in graph.items()}, end)
        for graph, end in (other.args for other in _OTHERS[1:3])
    ]
    return [
        *_OTHERS,
        *again,
        case("other graphs", {"L": {"n": 2.0}, "p": {"x": 3.0}, "x": {}, "n": {"p": 5.0}}, "L"),
        case("local derivatives of zero", {"L": {"a": 1.0, "b": 3.0}, "a": {"c": 0.0}, "b": {"c": 2.0}, "c": {}}, "L"),
        case(
            "local derivatives of zero",
            {"L": {"a": 1, "b": 3}, "a": {"c": 0}, "b": {"c": 2}, "c": {"x": 5}, "x": {}},
            "L",
        ),
        case("paths that cancel", {"x": {}, "a": {"x": 2.0}, "b": {"x": -2.0}, "L": {"a": 1.0, "b": 1.0}}, "L"),
        case("paths that cancel", {"L": {"a": 1, "b": -1}, "a": {"c": 2}, "b": {"c": 2}, "c": {"x": 5}, "x": {}}, "a"),
        case("tiny derivatives", {"L": {"y": 3.0}, "y": {"x": 1e-9}, "x": {}}, "L"),
        case("a single node", {"x": {}}, "x"),
        case("a single node", {"y": {"x": 3.0}, "x": {}}, "x"),
        case("long chains", shuffled(chain(12_000), Random(7)), "n11999"),
        # Last, because an answer that follows each path separately runs out of time.
        case("many paths", shuffled(ladder(40), Random(7)), "n40"),
    ]
