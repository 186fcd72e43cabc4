"""The exercise on the most memory that one line needs."""

from __future__ import annotations

from random import Random
from typing import Any

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Expression = Any
"""A name, or a list: the operation and its arguments."""


def _stack_machine(expression: Expression, size: int) -> int:
    """Allocate and free buffers one by one, like an allocator; a result is its buffer's number, an input is None."""
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


_NAMES = ("x", "y", "z", "w")


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
    """A tree with equally many operations on each side, down to the names."""
    if depth == 0:
        return random.choice(_NAMES)
    return [random.choice(["add", "mul", "max"]), _full_tree(depth - 1, random), _full_tree(depth - 1, random)]


def _hidden(random: Random) -> list[Case]:
    """Expressions of all kinds, then some of them with random names, sizes and lengths."""
    xy, zw = ["mul", "x", "y"], ["mul", "z", "w"]
    size, levels, length = random.randint(2, 999), random.randint(3, 6), random.randint(12, 24)
    tree = _full_tree(levels, random)
    return [
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
        case("both sides computed", ["where", xy, zw, ["add", xy, zw]], 10),
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
        case("views", ["add", ["view", ["view", xy]], ["exp", zw]], 10),
        case("into an input", ["add_", "x", xy], 10),
        case("into an input", ["exp_", ["view", "x"]], 10),
        case("into an input", ["add", xy, ["exp_", ["view", ["view", "y"]]]], 10),
        case("into an input", ["exp", ["mul", ["mul_", "x", "y"], "z"]], 10),
        case("long chains", _nested(24), 3),
        case("long chains", _leaning_right(24), 3),
        case("long chains", ["exp", _nested(23, "mul")], 7),
        case("tensors of no bytes", ["add", xy, zw], 0),
        case("tensors of no bytes", ["exp_", ["add", "x", "y"]], 0),
        case("longer names", ["mul", "gate", ["log_softmax", "scores"]], 16),
        case("longer names", ["add", ["layer_norm", xy], ["index_add_", ["exp", "up"], "down"]], 16),
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
    minutes=12,
    difficulty=3,
    reference=_stack_machine,
    cases=[
        case("x + y", ["add", "x", "y"], 8),
        case("sqrt(x*x + y*y)", ["sqrt", ["add", *_SQUARES]], 8),
        case("the same, in place", ["sqrt_", ["add_", *_SQUARES]], 8),
        case("((x*y + y*z) + z*w) + w*x", _LEFT, 8),
        case("x*y + (y*z + (z*w + w*x))", _RIGHT, 8),
        case("(x*y + y*z) + (z*w + w*x)", ["add", ["add", *_PRODUCTS[:2]], ["add", *_PRODUCTS[2:]]], 8),
        case("exp of a view of a view", ["exp", ["view", ["view", "x"]]], 8),
        case("a view of a product", ["view", _PRODUCTS[0]], 8),
        case("exp of a view of a product", ["exp", ["view", _PRODUCTS[0]]], 8),
        case("an input added in place to a product", ["add_", _PRODUCTS[0], "z"], 8),
        case("exp of a sum in place", ["exp", ["add_", *_PRODUCTS[:2]]], 8),
        case("x*x + x*x", ["add", _SQUARES[0], _SQUARES[0]], 8),
        case("an operation on three products", ["where", *_PRODUCTS[:3]], 8),
        case("x itself", "x", 8),
        case("a view of x", ["view", "x"], 8),
        case("relu_ of an input", ["relu_", "x"], 8),
        case("relu_ of a view of an input", ["relu_", ["view", "x"]], 8),
    ],
    hidden_cases=_hidden,
    hints=[
        "For each part of the expression you need two numbers: the most buffers alive while it is computed, and how "
        "many are left when it is done (0 for an input, 1 for a result).",
        "Before the second argument begins, the first one's result is already waiting. So the most is the maximum, "
        "over the arguments, of what is waiting at that time plus what this argument needs.",
        "Then the operation itself: its result is added to everything waiting, and only then are the arguments freed. "
        "In-place operations and views add nothing; their result is the first argument's buffer.",
    ],
)


@peak_bytes.variant
def the_most_of_each_part(expression: Any, size: int) -> int:
    def need(part: Any) -> tuple[int, int]:
        """The most buffers alive while this part is computed, and those left when it is done."""
        if isinstance(part, str):
            return 0, 0
        name, *arguments = part
        if name.endswith("_"):
            written = arguments[0]
            while written[0] == "view":
                written = written[1]
            if isinstance(written, str):
                raise ValueError(f"{name} would write into an input")
        parts = [need(argument) for argument in arguments]
        most = waiting = 0
        for inside, left in parts:
            most = max(most, waiting + inside)
            waiting += left
        if name == "view" or name.endswith("_"):
            return most, parts[0][1]
        return max(most, waiting + 1), 1

    return need(expression)[0] * size


peak_bytes.slips(
    the_most_of_each_part,
    {
        "most = max(most, waiting + inside) → most += inside ;; max(most, waiting + 1) → most + 1": "You add up all "
        "results. The memory of a temporary is freed after its use.",
        "return most, parts[0][1] → return max(most, waiting + 1), 1": "You let every operation allocate memory. "
        "In-place operations and views do not.",
        "waiting + 1), 1 → waiting, 1), 1": "You free the arguments before the result exists. For a moment both are in "
        "memory.",
        "waiting + inside → inside ;; return most, parts[0][1] → return max(most, waiting), parts[0][1]": "You forget "
        "the result of the left side. It takes memory while the right side is computed.",
        "waiting + inside → inside": "You take the larger of the two sides. While the right side is computed, the left "
        "side's result is still waiting: add it.",
        "def need → inputs = set()\n\n    def need ;; return 0, 0 → inputs.add(part)\n            return 0, 0 ;; "
        "need(expression)[0] → (need(expression)[0] + len(inputs))": "You count the inputs. They existed before: count "
        "only what this line adds.",
        "in parts: → in parts[::-1]:": "You compute the right argument first. Python computes the left one first.",
        "in parts: → in sorted(parts, key=lambda part: part[1] - part[0]):": "You compute the side that needs more "
        "first, to save memory. Python does not: it computes the left argument first.",
        'return most, parts[0][1] → return most, int(name != "view")': "You free the memory of a view's argument. The "
        "view uses that memory, so it stays until the view has been used.",
        'if isinstance(written, str) → if str in map(type, arguments):\n                raise ValueError("the '
        'operation would write into an input")\n            if isinstance(written, str)': "You reject every in-place "
        "operation that reads an input. Only its *first* argument is written to.",
        "raise ValueError → if written != arguments[0]:\n                    return 0, 0\n                raise "
        "ValueError": "A view of an input is in the input's memory. Writing into it changes the input: ValueError.",
        " * size → ": "You count buffers. Return bytes: each buffer has `size` bytes.",
        'waiting + inside → inside ;; return most, parts[0][1] → return most + (name != "view"), 1 ;; max(most, '
        "waiting + 1) → most + 1": "You return the depth of the formula. A chain of operations needs two buffers, "
        "however deep it is.",
        'raise ValueError(f"{name} would write into an input") → return 0, 0': "You let an operation that ends in `_` "
        "write to an input. That would change the caller's tensor: raise a ValueError.",
        "def need → seen = set()\n\n    def need ;; if isinstance(part, str) → if isinstance(part, str) or repr(part) "
        "in seen ;; name, *arguments = part → name, *arguments = part\n        seen.add(repr(part))": "You compute "
        "equal parts only once. Python computes each part where it is written.",
        "in arguments] → in arguments[:2]]": "You look at two arguments only. An operation may have three or more.",
        "return most, parts[0][1] → return most, waiting": "You keep all arguments of an in-place operation. Only the "
        "first one is the result; the others are freed after it.",
        "need(expression)[0] → need(expression)[1]": "You count what is left at the end. The question is the most that "
        "is alive at any time.",
        "max(most, waiting + inside) → 0 ;; return most, parts[0][1] → return waiting, parts[0][1]": "You look at the "
        "outermost operation only. Its arguments are computed before it, and that may need more.",
        'return most, parts[0][1] → return max(most, waiting + 1) if name == "view" and waiting else most, '
        "parts[0][1]": "You let a view of a temporary allocate memory. It is in its argument's memory, as a view of an "
        "input is.",
    },
)


peak_bytes.equivalent_mutant(
    "most, left = (0, []) → most, left = (-1, [])", "every operation has an argument, and none needs less than nothing"
)
peak_bytes.equivalent_mutant("return (most, left[0]) → return (most, left[-1])", "a view has one argument")
for _line, _kept in (("most = {}", "sum(left) + inside"), ("return ({}, 1)", "sum(left) + 1")):
    peak_bytes.equivalent_mutant(
        f"{_line.format(f'max(most, {_kept})')} → {_line.format(f'max({_kept}, most)')}",
        "the larger of two numbers is the same in either order",
    )
