"""The exercise on the backward pass of any graph, given as plain data."""

from __future__ import annotations

from collections import deque
from graphlib import TopologicalSorter
from itertools import pairwise
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD

Grads = dict[str, float]
Graph = dict[str, dict[str, float]]

DIAMOND: Graph = {"x": {}, "y": {"x": 4}, "u": {"y": 3}, "v": {"y": 8}, "L": {"u": 1, "v": 1}}
DETOUR: Graph = {"L": {"a": 2, "b": 3}, "a": {"x": 5}, "b": {"a": 7}, "x": {}}
"""a is one step from the end, and two steps by way of b: who goes on from it at the first visit goes too early."""


def _sweep_in_order(graph: Graph, end: str, order: list[str]) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in order:
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
    return grads


def _sorted_by_the_library(graph: Graph, end: str) -> Grads:
    return _sweep_in_order(graph, end, [*TopologicalSorter(graph).static_order()][::-1])


def _chain(length: int) -> Graph:
    names = [f"n{i}" for i in range(length)]
    return {names[0]: {}} | {name: {before: 1.0001} for before, name in pairwise(names)}


def _shuffled(graph: Graph, random: Random) -> Graph:
    return {name: graph[name] for name in random.sample(list(graph), len(graph))}


def _random_graph(random: Random, size: int) -> Graph:
    graph: Graph = {}
    for i in range(size):
        parents = random.sample(list(graph), min(i, random.randint(1, 3)))
        graph[f"n{i}"] = {parent: round(random.uniform(-2, 2), 2) for parent in parents}
    return graph


def _graphs(random: Random) -> list[Case]:
    others = [_shuffled(_random_graph(random, size), random) for size in (6, 9, 15)]
    cases = [case("other graphs", graph, f"n{len(graph) - 1}") for graph in others]
    beside = _random_graph(random, 8)
    ladder: Graph = {"n0": {}}
    for i in range(1, 13):
        ladder |= {f"a{i}": {f"n{i - 1}": random.uniform(0.5, 1)}, f"b{i}": {f"n{i - 1}": random.uniform(0.5, 1)}}
        ladder[f"n{i}"] = {f"a{i}": 1.0, f"b{i}": -0.5}
    return [
        *cases,
        case("an end in the middle", _shuffled(beside, random), "n4"),
        case("many paths", _shuffled(ladder, random), "n12"),
        case("long chains", _shuffled(_chain(3500), random), "n3499"),
        case("a single node", {"x": {}}, "x"),
    ]


backward_sweep = Exercise(
    "backward_sweep",
    points=3,
    minutes=10,
    difficulty=3,
    reference=_sorted_by_the_library,
    cases=[
        case("a chain of three", {"x": {}, "y": {"x": 6.0}, "L": {"y": 2.0}}, "L"),
        case("one node, two paths", DIAMOND, "L"),
        case("a short way and a detour", DETOUR, "L"),
        case("a node that does not lead to L", {"x": {}, "other": {"x": 5.0}, "L": {"x": 3.0}}, "L"),
        case("a chain of 4,000, no recursion", _chain(4000), "n3999"),
    ],
    hidden_cases=_graphs,
    hints=[
        "All gradients start at 0, that of the end at 1. A node may hand its gradient on once it is complete: when "
        "every node that uses it has handed on its own.",
        "Count for each node how many others use it. Start with those nobody uses; each time a node hands on, its "
        "parents' counts go down by one; who reaches 0 is ready.",
        "uses = Counter(parent for parents in graph.values() for parent in parents), and a list of ready nodes that "
        "you pop from in a while loop. A recursive function would end at Python's limit of about 1,000 calls.",
    ],
    forbid=["graphlib", *NO_AUTOGRAD],
)


def _first_visits(graph: Graph, end: str) -> list[str]:
    """Nodes by their distance from the end: every node when it is reached first."""
    order, waiting = {end: None}, deque([end])
    while waiting:
        for parent in graph[waiting.popleft()]:
            if parent not in order:
                order[parent] = None
                waiting.append(parent)
    return [*order]


def _right_order(graph: Graph) -> list[str]:
    return [*TopologicalSorter(graph).static_order()][::-1]


@backward_sweep.misconception(
    "A node that is used twice keeps only one of its two gradients: you overwrite where you should add."
)
def overwritten(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in _right_order(graph):
        for parent, local in graph[node].items():
            grads[parent] = grads[node] * local
    return grads


@backward_sweep.misconception("All gradients are 0, because none was there to begin with: ∂L/∂L = 1.")
def without_a_seed(graph: Graph, end: str) -> Grads:
    return dict.fromkeys(graph, 0.0)


@backward_sweep.misconception(
    "You go by distance from the end, and a node hands on what it has at the first visit. What reaches it later, by a "
    "longer way, is lost: wait until it is complete."
)
def at_the_first_visit(graph: Graph, end: str) -> Grads:
    return _sweep_in_order(graph, end, _first_visits(graph, end))


@backward_sweep.misconception(
    "You rely on the order in which the dictionary lists the nodes. It may be any order: find one in which every node "
    "comes before its parents."
)
def in_the_order_given(graph: Graph, end: str) -> Grads:
    return _sweep_in_order(graph, end, [*graph][::-1])


@backward_sweep.misconception("Along a path derivatives are multiplied; you add them.")
def sums_along_a_path(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in _right_order(graph):
        for parent, local in graph[node].items():
            grads[parent] += grads[node] + local
    return grads


@backward_sweep.misconception(
    "Nodes that do not lead to the end are missing. Nothing depends on them, so their gradient is 0."
)
def only_what_leads_to_the_end(graph: Graph, end: str) -> Grads:
    reached = set(_first_visits(graph, end))
    return {node: grad for node, grad in _sorted_by_the_library(graph, end).items() if node in reached}


@backward_sweep.misconception(
    "Each parent gets only the derivative of the last step. It has to be multiplied by the gradient that arrived."
)
def last_step_only(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in set(_first_visits(graph, end)):
        for parent, local in graph[node].items():
            grads[parent] += local
    return grads
