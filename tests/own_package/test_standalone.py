"""An answer is collected with only its imports and helpers."""

from __future__ import annotations

import pytest

from lmcourse.own_package.standalone import CannotStandAloneError, needed, read_statements

CELLS = (
    "import math\nfrom einops import einsum, rearrange\nfrom lmcourse.models.zoo import find_model",
    "%timeit 1 + 1\nx = math.pi\nprint(x)",
    "# the base of everything\nBASE = 2.0\n\ndef helper(a):\n    # one more\n    return a * BASE",
    "def unused():\n    return rearrange",
    "def first(a):\n    return helper(a) + math.floor(a)",
    "for step in range(3):\n    total = step",
    "def second(a: float = BASE) -> float:\n    BASE = 1\n    einsum = [BASE]\n    return first(a) + einsum[0]",
    "def third():\n    return total",
    "def fourth():\n    return find_model('x')",
    "def fifth():\n    return later",
    "later = 1",
    "BASE = 3.0",
    "def sixth():\n    def inner():\n        return math.tau\n    return inner() + BASE",
    "class Seventh:\n    size = helper(1)\n    def go(self):\n        return Seventh.size",
)


def texts(name: str, *others: str) -> tuple[list[str], set[str]]:
    at = next(index for index, cell in enumerate(CELLS) if f" {name}" in cell)
    statements, used = needed(CELLS, at, name, others)
    return [statement.text.split("\n")[0] for statement in statements], used


def test_only_needed_imports_and_helpers_are_included() -> None:
    assert texts("first") == (["import math", "# the base of everything", "def helper(a):", "def first(a):"], set())


def test_a_comment_stays_with_its_line() -> None:
    statements, _ = needed(CELLS, 2, "helper")
    assert [one.text for one in statements] == [
        "# the base of everything\nBASE = 2.0",
        "def helper(a):\n    # one more\n    return a * BASE",
    ]


def test_names_inside_a_function_are_local_but_defaults_are_not() -> None:
    """`einsum` and the second `BASE` are local; the default BASE is the notebook's."""
    found, used = texts("second", "first")
    assert found == ["# the base of everything", "def second(a: float = BASE) -> float:"]
    assert used == {"first"}


def test_a_name_means_its_last_definition_above() -> None:
    assert texts("sixth")[0] == ["import math", "BASE = 3.0", "def sixth():"]
    assert "BASE = 3.0" not in texts("first")[0]


def test_names_in_a_class_body_are_included() -> None:
    assert texts("Seventh")[0] == ["def helper(a):", "BASE = 3.0", "class Seventh:"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("third", "it needs `total`, a value that a cell computes: compute it in a function"),
        ("fourth", "it needs `find_model` from lmcourse, but your package must run without lmcourse"),
        ("fifth", "it needs `later`, which no cell above it defines"),
    ],
)
def test_answers_that_need_the_course_are_reported(name: str, why: str) -> None:
    with pytest.raises(CannotStandAloneError) as caught:
        texts(name)
    assert str(caught.value) == why


def test_a_cell_that_is_not_python_has_no_statements() -> None:
    assert read_statements("def broken(:") == []
    assert [one.kind for one in read_statements("%load_ext x\ny = 1")] == ["other", "definition"]
    assert [one.names for one in read_statements("await x\ny = 1")] == [set(), {"y"}]
