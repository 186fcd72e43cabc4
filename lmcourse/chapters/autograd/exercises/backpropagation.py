"""The exercise on the backward pass of an engine: a sweep over the nodes that lead to the end."""

from __future__ import annotations

from collections import deque
from typing import Any

from lmcourse.chapters.autograd.exercises.programs import beside, chain, detour, ladder, other_programs, sweep
from lmcourse.exercises.exercise import Exercise


def _by_the_course(end: Any) -> None:
    end.backward()


backpropagate = Exercise(
    "backpropagate",
    points=2,
    minutes=10,
    difficulty=2,
    reference=_by_the_course,
    cases=[
        sweep("a chain of three", "x = Node(2.0)\ny = x * 3\nL = y ** 2", "L", "L", "y", "x"),
        sweep("one node, two paths", "x = Node(2.0)\ny = x ** 2\nL = y * 3 + y ** 2", "L", "y", "x"),
        sweep(
            "used twice by one node",
            "x = Node(0.5)\na = x * 2\nL = (a * 3).tanh().tanh() + a * a + (a + a).exp()",
            *("L", "a", "x"),
        ),
        detour("a short way and a detour", 0.25),
        sweep("two detours", "x = Node(0.5)\na = x * 3\nb = a + x\nL = b * a + b.tanh() * a", "L", "b", "a", "x"),
        beside("a node that does not lead to the end", 0.5),
        sweep("a gradient of 0 on the way", "x = Node(-1.0)\ny = x * 3\nL = (y + 1).relu() * 5 + y * 2", "L", "y", "x"),
        chain("a chain of 10,000 nodes, no recursion", 3_333, 0.95),
        ladder("forty fan-outs in a row", 40),
    ],
    hidden_cases=other_programs,
    hints=[
        "A node may pass its gradient on once it is complete. Each node knows its parents, zip(node.parents, "
        "node.locals), but not the nodes that use it. Find out first.",
        "First visit everything that the end depends on, with a stack and a set of visited nodes. Meanwhile count how "
        "often each node is used: only these uses count.",
        "Then end.grad = 1.0, and a list of ready nodes: take one, add parent.grad += node.grad * local for each of "
        "its parents, and count that use as done. A parent without open uses is ready.",
    ],
    forbid=["torch", "graphlib", "networkx", ".backward", ".setrecursionlimit"],
    seconds=6.0,
)


@backpropagate.variant
def counts_on_the_nodes(end: Any) -> None:
    end.uses, found, waiting = 0, [end], deque([end])
    while waiting:
        for parent in waiting.popleft().parents:
            if not hasattr(parent, "uses"):
                parent.uses = 0
                found.append(parent)
                waiting.append(parent)
            parent.uses += 1
    for node in found:
        node.grad = 0.0
    end.grad, ready = 1.0, [end]
    for node in ready:
        for parent, local in zip(node.parents, node.locals, strict=True):
            parent.grad += local * node.grad
            parent.uses -= 1
            if not parent.uses:
                ready.append(parent)


@backpropagate.variant
def depth_first(end: Any) -> None:
    order, seen, stack = [], set(), [(end, False)]
    while stack:
        node, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in node.parents)
    end.grad = 1.0
    for node in reversed(order):
        for parent, local in zip(node.parents, node.locals, strict=True):
            parent.grad += node.grad * local


backpropagate.slips(
    depth_first,
    {
        "parent.grad += → parent.grad = ;; in node.parents → in reversed(node.parents)": "A node that is used twice "
        "keeps only one of its gradients: use += where you write a parent's grad.",
        "node.grad * local → node.grad * parent.data": "You multiply by the data of the parent. Multiply by the local "
        "derivative: `node.locals` has one for each parent.",
        "elif node not in seen → else ;; for parent in node.parents) → for parent in node.parents if parent not in "
        "seen)": "A node that waits twice on your stack comes twice in your order, and passes its gradient on twice. "
        "List each node once.",
        "elif node not in seen → elif node.data not in seen ;; seen.add(node) → seen.add(node.data)": "You know a "
        "visited node by its data, and two nodes may have the same number. Remember the nodes themselves.",
        "node.grad * local → local": "You add the local derivative alone. Multiply it by the gradient of the node that "
        "passes it back.",
        "end.grad = 1.0 → end.grad = 0.0": "Every gradient is 0: begin with end.grad = 1.",
        "stack.pop() → stack.pop(0) ;; stack.append((node, True)) → order.append(node) ;; "
        "reversed(order) → order": "You visit nodes by distance from the end, and a node passes on its gradient "
        "at the first visit. What reaches it later, by a longer way, is not passed on: wait until it is complete.",
        "stack.append((node, True)) → order.append(node) ;; reversed(order) → order": "A node passes on its gradient "
        "as soon as you take it from the stack. What other nodes send it later is not passed on: wait until it is "
        "complete.",
        "for node in reversed(order): → def go(node: Any) -> None: ;; node.grad * local → node.grad * local\n          "
        "  go(parent)\n\n    go(end)": "Each time a gradient arrives, the node passes on everything collected so far, "
        "so the first part is passed on twice. Wait until it is complete, and pass it on once.",
        "zip(node.parents, node.locals, strict=True) → dict(zip(node.parents, node.locals)).items()": "A node whose "
        "two parents are the same, like a * a, passes its gradient on only once: do not put the parents into a set or "
        "a dict.",
        "node.grad * local → node.grad + local": "Along a path derivatives are multiplied; you add them.",
        "parent.grad += → parent.grad =": "You replace the grad that a parent has when a second gradient arrives. The "
        "gradients of all uses add up: +=.",
        "reversed(order) → order": "Only the end and its direct parents get a gradient, and it is not passed on. Go "
        "from the end towards the inputs, and let every node pass on its own gradient.",
        "end.grad = 1.0 → end.grad = end.data": "You start with end.grad = end.data. The derivative of the end with "
        "respect to itself is 1.",
    },
)
backpropagate.slips(
    counts_on_the_nodes,
    {
        "in waiting.popleft().parents → in set(waiting.popleft().parents)": "You count each user of a node once, but "
        "a * a uses a twice. Then a is ready too early: count every place among the parents.",
        "in ready → in filter(lambda node: node.grad, ready)": "You skip a node whose gradient is 0, and its parents "
        "wait for it forever. It must pass on its 0: only then are they complete.",
        "if not parent.uses → if True": "A node that you visit twice passes on its whole gradient twice. Wait until it "
        "is complete, and pass it on once.",
    },
)
