"""Right answers to the exercise on the memory of a line, in other styles, and right mutants."""

from __future__ import annotations

from typing import Any

from lmcourse.chapters.tensors.exercises.peak import peak_bytes

__all__ = ["peak_bytes"]


@peak_bytes.variant
def all_moments_listed(expression: Any, size: int) -> int:
    """Run the expression, note how many buffers are alive after each step, and return the largest number."""
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
    """Turn the expression into a list of instructions, arguments first."""
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
            raise ValueError("the operation would write into an input")
        alive += not in_place
        peak = max(peak, alive)
        alive -= sum(held) - in_place
        results.append(1)
    return peak * size


@peak_bytes.variant
def bytes_from_the_start(expression: Any, size: int) -> int:
    def need(node: Any, before: int) -> tuple[int, bool]:
        """The largest number of bytes until this part is done, if `before` are taken already; and whether it made a
        buffer."""
        if not isinstance(node, list):
            return before, False
        taken, most, fresh = before, before, []
        for part in node[1:]:
            inside, made = need(part, taken)
            most = max(most, inside)
            taken += size if made else 0
            fresh.append(made)
        if node[0].endswith("_") and not fresh[0]:
            raise ValueError("the operation would write into an input")
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
