"""The exercise on the backward pass of any graph, given as plain data."""

from __future__ import annotations

from collections import Counter, deque
from graphlib import TopologicalSorter

import numpy as np

from lmcourse.chapters.autograd.exercises.graphs import DETOUR, DIAMOND, Graph, chain, ladder, other_graphs
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD

Grads = dict[str, float]


def _sweep_in_order(graph: Graph, end: str, order: list[str]) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in order:
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
    return grads


def _sorted_by_the_library(graph: Graph, end: str) -> Grads:
    return _sweep_in_order(graph, end, [*TopologicalSorter(graph).static_order()][::-1])


backward_sweep = Exercise(
    "backward_sweep",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_sorted_by_the_library,
    cases=[
        case("a chain of three", {"x": {}, "y": {"x": 6.0}, "L": {"y": 2.0}}, "L"),
        case("one node, two paths", DIAMOND, "L"),
        case("a short way and a detour", DETOUR, "L"),
        case("`other` does not lead to L", {"x": {}, "y": {"x": 2.0}, "other": {"y": 5.0}, "L": {"y": 3.0}}, "L"),
        case("a chain of 4,000, no recursion", chain(4000), "n3999"),
        case("forty fan-outs in a row", ladder(40), "n40"),
    ],
    hidden_cases=other_graphs,
    hints=[
        "All gradients start at 0, except the end's, which is 1. A node may pass its gradient on once it is complete: "
        "when every node that uses it has passed on its own.",
        "Count for each node how many others use it. Start with the nodes that no other node uses; each time a node "
        "passes its gradient on, its parents' counts go down by one. A node whose count is 0 is ready.",
        "uses = Counter(parent for parents in graph.values() for parent in parents), and a list of ready nodes that "
        "you pop from in a while loop. A recursive function would end at Python's limit of about 1,000 calls.",
    ],
    forbid=["graphlib", "networkx", *NO_AUTOGRAD],
)


@backward_sweep.variant
def depth_first_without_recursion(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    order, done, stack = [], set(), [(end, iter(graph[end]))]
    while stack:
        node, parents = stack[-1]
        parent = next((each for each in parents if each not in done), None)
        if parent is not None:
            stack.append((parent, iter(graph[parent])))
        else:
            stack.pop()
            if node not in done:
                done.add(node)
                order.append(node)
    grads: dict[str, float] = dict.fromkeys(graph, 0)
    grads[end] = 1
    while order:
        node = order.pop()
        for parent, local in graph[node].items():
            grads[parent] = grads[parent] + local * grads[node]
    return grads


@backward_sweep.variant
def counts_among_those_that_lead_to_the_end(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    used_by: dict[str, int] = {}
    seen, waiting = {end}, [end]
    while waiting:
        for parent in graph[waiting.pop()]:
            used_by[parent] = used_by.get(parent, 0) + 1
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    grads: dict[str, float] = {node: np.float64(node == end) for node in graph}
    ready = deque([end])
    while ready:
        node = ready.popleft()
        for parent in graph[node]:
            grads[parent] += graph[node][parent] * grads[node]
            used_by[parent] -= 1
            if not used_by[parent]:
                ready.append(parent)
    return grads


@backward_sweep.variant
def each_node_asks_its_children(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    children: dict[str, list[str]] = {node: [] for node in graph}
    for node, parents in graph.items():
        for parent in parents:
            children[parent].append(node)
    known: dict[str, float] = {}
    for start in graph:
        asked = [start]
        while asked:
            missing = [child for child in children[asked[-1]] if child not in known]
            if missing:
                asked += missing
            else:
                node = asked.pop()
                known[node] = (node == end) + sum(graph[child][node] * known[child] for child in children[node])
    return known


@backward_sweep.variant
def distances_of_the_longest_paths(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    uses = dict.fromkeys(graph, 0)
    for parents in graph.values():
        for parent in parents:
            uses[parent] += 1
    level = [node for node in graph if not uses[node]]
    grads = {node: 1.0 if node == end else 0.0 for node in graph}
    while level:
        after = []
        for node in level:
            for parent, local in graph[node].items():
                grads[parent] += local * grads[node]
                uses[parent] -= 1
                if uses[parent] == 0:
                    after.append(parent)
        level = after
    return grads


def _first_visits(graph: Graph, end: str) -> list[str]:
    """Return the nodes in the order in which a search from the end first reaches them."""
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


@backward_sweep.misconception(
    "A node that is used twice keeps only the gradient that arrives last: write += where you have =."
)
def overwritten_in_another_order(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    uses = Counter(parent for parents in graph.values() for parent in parents)
    ready = [node for node in graph if not uses[node]]
    while ready:
        node = ready.pop()
        for parent, local in graph[node].items():
            if grads[node]:
                grads[parent] = grads[node] * local
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)
    return grads


@backward_sweep.misconception("All gradients are 0, because none was set at the start: ∂L/∂L = 1.")
def without_a_seed(graph: Graph, end: str) -> Grads:
    return dict.fromkeys(graph, 0.0)


@backward_sweep.misconception(
    "You visit nodes by distance from the end, and a node passes on its gradient at the first visit. What reaches it "
    "later, by a longer way, is not passed on: wait until it is complete."
)
def at_the_first_visit(graph: Graph, end: str) -> Grads:
    return _sweep_in_order(graph, end, _first_visits(graph, end))


@backward_sweep.misconception(
    "A node that you visit twice passes on its whole gradient twice. Wait until it is complete, and pass it on once."
)
def at_every_visit(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    waiting = deque([end])
    while waiting:
        node = waiting.popleft()
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
            if parent not in waiting:
                waiting.append(parent)
    return grads


@backward_sweep.misconception(
    "You rely on the order in which the dictionary lists the nodes. It may be any order: find one in which every node "
    "comes before its parents."
)
def in_the_order_given(graph: Graph, end: str) -> Grads:
    return _sweep_in_order(graph, end, [*graph][::-1])


@backward_sweep.misconception(
    "You also count uses by nodes that do not lead to the end. They never pass on a gradient, so the nodes they use "
    "wait forever. Count only uses by nodes that lead to the end."
)
def waits_for_nodes_beside(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    uses = Counter(parent for parents in graph.values() for parent in parents)
    ready = [end]
    while ready:
        node = ready.pop()
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
            uses[parent] -= 1
            if uses[parent] == 0:
                ready.append(parent)
    return grads


@backward_sweep.misconception("Along a path derivatives are multiplied; you add them.")
def sums_along_a_path(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in _right_order(graph):
        for parent, local in graph[node].items():
            grads[parent] += grads[node] + local
    return grads


@backward_sweep.misconception(
    "Nodes that do not lead to the end are missing. The end does not depend on them, so their gradient is 0."
)
def only_what_leads_to_the_end(graph: Graph, end: str) -> Grads:
    reached = set(_first_visits(graph, end))
    return {node: grad for node, grad in _sorted_by_the_library(graph, end).items() if node in reached}


@backward_sweep.misconception(
    "Each parent gets only the derivative of the last step. Multiply it by the gradient that arrived."
)
def last_step_only(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in _first_visits(graph, end):
        for parent, local in graph[node].items():
            grads[parent] += local
    return grads


def _depth_first(graph: Graph, end: str) -> list[str]:
    """The nodes that the end depends on, each before its parents."""
    order, seen, stack = [], set(), [(end, False)]
    while stack:
        node, listed = stack.pop()
        if listed:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack += [(node, True), *((parent, False) for parent in graph[node])]
    return order[::-1]


@backward_sweep.misconception(
    "You replace the gradient that a node has when a second one arrives. The gradients of both uses add up: +=."
)
def replaced(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in _depth_first(graph, end):
        for parent, local in graph[node].items():
            grads[parent] = grads[node] * local
    return grads


@backward_sweep.misconception(
    "A node passes on its gradient as soon as you take it from the stack. What other nodes send it later is not passed "
    "on: wait until it is complete."
)
def from_the_stack_at_once(graph: Graph, end: str) -> Grads:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    stack, seen = [end], {end}
    while stack:
        node = stack.pop()
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return grads


@backward_sweep.misconception(
    "You start with a gradient of 1 at every node that no other uses. Only the end starts with 1, all others with 0."
)
def several_ends(graph: Graph, end: str) -> Grads:
    used = {parent for parents in graph.values() for parent in parents}
    grads = {node: float(node not in used) for node in graph}
    for node in _right_order(graph):
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
    return grads
