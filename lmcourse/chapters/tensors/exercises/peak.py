"""The exercise on the most memory that one line needs."""

from __future__ import annotations

from lmcourse.chapters.tensors.exercises.peak_cases import Expression, hidden_cases
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise


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
        case("relu_ of an input", ["relu_", "x"], 8),
        case("relu_ of a view of an input", ["relu_", ["view", "x"]], 8),
    ],
    hidden_cases=hidden_cases,
    hints=[
        "For each part of the expression you need two numbers: the most buffers alive while it is computed, and how "
        "many are left when it is done (0 for an input, 1 for a result).",
        "Before the second argument begins, the first one's result is already waiting. So the most is the maximum, "
        "over the arguments, of what is waiting at that time plus what this argument needs.",
        "Then the operation itself: its result is added to everything waiting, and only then are the arguments freed. "
        "In-place operations and views add nothing; their result is the first argument's buffer.",
    ],
)


def _simulate(expression: Expression, *, frees: bool = True, new_always: bool = False, backwards: bool = False) -> int:
    """The largest number of buffers, with one mistake switched on. A named input holds 0 buffers, a result holds 1."""

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
                raise ValueError("the operation would write into an input")
            return most, 1
        return max(most, waiting + 1) if frees else max(most, waiting, 1), 1

    return run(expression)[0]


def _checked(expression: Expression) -> None:
    """Check the expression; ValueError if an operation would write into an input."""
    _stack_machine(expression, 1)


def _operations(node: Expression) -> list[str]:
    return [] if isinstance(node, str) else [node[0], *(name for part in node[1:] for name in _operations(part))]


@peak_bytes.misconception("You add up all results. The memory of a temporary is freed after its use.")
def all_results(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * sum(name != "view" and not name.endswith("_") for name in _operations(expression))


@peak_bytes.misconception("You let every operation allocate memory. In-place operations and views do not.")
def always_new(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * _simulate(expression, new_always=True)


@peak_bytes.misconception("You free the arguments before the result exists. For a moment both are in memory.")
def freed_too_early(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * _simulate(expression, frees=False)


@peak_bytes.misconception("You forget the result of the left side. It takes memory while the right side is computed.")
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


@peak_bytes.misconception(
    "You take the larger of the two sides. While the right side is computed, the left side's result is still waiting: "
    "add it."
)
def larger_side(expression: Expression, size: int) -> int:
    _checked(expression)

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str):
            return 0, 0
        parts = [run(part) for part in node[1:]]
        most, waiting = max(inside for inside, _ in parts), sum(left for _, left in parts)
        if node[0] == "view" or node[0].endswith("_"):
            return most, parts[0][1]
        return max(most, waiting + 1), 1

    return size * run(expression)[0]


@peak_bytes.misconception("You count the inputs. They existed before: count only what this line adds.")
def inputs_counted(expression: Expression, size: int) -> int:
    def names(node: Expression) -> set[str]:
        return {node} if isinstance(node, str) else set().union(*(names(part) for part in node[1:]))

    return _stack_machine(expression, size) + size * len(names(expression))


@peak_bytes.misconception("You compute the right argument first. Python computes the left one first.")
def right_first(expression: Expression, size: int) -> int:
    _checked(expression)
    return size * _simulate(expression, backwards=True)


@peak_bytes.misconception(
    "You compute the side that needs more first, to save memory. Python does not: it computes the left argument first."
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


@peak_bytes.misconception(
    "You free the memory of a view's argument. The view uses that memory, so it stays until the view has been used."
)
def freed_by_a_view(expression: Expression, size: int) -> int:
    _checked(expression)

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str):
            return 0, 0
        most = waiting = 0
        for part in node[1:]:
            inside, left = run(part)
            most, waiting = max(most, waiting + inside), waiting + left
        if node[0] == "view":
            return most, 0
        return (most, 1) if node[0].endswith("_") else (max(most, waiting + 1), 1)

    return size * run(expression)[0]


@peak_bytes.misconception(
    "You reject every in-place operation that reads an input. Only its *first* argument is written to."
)
def any_input_refused(expression: Expression, size: int) -> int:
    def refuse(node: Expression) -> None:
        if not isinstance(node, str):
            if node[0].endswith("_") and any(isinstance(part, str) for part in node[1:]):
                raise ValueError("the operation would write into an input")
            for part in node[1:]:
                refuse(part)

    refuse(expression)
    return _stack_machine(expression, size)


@peak_bytes.misconception("A view of an input is in the input's memory. Writing into it changes the input: ValueError.")
def views_of_inputs_overwritten(expression: Expression, size: int) -> int:
    def spared(node: Expression) -> Expression:
        """Replace each operation that writes into a view of an input by that view, so that nothing is written."""
        if isinstance(node, str):
            return node
        name, *parts = node
        if name.endswith("_") and isinstance(parts[0], str):
            raise ValueError("the operation would write into an input")
        first = parts[0]
        while isinstance(first, list) and first[0] == "view":
            first = first[1]
        written = name.endswith("_") and isinstance(first, str)
        return ["view", first] if written else [name, *map(spared, parts)]

    return _stack_machine(spared(expression), size)


@peak_bytes.misconception("You count buffers. Return bytes: each buffer has `size` bytes.")
def buffers(expression: Expression, size: int) -> int:
    return _stack_machine(expression, 1)


@peak_bytes.misconception(
    "You return the depth of the formula. A chain of operations needs two buffers, however deep it is."
)
def depth(expression: Expression, size: int) -> int:
    _checked(expression)

    def below(node: Expression) -> int:
        return 0 if isinstance(node, str) else max(map(below, node[1:])) + (node[0] != "view")

    return size * below(expression)


@peak_bytes.misconception(
    "You let an operation that ends in `_` write to an input. That would change the caller's tensor: raise a "
    "ValueError."
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


@peak_bytes.misconception("You compute equal parts only once. Python computes each part where it is written.")
def equal_parts_once(expression: Expression, size: int) -> int:
    _checked(expression)
    seen: set[str] = set()

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str) or repr(node) in seen:
            return 0, 0
        most = waiting = 0
        kept = []
        for part in node[1:]:
            inside, left = run(part)
            most, waiting = max(most, waiting + inside), waiting + left
            kept.append(left)
        seen.add(repr(node))
        if node[0] == "view" or node[0].endswith("_"):
            return most, kept[0]
        return max(most, waiting + 1), 1

    return size * run(expression)[0]


@peak_bytes.misconception("You look at two arguments only. An operation may have three or more.")
def two_arguments_at_most(expression: Expression, size: int) -> int:
    _checked(expression)

    def cut(node: Expression) -> Expression:
        return node if isinstance(node, str) else [node[0], *map(cut, node[1:3])]

    return size * _simulate(cut(expression))


@peak_bytes.misconception(
    "You keep all arguments of an in-place operation. Only the first one is the result; the others are freed after it."
)
def second_argument_kept(expression: Expression, size: int) -> int:
    _checked(expression)

    def run(node: Expression) -> tuple[int, int]:
        if isinstance(node, str):
            return 0, 0
        most = waiting = 0
        for part in node[1:]:
            inside, left = run(part)
            most, waiting = max(most, waiting + inside), waiting + left
        if node[0] == "view" or node[0].endswith("_"):
            return most, waiting
        return max(most, waiting + 1), 1

    return size * run(expression)[0]


@peak_bytes.misconception("You count what is left at the end. The question is the most that is alive at any time.")
def left_at_the_end(expression: Expression, size: int) -> int:
    _checked(expression)

    def left(node: Expression) -> int:
        if isinstance(node, str):
            return 0
        return left(node[1]) if node[0] == "view" else 1

    return size * left(expression)


@peak_bytes.misconception(
    "You look at the outermost operation only. Its arguments are computed before it, and that may need more."
)
def outermost_only(expression: Expression, size: int) -> int:
    _checked(expression)

    def kept(node: Expression) -> int:
        if isinstance(node, str):
            return 0
        return kept(node[1]) if node[0] == "view" else 1

    if isinstance(expression, str) or expression[0] == "view":
        return size * kept(expression)
    return size * (sum(map(kept, expression[1:])) + (not expression[0].endswith("_")))


@peak_bytes.misconception(
    "You let a view of a temporary allocate memory. It is in its argument's memory, as a view of an input is."
)
def views_of_temporaries_are_new(expression: Expression, size: int) -> int:
    _checked(expression)

    def renamed(node: Expression) -> Expression:
        if isinstance(node, str):
            return node
        parts = [renamed(part) for part in node[1:]]
        first = node[1]
        while isinstance(first, list) and first[0] == "view":
            first = first[1]
        return ["copy" if node[0] == "view" and isinstance(first, list) else node[0], *parts]

    return size * _simulate(renamed(expression))
