"""Imports point downwards only: `docs/architecture.md` draws the floors, this keeps them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "lmcourse"

FLOORS = (
    ("errors", "text", "units"),
    ("device",),
    ("autograd", "data", "numerics"),
    ("nn",),
    ("models",),
    ("accounting", "inference"),
    ("training",),
    ("bench", "parity"),
    ("plots",),
    ("widgets",),
    ("course", "report", "root"),
    ("exercises",),
    ("chapters",),
    ("notebook", "progress"),
    ("grading",),
    ("authoring",),
    ("doctor", "welcome"),
    ("lab",),
    ("cli",),
    ("__main__",),
)
"""From the ground up. A room may import from the floors below it; two rooms on one floor do not know each other."""

LEVEL = {room: level for level, floor in enumerate(FLOORS) for room in floor}


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported(text: str) -> Iterator[tuple[int, str]]:
    """The rooms of lmcourse that a module imports from, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import: write lmcourse.room.module"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        parts = (name.split(".") for name in names)
        yield from ((node.lineno, name[1]) for name in parts if name[0] == "lmcourse" and len(name) > 1)


def upward(package: Path) -> list[str]:
    """Every import that does not point downwards."""
    found = []
    for path in sorted(package.rglob("*.py")):
        room = room_of(path, package)
        for line, other in imported(path.read_text(encoding="utf-8")):
            if other in LEVEL and other != room and LEVEL[other] >= LEVEL.get(room, -1):
                found.append(f"{path.relative_to(package)}:{line}: {room} imports {other}")
    return found


def test_imports_point_downwards() -> None:
    assert upward(PACKAGE) == []


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(path, PACKAGE) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert rooms - LEVEL.keys() == set(), "say in FLOORS, and in docs/architecture.md, where the new room is"


def test_the_package_itself_imports_nothing_of_its_rooms() -> None:
    assert list(imported((PACKAGE / "__init__.py").read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "from lmcourse.exercises import check",
        "from lmcourse import exercises",
        "import lmcourse.exercises.checking as c",
        "def late():\n    from lmcourse.plots.style import png",
        "from lmcourse.data import corpus",
    ],
)
def test_an_import_that_points_upwards_or_sideways_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "numerics").mkdir()
    path = tmp_path / "numerics" / "codes.py"
    path.write_text(
        f"import torch\nfrom lmcourse import __version__, device\nfrom lmcourse.numerics import formats\n{line}\n"
    )
    assert len(upward(tmp_path)) == 1
    assert upward(tmp_path)[0].startswith("numerics/codes.py:")
