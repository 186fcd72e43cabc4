"""Test the selection by `--notebooks`, the order of tests, and their distribution over processes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import exercises_of

NODES = {
    "solutions/09-positions/positions.ipynb::Cell 1": "09",
    "notebooks/14-memory/memory.ipynb::Cell 0": "14",
    "tests/chapters/test_positions.py::test_a": "09",
    "tests/chapters/test_all.py::test_a": None,
    "tests/course/test_layers.py::test_a": None,
    "tests/nn/test_norm.py::test_a": None,
}
"""Tests, with the notebook that each belongs to by its path."""


@pytest.fixture
def plugin(request: pytest.FixtureRequest, course: Path) -> ModuleType:
    """The module `tests/conftest.py` that pytest has loaded."""
    plugins = request.config.pluginmanager.get_plugins()
    return next(one for one in plugins if getattr(one, "__file__", "") == str(course / "tests" / "conftest.py"))


def item(course: Path, nodeid: str, **params: Any) -> Any:
    """Return a test with only the attributes that the selection reads."""
    parametrized = {"callspec": SimpleNamespace(params=params)} if params else {}
    return SimpleNamespace(nodeid=nodeid, path=course / nodeid.split("::")[0], **parametrized)


def selected(plugin: ModuleType, items: list[Any], names: str) -> tuple[list[str], list[str]]:
    """Return the tests that run, in order, and the tests that are left out."""
    left_out: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    plugin.pytest_collection_modifyitems(SimpleNamespace(getoption=lambda name: names, hook=hook), items)
    return [one.nodeid for one in items], [one.nodeid for one in left_out]


def test_only_the_tests_of_chosen_notebooks_run(plugin: ModuleType, course: Path) -> None:
    items = [item(course, nodeid) for nodeid in NODES]
    run, left_out = selected(plugin, items, "9 14")
    assert {*run} == {nodeid for nodeid, number in NODES.items() if number}
    assert {*left_out} == {nodeid for nodeid, number in NODES.items() if not number}


def test_a_test_belongs_to_its_chapter_or_exercise(plugin: ModuleType, course: Path) -> None:
    nodeid = "tests/course/test_anatomy.py::test_a"
    positions, memory = find_chapter("09"), find_chapter("14")
    mine = [
        item(course, f"{nodeid}[1]", chapter=positions),
        item(course, f"{nodeid}[2]", exercise=exercises_of(positions)[0]),
    ]
    others = [
        item(course, f"{nodeid}[3]", chapter=memory),
        item(course, f"{nodeid}[4]", exercise=exercises_of(memory)[0]),
        item(course, f"{nodeid}[5]", number=9),
    ]
    run, _ = selected(plugin, [*others, *mine], "positions")
    assert run == [one.nodeid for one in mine]


def test_without_names_all_tests_run_longest_first(plugin: ModuleType, course: Path) -> None:
    nodes = [*NODES, "tests/grading/test_grader.py::test_b", "tests/grading/test_grader.py::test_a"]
    run, left_out = selected(plugin, [item(course, nodeid) for nodeid in nodes], "")
    assert left_out == []
    assert sorted(run) == sorted(nodes)
    assert run[:2] == nodes[-2:]  # in their original order, on which some tests depend
    ranks = [
        next((rank for rank, place in enumerate(plugin.LONGEST_FIRST) if nodeid.startswith(place)), 99)
        for nodeid in run
    ]
    assert all(one <= other for one, other in pairwise(ranks))
    assert all((course / place).is_dir() or (course / f"{place}.py").is_file() for place in plugin.LONGEST_FIRST)
