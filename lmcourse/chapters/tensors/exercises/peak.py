"""The exercise on the most memory that one line needs."""

from __future__ import annotations

from random import Random
from typing import Any

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Expression = Any
"""A name, or a list: the operation and its arguments."""

_NAMES = ("x", "y", "z", "w")


def _stack_machine(expression: Expression, size: int) -> int:
    """Allocate and free buffer by buffer, as an allocator would; a result is its buffer's number, an input None."""
    todo: list[tuple[Expression, bool]] = [(expression, False)]
    stack: list[int | None] = []
    alive: set[int] = set()
    made = most = 0
    while todo:
        node, ready = todo.pop()
        if isinstance(node, str):
            stack.append(None)
        elif not ready:
            todo += [(node, True), *((argument, False) for argument in reversed(node[1:]))]
        else:
            inputs = [stack.pop() for _ in node[1:]][::-1]
            result = inputs[0]
            if node[0] != "view" and not node[0].endswith("_"):
                made += 1
                result = made
                alive.add(made)
            elif node[0] != "view" and result is None:
                raise ValueError(f"{node[0]} would write into an input")
            most = max(most, len(alive))
            alive -= {buffer for buffer in inputs if buffer is not None and buffer != result}
            stack.append(result)
    return most * size


def _nested(depth: int, operation: str = "add") -> Expression:
    """A chain that leans to the left: ["add", ["add", ["add", "x", "y"], "y"], "y"]."""
    chain: Expression = "x"
    for _ in range(depth):
        chain = [operation, chain, "y"]
    return chain


def _leaning_right(depth: int) -> Expression:
    chain: Expression = "x"
    for _ in range(depth):
        chain = ["add", ["exp", "y"], chain]
    return chain


def _full_tree(depth: int, random: Random) -> Expression:
    """As many operations on each side, down to the names."""
    if depth == 0:
        return random.choice(_NAMES)
    return [random.choice(["add", "mul", "max"]), _full_tree(depth - 1, random), _full_tree(depth - 1, random)]


def _hidden(random: Random) -> list[Case]:
    xy, zw = ["mul", "x", "y"], ["mul", "z", "w"]
    fixed = [
        case("an input alone", "w", 8),
        case("an input alone", ["view", "x"], 8),
        case("an input alone", ["view", ["view", "x"]], 8),
        case("one operation", ["exp", "x"], 64),
        case("one operation", ["where", "x", "y", "z"], 64),
        case("both sides computed", ["add", xy, zw], 10),
        case("both sides computed", ["add", ["exp", xy], ["exp", zw]], 10),
        case("both sides computed", ["where", xy, zw, ["exp", "x"]], 10),
        case("both sides computed", ["where", "x", xy, ["exp", ["exp", "x"]]], 10),
        case("both sides computed", ["add", ["add", xy, zw], ["add", zw, xy]], 10),
        case("both sides computed", ["add", zw, ["add", ["add", xy, zw], "x"]], 10),
        case("both sides computed", ["add", ["add", ["add", xy, zw], "x"], zw], 10),
        case("in place", ["add_", xy, zw], 10),
        case("in place", ["add_", xy, "z"], 10),
        case("in place", ["add_", xy, ["exp", zw]], 10),
        case("in place", ["add_", ["exp_", ["mul_", xy, "x"]], "z"], 10),
        case("in place", ["add", "z", ["exp_", xy]], 10),
        case("in place", ["exp", ["add_", xy, zw]], 10),
        case("in place", ["add", ["add_", xy, zw], ["exp", "x"]], 10),
        case("views", ["exp", ["view", xy]], 10),
        case("views", ["add", ["view", xy], ["view", "z"]], 10),
        case("views", ["exp_", ["view", xy]], 10),
        case("views", ["view", ["exp_", ["view", ["exp", xy]]]], 10),
        case("views", ["add", ["view", "x"], ["view", "y"]], 10),
        case("into an input", ["add_", "x", xy], 10),
        case("into an input", ["exp_", ["view", "x"]], 10),
        case("into an input", ["add", xy, ["exp_", ["view", ["view", "y"]]]], 10),
        case("into an input", ["exp", ["mul", ["mul_", "x", "y"], "z"]], 10),
        case("long chains", _nested(200), 3),
        case("long chains", _leaning_right(150), 3),
        case("long chains", ["exp", _nested(100, "add")], 7),
        case("tensors of no bytes", ["add", xy, zw], 0),
    ]
    size, levels, length = random.randint(2, 999), random.randint(3, 6), random.randint(20, 90)
    tree = _full_tree(levels, random)
    return [
        *fixed,
        case("both sides computed", tree, size),
        case("both sides computed", ["add", xy, tree], size),
        case("in place", ["exp_", ["mul_", tree, zw]], size),
        case("views", ["add", ["view", tree], ["exp", ["view", "x"]]], size),
        case("into an input", ["add", tree, ["exp_", ["view", random.choice(_NAMES)]]], size),
        case("long chains", _nested(length), size),
        case("long chains", _leaning_right(length), size),
    ]


_SQUARES = ["mul", "x", "x"], ["mul", "y", "y"]
_PRODUCTS = ["mul", "x", "y"], ["mul", "y", "z"], ["mul", "z", "w"], ["mul", "w", "x"]
_LEFT = ["add", ["add", ["add", _PRODUCTS[0], _PRODUCTS[1]], _PRODUCTS[2]], _PRODUCTS[3]]
_RIGHT = ["add", _PRODUCTS[0], ["add", _PRODUCTS[1], ["add", _PRODUCTS[2], _PRODUCTS[3]]]]

peak_bytes = Exercise(
    "peak_bytes",
    points=4,
    minutes=10,
    difficulty=3,
    reference=_stack_machine,
    cases=[
        case("x + y", ["add", "x", "y"], 100),
        case("sqrt(x*x + y*y)", ["sqrt", ["add", *_SQUARES]], 100),
        case("the same, in place", ["sqrt_", ["add_", *_SQUARES]], 100),
        case("((x*y + y*z) + z*w) + w*x", _LEFT, 100),
        case("x*y + (y*z + (z*w + w*x))", _RIGHT, 100),
        case("(x*y + y*z) + (z*w + w*x)", ["add", ["add", *_PRODUCTS[:2]], ["add", *_PRODUCTS[2:]]], 100),
        case("exp of a view of a view", ["exp", ["view", ["view", "x"]]], 100),
        case("x itself", "x", 100),
        case("relu_ of an input", ["relu_", "x"], 100),
    ],
    hidden_cases=_hidden,
    hints=[
        "For each part of the expression you need two numbers: the most buffers alive while it is computed, and how "
        "many are left when it is done (0 for an input, 1 for a result).",
        "Before the second argument begins, the first one's result is already waiting. So the most is the maximum, "
        "over the arguments, of what waits then plus what this argument needs.",
        "Then the operation itself: a new result comes on top of all that waits, and only after that the arguments die. "
        "In place and views bring nothing new, and what they hand on is the first argument's buffer.",
    ],
)


def _simulate(expression: Expression, *, frees: bool = True, new_always: bool = False, backwards: bool = False) -> int:
    """Buffers at the most, with one mistake switched on. A named input holds 0 buffers, a result 1."""

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str):
            return 0, 0
        most = waiting = 0
        kept = {}
        places = range(1, len(node))
        for place in reversed(places) if backwards else places:
            inside, kept[place] = run(node[place])
            most, waiting = max(most, waiting + inside), waiting + kept[place]
        if not new_always and node[0] == "view":
            return most, kept[1]
        if not new_always and node[0].endswith("_"):
            if not kept[1]:
                raise ValueError("into an input")
            return most, 1
        return max(most, waiting + 1) if frees else max(most, waiting, 1), 1

    return run(expression)[0]


def _checked(expression: Expression) -> None:
    """ValueError where an operation would write into an input."""
    _stack_machine(expression, 1)


def _operations(node: Expression) -> list[str]:
    return [] if isinstance(node, str) else [node[0], *(name for part in node[1:] for name in _operations(part))]


@peak_bytes.misconception("You add up all results. A temporary that has been used is free again.")
def all_results(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * sum(name != "view" and not name.endswith("_") for name in _operations(expression))


@peak_bytes.misconception("You let every operation allocate. In-place ones and views do not.")
def always_new(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * _simulate(expression, new_always=True)


@peak_bytes.misconception(
    "You free the arguments before the result is there. For a moment both have to fit into memory."
)
def freed_too_early(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * _simulate(expression, frees=False)


@peak_bytes.misconception("While the right side is computed, the result of the left side waits, and takes memory.")
def left_forgotten(expression: Expression, size: int) -> int:
    _checked(expression)

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str):
            return 0, 0
        parts = [run(part) for part in node[1:]]
        most, waiting = max(inside for inside, _ in parts), sum(left for _, left in parts)
        if node[0] == "view" or node[0].endswith("_"):
            return max(most, waiting), parts[0][1]
        return max(most, waiting + 1), 1

    return size * run(expression)[0]


@peak_bytes.misconception("You count the inputs. They were there before: only what this line adds is asked for.")
def inputs_counted(expression: Expression, size: int) -> int:
    def names(node: Expression) -> set[str]:
        return {node} if isinstance(node, str) else set().union(*(names(part) for part in node[1:]))

    return _stack_machine(expression, size) + size * len(names(expression))


@peak_bytes.misconception("You compute the right argument first. Python begins with the left one.")
def right_first(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * _simulate(expression, backwards=True)


@peak_bytes.misconception(
    "You compute the hungrier side first to save memory. Nobody does that for you: a line runs as it is written."
)
def best_order(expression: Expression, size: int) -> int:
    _checked(expression)

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str):
            return 0, 0
        parts = [run(part) for part in node[1:]]
        most = waiting = 0
        for inside, left in sorted(parts, key=lambda part: part[1] - part[0]):
            most, waiting = max(most, waiting + inside), waiting + left
        if node[0] == "view" or node[0].endswith("_"):
            return most, parts[0][1]
        return max(most, waiting + 1), 1

    return size * run(expression)[0]


@peak_bytes.misconception("You return the depth of the formula. A deep chain needs two buffers, however deep it is.")
def depth(expression: Expression, size: int) -> int:
    _checked(expression)

    def below(node: Expression) -> int:
        return 0 if isinstance(node, str) else max(map(below, node[1:])) + (node[0] != "view")

    return size * below(expression)


@peak_bytes.misconception(
    "You let `_` write into an input. That would change what the caller holds: the exercise asks for a ValueError."
)
def inputs_overwritten(expression: Expression, size: int) -> int:
    def spared(node: Expression) -> Expression:
        if isinstance(node, str):
            return node
        name, *parts = node
        parts = [spared(part) for part in parts]
        first = parts[0]
        while isinstance(first, list) and first[0] == "view":
            first = first[1]
        return ["view", first] if name.endswith("_") and isinstance(first, str) else [name, *parts]

    return _stack_machine(spared(expression), size)


@peak_bytes.variant
def all_moments_listed(expression: Any, size: int) -> int:
    """Run it, note how many buffers are alive after each step, and look for the most."""
    moments = [0]

    def run(node: Any) -> bool:
        if isinstance(node, str):
            return False
        operation, *parts = node
        held = [run(part) for part in parts]
        if operation == "view":
            return held[0]
        if operation[-1] == "_":
            if not held[0]:
                raise ValueError(f"{operation} on an input")
            moments.append(moments[-1] - sum(held[1:]))
        else:
            moments.append(moments[-1] + 1)
            moments.append(moments[-1] - sum(held))
        return True

    run(expression)
    return max(moments) * size


@peak_bytes.variant
def without_recursion(expression: Any, size: int) -> int:
    """The expression as a list of instructions, arguments first."""
    program, stack = [], [expression]
    while stack:
        node = stack.pop()
        program.append(node)
        if not isinstance(node, str):
            stack.extend(node[1:])
    results: list[int] = []
    alive = peak = 0
    for node in program[::-1]:
        if isinstance(node, str):
            results.append(0)
            continue
        count = len(node) - 1
        held = [results.pop() for _ in range(count)][::-1]
        held = held if count else []
        if node[0] == "view":
            results.append(held[0])
            continue
        in_place = node[0].endswith("_")
        if in_place and held[0] == 0:
            raise ValueError("would overwrite an input")
        alive += not in_place
        peak = max(peak, alive)
        alive -= sum(held) - in_place
        results.append(1)
    return peak * size


@peak_bytes.variant
def bytes_from_the_start(expression: Any, size: int) -> int:
    def need(node: Any, before: int) -> tuple[int, bool]:
        """The most bytes alive until this part is done, if `before` are taken already; and whether it made a buffer."""
        if not isinstance(node, list):
            return before, False
        taken, most, fresh = before, before, []
        for part in node[1:]:
            inside, made = need(part, taken)
            most = max(most, inside)
            taken += size if made else 0
            fresh.append(made)
        if node[0].endswith("_") and not fresh[0]:
            raise ValueError("inputs stay as they are")
        if node[0].endswith(("_", "view")):
            return most, fresh[0]
        return max(most, taken + size), True

    return need(expression, 0)[0]


peak_bytes.equivalent_mutant(
    "most, left = (0, []) → most, left = (-1, [])", "every operation has an argument, and none needs less than nothing"
)
peak_bytes.equivalent_mutant("return (most, left[0]) → return (most, left[-1])", "a view has one argument")
for _line, _kept in (("most = {}", "sum(left) + inside"), ("return ({}, 1)", "sum(left) + 1")):
    peak_bytes.equivalent_mutant(
        f"{_line.format(f'max(most, {_kept})')} → {_line.format(f'max({_kept}, most)')}",
        "the larger of two numbers is the same in either order",
    )
