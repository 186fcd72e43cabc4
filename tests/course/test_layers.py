"""Packages import only from lower layers, and no chapter imports another: `docs/architecture.md` lists the layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmcourse.course.chapters import CHAPTERS

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "lmcourse"

LAYERS = (
    ("base",),
    ("__init__",),
    ("autograd", "data", "numerics"),
    ("nn",),
    ("models",),
    ("accounting", "inference"),
    ("training",),
    ("bench", "pretrained"),
    ("plots",),
    ("widgets",),
    ("report",),
    ("course",),
    ("exercises",),
    ("chapters", "one_line_errors"),
    ("notebook",),
    ("grading",),
    ("authoring",),
    ("check_tests", "own_package", "site"),
    ("jupyter",),
    ("cli",),
    ("__main__",),
)
"""Packages from the lowest layer to the highest. A package imports from lower layers only, not from its own."""

LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}


def package_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported_names(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield a module's imports from lmcourse: the line, and the parts of the dotted name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import: write lmcourse.package.module"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        parts = (name.split(".") for name in names)
        yield from ((node.lineno, name) for name in parts if name[0] == "lmcourse" and len(name) > 1)


def imported(text: str) -> Iterator[tuple[int, str]]:
    """Yield the packages of lmcourse that a module imports from, with the line."""
    yield from ((line, name[1]) for line, name in imported_names(text))


def upward(package: Path) -> list[str]:
    """Return all imports that do not point to a lower layer."""
    found = []
    for path in sorted(package.rglob("*.py")):
        name = package_of(path, package)
        for line, other in imported(path.read_text(encoding="utf-8")):
            if other in LEVEL and other != name and LEVEL[other] >= LEVEL.get(name, -1):
                found.append(f"{path.relative_to(package)}:{line}: {name} imports {other}")
    return found


def imported_chapters(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the chapters that a file imports from: the line, the topic, and the imported part."""
    for line, name in imported_names(path.read_text(encoding="utf-8")):
        if name[1] == "chapters":
            yield line, name[2] if len(name) > 2 else "", name[3:]


def into_other_chapters(chapters: Path) -> list[str]:
    """Return all imports of a chapter from another chapter."""
    return [
        f"{path.relative_to(chapters)}:{line}: {package_of(path, chapters)} imports {topic or 'all chapters'}"
        for path in sorted(chapters.rglob("*.py"))
        for line, topic, _ in imported_chapters(path)
        if topic != package_of(path, chapters)
    ]


def test_imports_point_downwards() -> None:
    assert upward(PACKAGE) == []


def test_every_package_has_a_layer() -> None:
    packages = {package_of(path, PACKAGE) for path in PACKAGE.rglob("*.py")}
    assert packages - LEVEL.keys() == set(), "say in LAYERS, and in docs/architecture.md, where the new package is"


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


def test_no_chapter_imports_another() -> None:
    assert into_other_chapters(PACKAGE / "chapters") == []


@pytest.mark.parametrize("line", ["from lmcourse.chapters.flops import figures", "import lmcourse.chapters"])
def test_an_import_from_another_chapter_is_found(line: str, tmp_path: Path) -> None:
    path = tmp_path / "memory" / "exercises.py"
    path.parent.mkdir()
    path.write_text(f"from lmcourse.chapters.memory.figures import bars\n{line}\n")
    assert [found.partition(" ")[0] for found in into_other_chapters(tmp_path)] == ["memory/exercises.py:2:"]


def test_a_notebook_imports_from_its_own_chapter_but_no_exercises() -> None:
    sources = [(chapter, REPOSITORY / "solutions" / chapter.id / f"{chapter.topic}.py") for chapter in CHAPTERS]
    written = [(chapter, source) for chapter, source in sources if source.exists()]
    assert written
    for chapter, source in written:
        for line, topic, what in imported_chapters(source):
            assert topic == chapter.topic, f"{source.name}:{line}"
            assert what[:1] != ["exercises"], f"{source.name}:{line}"


def test_the_engine_contains_no_exercise() -> None:
    """`lmcourse/exercises` is shared by all chapters; the exercises of one chapter are in its own package."""
    engine = PACKAGE / "exercises"
    assert [path.name for path in engine.iterdir() if path.is_dir() and path.name != "__pycache__"] == ["evidence"]
    for path in engine.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = [ast.unparse(target) for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        assert {"EXERCISES", "PREDICTIONS"}.isdisjoint(targets), path
