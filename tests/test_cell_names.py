"""Test the names of cells: which a cell defines, and which demonstrations others need."""

from __future__ import annotations

import pytest

from lmcourse.base.cell_names import bound_names, needed_cells


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch.nn\nfrom math import pi as π\nwith open(p) as f:\n    a, (b, c) = f", "torch π f a b c"),
        ("def g(x):\n    y = x\n    return z\n\nclass K:\n    w = 1", "g K"),
        ("print(a)\nb.c = 3\n[i for i in a]", ""),
        ("%time a = 3", ""),
    ],
)
def test_names_are_those_defined_outside_functions(source: str, names: str) -> None:
    assert bound_names(source) == set(names.split())


@pytest.mark.parametrize(
    ("demonstration", "runs"),
    [
        ("used = 3", True),
        ("inside = 3", True),
        ("local = 3", False),
        ("given = 3", False),
        ("print(used)", False),
    ],
)
def test_a_demonstration_runs_only_for_names_of_others(demonstration: str, runs: bool) -> None:
    own = "given = used\ndef f():\n    local = inside\n    return local, given"
    assert needed_cells([demonstration, own], [True, False]) == [runs, True]


def test_a_demonstration_that_another_one_needs_runs() -> None:
    assert needed_cells(["a = 1", "b = a", "c = b", "print(b)"], [True, True, True, False]) == [True, True, False, True]
