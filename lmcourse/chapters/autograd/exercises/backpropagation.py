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
        sweep("used twice by one node", "a = Node(3.0)\nL = a * a + (a + a)", "L", "a"),
        detour("a short way and a detour", 0.25),
        sweep("two detours", "x = Node(0.5)\na = x * 3\nb = a + x\nL = b * a + b.tanh() * a", "L", "b", "a", "x"),
        beside("a node that does not lead to the end", 0.5),
        sweep("a local derivative of 0", "x = Node(0.0)\nL = x.relu() * 5 + x * 2", "L", "x"),
        chain("a chain of 10,000 nodes, no recursion", 5_000, 0.95),
        ladder("forty fan-outs in a row", 40),
    ],
    hidden_cases=other_programs,
    hints=[
        "In exercise 2 the graph was a dictionary: graph[node] gave the parents with their local derivatives. Here a "
        "node has them itself: zip(node.parents, node.locals).",
        "First visit everything that the end depends on, with a stack and a set of visited nodes. Meanwhile count how "
        "often each node is used: only these uses count.",
        "Then end.grad = 1.0, and use the loop of exercise 2: when all uses of a node are done, it passes on its "
        "gradient, parent.grad += node.grad * local.",
    ],
    forbid=["torch", "graphlib", "networkx", ".backward"],
    seconds=4.0,
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
def gradients_in_a_dictionary(end: Any) -> Any:
    uses: Any = {id(end): 0}
    waiting = [end]
    while waiting:
        for parent in waiting.pop().parents:
            if id(parent) not in uses:
                uses[id(parent)] = 0
                waiting.append(parent)
            uses[id(parent)] += 1
    grads, ready = {id(end): 1.0}, [end]
    while ready:
        node = ready.pop()
        node.grad = grads[id(node)]
        for parent, local in zip(node.parents, node.locals, strict=False):
            grads[id(parent)] = grads.get(id(parent), 0.0) + local * node.grad
            uses[id(parent)] -= 1
            if uses[id(parent)] == 0:
                ready.append(parent)
    return end


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
        "node.grad * local → local": "You add the local derivative alone. Multiply it by the gradient of the node that "
        "passes it back.",
        "end.grad = 1.0 → end.grad = 0.0": "Every gradient is 0: begin with end.grad = 1.",
        "stack.pop() → stack.pop(0) ;; stack.append((node, True)) → order.append(node) ;; "
        "reversed(order) → order": "You walk back level by level, and a node passes on its gradient when it is first "
        "reached. What arrives later, by a longer way, is not passed on: put the nodes in order first.",
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
        "from the end towards the inputs, and let every node pass on its own.",
        "end.grad = 1.0 → end.grad = end.data": "You start with end.grad = end.data. The derivative of the end with "
        "respect to itself is 1.",
    },
)
