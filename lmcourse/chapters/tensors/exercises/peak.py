"""The exercise on the most memory that one line needs."""

from __future__ import annotations

from functools import reduce
from random import Random
from typing import Any

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise

Expression = Any
Several = list[Expression]
"""A name, or a list: the operation and its arguments."""


def _allocator(expression: Expression, size: int, sizes: dict[str, int]) -> int:
    """Allocate and free buffers one by one; a result is its buffer's number, an input is None."""
    alive: dict[int | None, int] = {}
    most = 0

    def run(node: Expression) -> int | None:
        nonlocal most
        if isinstance(node, str):
            return None
        name, *parts = node
        inputs = [run(part) for part in parts]
        result = inputs[0]
        if name != "view" and not name.endswith("_"):
            result = max((buffer or 0 for buffer in alive), default=0) + 1
            alive[result] = sizes.get(name, size)
        elif name != "view" and result is None:
            raise ValueError(f"{name} would write into an input")
        most = max(most, sum(alive.values()))
        for buffer in {*inputs} - {result, None}:
            del alive[buffer]
        return result

    run(expression)
    return most


_NAMES = ("x", "y", "z", "w")


def _full_tree(depth: int, random: Random) -> Expression:
    """A tree with equally many operations on each side, down to the names."""
    if depth == 0:
        return random.choice(_NAMES)
    return [random.choice(["add", "mul", "max"]), _full_tree(depth - 1, random), _full_tree(depth - 1, random)]


def _some(name: str, size: int, *expressions: Expression, sizes: dict[str, int] | None = None) -> list[Case]:
    return [case(name, expression, size, sizes or {}) for expression in expressions]


def _hidden(random: Random) -> list[Case]:
    xy, zw = ["mul", "x", "y"], ["mul", "z", "w"]
    size, length = random.randint(2, 999), random.randint(12, 24)
    tree = _full_tree(random.randint(3, 6), random)
    both: Several = [["add", xy, zw], ["add", ["exp", xy], ["exp", zw]], ["where", xy, zw, ["exp", "x"]]]
    both += [["where", "x", xy, ["exp", ["exp", "x"]]], ["add", ["add", xy, zw], ["add", zw, xy]]]
    both += [["add", zw, ["add", ["add", xy, zw], "x"]], ["add", ["add", ["add", xy, zw], "x"], zw]]
    in_place: Several = [["add_", xy, zw], ["add_", xy, "z"], ["add_", xy, ["exp", zw]], ["exp", ["add_", xy, zw]]]
    in_place += [["add_", ["exp_", ["mul_", xy, "x"]], "z"], ["add", "z", ["exp_", xy]]]
    in_place += [["add", ["add_", xy, zw], ["exp", "x"]], ["exp_", ["mul_", tree, zw]]]
    views: Several = [["exp", ["view", xy]], ["add", ["view", xy], ["view", "z"]], ["exp_", ["view", xy]]]
    views += [["view", ["exp_", ["view", ["exp", xy]]]], ["add", ["view", "x"], ["view", "y"]]]
    views += [["add", ["view", ["view", xy]], ["exp", zw]], ["add", ["view", tree], ["exp", ["view", "x"]]]]
    inputs: Several = [["add_", "x", xy], ["exp_", ["view", "x"]], ["add", xy, ["exp_", ["view", ["view", "y"]]]]]
    inputs += [["exp", ["mul", ["mul_", "x", "y"], "z"]], ["add", tree, ["exp_", ["view", random.choice(_NAMES)]]]]
    rows: Several = [["exp", ["sub", "s", ["amax", "s"]]], ["div", xy, ["sum", zw]], ["div", ["sum", zw], xy]]
    rows += [["sum", xy], ["add", ["amax", xy], ["sum", zw]], ["mul_", ["sum", xy], ["amax", zw]]]
    rows += [["div", "w", ["exp_", ["amax", xy]]]]
    longer: Several = [["mul", "gate", ["log_softmax", "up"]], ["add", xy, ["index_add_", ["exp", "up"], "x"]]]
    start: Expression = "x"
    to_the_left = reduce(lambda chain, _: ["add", chain, "y"], range(length), start)
    to_the_right = reduce(lambda chain, _: ["add", ["exp", "y"], chain], range(24), start)
    return [
        *_some("an input alone", 8, "w", ["view", "x"], ["view", ["view", "x"]]),
        *_some("one operation", 64, ["exp", "x"], ["where", "x", "y", "z"]),
        *_some("both sides computed", size, *both, tree, ["add", xy, tree]),
        *_some("in place", 10, *in_place),
        *_some("views", 10, *views),
        *_some("into an input", 10, *inputs),
        *_some("long chains", 3, to_the_left, to_the_right, ["exp", to_the_left]),
        *_some("tensors of no bytes", 0, ["add", xy, zw], ["exp_", ["add", "x", "y"]]),
        *_some("longer names", 16, *longer),
        *_some("results of other sizes", size + 9, *rows, sizes={"amax": 3, "sum": 2}),
        *_some("results of other sizes", 5, *rows, sizes={"mul": 700, "exp": 0}),
        *_some("results of other sizes", 5, ["exp_", ["mul", "x", "y"]], sizes={"mul": 0, "exp_": 9, "view": 9}),
    ]


_SQUARES: Several = [["mul", "x", "x"], ["mul", "y", "y"]]
_PRODUCTS: Several = [["mul", *pair] for pair in ("xy", "yz", "zw", "wx")]
_LEFT = reduce(lambda chain, product: ["add", chain, product], _PRODUCTS)
_RIGHT = reduce(lambda chain, product: ["add", product, chain], reversed(_PRODUCTS))
_SOFTMAX = ["div", ["exp", "s"], ["sum", ["exp", ["sub", "s", ["amax", "s"]]]]]
_ROWS = {"amax": 2, "sum": 2}

peak_bytes = Exercise(
    "peak_bytes",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_allocator,
    cases=[
        case("x + y", ["add", "x", "y"], 8, {}),
        case("sqrt(x*x + y*y)", ["sqrt", ["add", *_SQUARES]], 8, {}),
        case("the same, in place", ["sqrt_", ["add_", *_SQUARES]], 8, {}),
        case("((x*y + y*z) + z*w) + w*x", _LEFT, 8, {}),
        case("x*y + (y*z + (z*w + w*x))", _RIGHT, 8, {}),
        case("(x*y + y*z) + (z*w + w*x)", ["add", ["add", *_PRODUCTS[:2]], ["add", *_PRODUCTS[2:]]], 8, {}),
        case("x*x + (x*x + x*x)", ["add", _SQUARES[0], ["add", _SQUARES[0], _SQUARES[0]]], 8, {}),
        case("an operation on three parts, the last a sum", ["where", *_PRODUCTS[:2], ["add", *_PRODUCTS[2:]]], 8, {}),
        case("exp of a sum in place", ["exp", ["add_", *_PRODUCTS[:2]]], 8, {}),
        case("x*y + (y*z + z*w), both in place", ["add_", _PRODUCTS[0], ["add_", *_PRODUCTS[1:3]]], 8, {}),
        case("exp of a product plus z in place", ["exp", ["add_", _PRODUCTS[0], "z"]], 8, {}),
        case("a view of a product", ["view", _PRODUCTS[0]], 8, {}),
        case("exp_ of a view of a product", ["exp_", ["view", _PRODUCTS[0]]], 8, {}),
        case(
            "x*y + (a view of y*z + z*w)", ["add", _PRODUCTS[0], ["add", ["view", _PRODUCTS[1]], _PRODUCTS[2]]], 8, {}
        ),
        case("exp of a view of a view", ["exp", ["view", ["view", "x"]]], 8, {}),
        case("exp(s) / sum(exp(s - amax(s))), 2 bytes from amax and sum", _SOFTMAX, 8, _ROWS),
        case("exp_(amax(s)) beside w", ["div", "w", ["exp_", ["amax", "s"]]], 8, _ROWS),
        case("the product of a view, 64 bytes", ["mul", ["view", ["exp", "x"]], "y"], 8, {"mul": 64, "view": 9}),
        case("x itself", "x", 8, {}),
        case("exp_ of a product of no bytes", ["exp_", _PRODUCTS[0]], 8, {"mul": 0}),
        edge(case("relu_ of an input", ["relu_", "x"], 8, {})),
        edge(case("relu_ of a view of a view of an input", ["relu_", ["view", ["view", "x"]]], 8, {})),
    ],
    hidden_cases=_hidden,
    hints=[
        "For each part of the expression you need two numbers: the most bytes alive while it is computed, and how many "
        "are left when it is done (0 for an input, the bytes of its memory for a result).",
        "Before the second argument begins, the first one's result is already waiting. So the most is the maximum, "
        "over the arguments, of what is waiting at that time plus what this argument needs.",
        "Then the operation itself: its result is added to everything waiting, and only then are the arguments freed. "
        "In-place operations and views add nothing; their result is the first argument's buffer.",
    ],
)


@peak_bytes.variant
def the_most_of_each_part(expression: Any, size: int, sizes: dict[str, int]) -> int:
    def need(part: Any) -> tuple[int, int]:
        """The most bytes alive while this part is computed, and those left when it is done."""
        if isinstance(part, str):
            return 0, 0
        name, *arguments = part
        if name.endswith("_"):
            written = arguments[0]
            while written[0] == "view":
                written = written[1]
            if isinstance(written, str):
                raise ValueError(f"{name} would write into an input")
        parts, new = [need(argument) for argument in arguments], sizes.get(name, size)
        most = waiting = 0
        for inside, left in parts:
            most = max(most, waiting + inside)
            waiting += left
        if name == "view" or name.endswith("_"):
            return most, parts[0][1]
        return max(most, waiting + new), new

    return need(expression)[0]


peak_bytes.slips(
    the_most_of_each_part,
    {
        "most = max(most, waiting + inside) → most += inside ;; max(most, waiting + new) → most + new": "You add up "
        "every result. One that has served as an argument is freed.",
        "most = max(most, waiting + inside) → most += inside ;; max(most, waiting + new) → most + new ;; if name == "
        '"view" or name.endswith("_"): → if False:': "You add up a result for each operation. One that has served as "
        "an argument is freed, and in-place operations and views make none.",
        "[need(argument) for argument in arguments] → sorted([need(each) for each in arguments], reverse=True)": "You "
        "compute the costliest argument first. Arguments are computed from left to right.",
        "sizes.get(name, size) → size": "You give every result `size` bytes. `sizes` has those of some operations.",
        "return most, parts[0][1] → return most, new": "You give the result of an in-place operation or a view bytes "
        "of its own. It is in its first argument's memory: return those bytes.",
        'return most, parts[0][1] → return most, parts[0][1] if name == "view" else new': "You give the result of an "
        "in-place operation bytes of its own. It is in its first argument's memory: return those bytes.",
        'name == "view" or name.endswith("_") → name == "view"': "You let in-place operations allocate memory. They "
        "write into the memory of their first argument.",
        'name == "view" or name.endswith("_") → name.endswith("_")': "You let views allocate memory. A view lies in "
        "the memory of its argument.",
        'while written[0] == "view" → while False ;; name == "view" or name.endswith("_") → name.endswith("_")': (
            "You let views allocate memory. A view lies in the memory of its argument."
        ),
        "sizes.get(name, size) → sizes.get(name) or size": "You replace a size of 0 by `size`: `or` takes 0 for a "
        "missing entry.",
        "isinstance(written, str) → not need(arguments[0])[1]": "You take a result of 0 bytes for an input, and raise. "
        "An operation may make a result of 0 bytes: note apart from the bytes what is an input.",
        "return 0, 0 → return size, size": "You count the inputs. They existed before: count only what this line adds.",
        "return most, parts[0][1] → return max(most, waiting + new), new": "You let every operation allocate memory. "
        "In-place operations and views do not.",
        "max(most, waiting + new) → max(most, waiting)": "You leave out the memory of an operation's own result. "
        "It is made beside the arguments.",
        "waiting + new), new → waiting, new), new": "You free the arguments before the result exists. For a moment "
        "both are in memory.",
        "waiting + inside → inside ;; return most, parts[0][1] → return max(most, waiting), parts[0][1]": "You forget "
        "the result of the left side. It takes memory while the right side is computed.",
        "waiting + inside → inside": "You take the larger of the two sides. While the right side is computed, the left "
        "side's result is still waiting: add it.",
        "in parts: → in parts[::-1]:": "You compute the right argument first. Python computes the left one first.",
        'return most, parts[0][1] → return most, parts[0][1] * (name != "view")': "You free the memory of a view's "
        "argument. The view uses that memory, so it stays until the view has been used.",
        'if isinstance(written, str) → if str in map(type, arguments):\n                raise ValueError("the '
        'operation would write into an input")\n            if isinstance(written, str)': "You reject every in-place "
        "operation that reads an input. Only its *first* argument is written to.",
        "raise ValueError → if written != arguments[0]:\n                    return 0, 0\n                raise "
        "ValueError": "A view of an input is in the input's memory. Writing into it changes the input: ValueError.",
        "sizes.get(name, size) → 1": "You count buffers. Return bytes: a buffer has `size` bytes, or those in `sizes`.",
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
    },
)
