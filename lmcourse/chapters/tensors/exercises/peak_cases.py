"""The hidden cases of the exercise on the memory of a line."""

from __future__ import annotations

from random import Random
from typing import Any

from lmcourse.exercises.cases import Case, case

Expression = Any
"""A name, or a list: the operation and its arguments."""

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


def hidden_cases(random: Random) -> list[Case]:
    """Expressions of all kinds, then some of them with random names, sizes and lengths."""
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
    ]
    size, levels, length = random.randint(2, 999), random.randint(3, 6), random.randint(12, 24)
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
