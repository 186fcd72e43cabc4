"""The exercise on the backward pass of any graph, given as plain data."""

from __future__ import annotations

from collections import Counter
from graphlib import TopologicalSorter
from random import Random

from lmcourse.chapters.autograd.exercises.graphs import DETOUR, DIAMOND, Graph, chain, ladder, other_graphs, shuffled
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD


def _sorted_by_the_library(graph: Graph, end: str) -> dict[str, float]:
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in reversed([*TopologicalSorter(graph).static_order()]):
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
    return grads


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
        case(
            "listed in no order",
            {"x": {}, "L": {"z": 5.0, "y": 2.0}, "y": {"x": 6.0}, "z": {"y": 3.0}},
            "L",
        ),
        case(
            "a gradient of 0 on the way",
            {"w": {}, "x": {"w": 4.0}, "a": {"x": 3.0}, "b": {"x": 6.0}, "L": {"a": 2.0, "b": 0.0}},
            "L",
        ),
        case("`other` does not lead to L", {"x": {}, "y": {"x": 2.0}, "other": {"y": 5.0}, "L": {"y": 3.0}}, "L"),
        case("a chain of 12,000: no recursion, each edge once", shuffled(chain(12_000), Random(8)), "n11999"),
        case("forty fan-outs in a row", ladder(40), "n40"),
    ],
    hidden_cases=other_graphs,
    hints=[
        "All gradients start at 0, except the end's, which is 1. A node may pass its gradient on once it is complete: "
        "when every node that uses it has passed on its own gradient.",
        "Count for each node how many others use it. Start with the nodes that no other node uses; each time a node "
        "passes its gradient on, its parents' counts go down by one. A node whose count is 0 is ready.",
        "uses = Counter(parent for parents in graph.values() for parent in parents), and a list of ready nodes that "
        "you pop from in a while loop. A recursive function would end at Python's limit of about 1,000 calls.",
    ],
    forbid=["graphlib", "networkx", ".setrecursionlimit", *NO_AUTOGRAD],
)


@backward_sweep.variant
def depth_first_without_recursion(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    order, seen, stack = [], set(), [(end, False)]
    while stack:
        node, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in graph[node])
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    for node in reversed(order):
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
    return grads


backward_sweep.slips(
    depth_first_without_recursion,
    {
        "grads[parent] += → grads[parent] = ;; reversed(order) → "
        "reversed([*TopologicalSorter(graph).static_order()])": "A node that is used twice keeps only one of its two "
        "gradients: you overwrite where you should add.",
        "grads[parent] += → grads[parent] =": "You replace the gradient that a node has when a second one arrives. The "
        "gradients of both uses add up: +=.",
        "stack.pop() → stack.pop(0) ;; stack.append((node, True)) → order.append(node) ;; "
        "reversed(order) → order": "You visit nodes by distance from the end, and a node passes on its gradient at the "
        "first visit. What reaches it later, by a longer way, is not passed on: wait until it is complete.",
        "reversed(order) → reversed(graph)": "You rely on the order in which the dictionary lists the nodes. It may be "
        "any order: find one in which every node comes before its parents.",
        "dict.fromkeys(graph, 0.0) → dict.fromkeys(seen, 0.0)": "Nodes that do not lead to the end are missing. The "
        "end does not depend on them, so their gradient is 0.",
        "grads[node] * local → local": "Each parent gets only the derivative of the last step. Multiply it by the "
        "gradient that arrived.",
    },
)


@backward_sweep.variant
def uses_counted(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    uses = Counter(parent for parents in graph.values() for parent in parents)
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    ready = [node for node in graph if not uses[node]]
    while ready:
        node = ready.pop()
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
            uses[parent] -= 1
            if not uses[parent]:
                ready.append(parent)
    return grads


backward_sweep.slips(
    uses_counted,
    {
        "grads[parent] += → if grads[node]: grads[parent] =": "A node that is used twice keeps only the gradient that "
        "arrives last: write += where you have =.",
        "node = ready.pop() → node = ready.pop()\n        if not grads[node] and any(node in users for users in "
        "graph.values()):\n            continue": "You skip a node whose gradient is 0, and its parents wait for it "
        "forever. It must pass on its 0: only then are they complete.",
        " | {end: 1.0} → ": "All gradients are 0, because none was set at the start: ∂L/∂L = 1.",
        "[node for node in graph if not uses[node]] → [end] ;; ready.pop() → ready.pop(0) ;; not uses[parent] → parent "
        "not in ready": "A node that you visit twice passes on its whole gradient twice. Wait until it is complete, "
        "and pass it on once.",
        "[node for node in graph if not uses[node]] → [end]": "You also count uses by nodes that do not lead to the "
        "end. They never pass on a gradient, so the nodes they use wait forever. Count only uses by nodes that lead to "
        "the end.",
        "grads[node] * local → grads[node] + local": "Along a path derivatives are multiplied; you add them.",
        "[node for node in graph if not uses[node]] → [end]\n    seen = {end} ;; not uses[parent] → parent not in seen "
        ";; ready.append(parent) → ready.append(parent); seen.add(parent)": "A node passes on its gradient as soon as "
        "you take it from the stack. What other nodes send it later is not passed on: wait until it is complete.",
        "dict.fromkeys(graph, 0.0) | {end: 1.0} → {node: float(not uses[node]) for node in graph}": "You start with a "
        "gradient of 1 at every node that no other uses. Only the end starts with 1, all others with 0.",
    },
)
