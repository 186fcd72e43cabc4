"""A wheel that is built and installed elsewhere opens the course, and a check passes there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from lmcourse.course.chapters import CHAPTERS

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[2]
FILES = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def run(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without this process's paths."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JUPYTER"))}
    return subprocess.run(
        [*map(str, command)], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=240
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, because the build leaves folders behind, with what `make dist` makes in `dist`."""
    tree = tmp_path_factory.mktemp("dist") / "tree"
    for name in FILES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / "notebooks" / "welcome.ipynb").write_text("{}", encoding="utf-8")
    made = run([sys.executable, "-m", "build", "--no-isolation"], tree)
    assert made.returncode == 0, made.stderr
    return tree


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    """The wheel, which was made from the source archive."""
    (found,) = (tree / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel and, from this environment, only the packages that it requires."""
    folder = tmp_path_factory.mktemp("learner")
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder), "installed_base": str(folder)})
    site = Path(paths["purelib"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # If our .pth file adds a folder, the folder's own .pth files are not read, so this tree's package stays invisible.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return Path(paths["scripts"], "python.exe" if sys.platform == "win32" else "python")


def test_the_source_archive_is_the_whole_repository(tree: Path) -> None:
    (archive,) = (tree / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as files:
        found = {file.name.partition("/")[2] for file in files.getmembers() if file.isfile()}
    assert {*FILES} <= found


def test_a_wheel_has_the_notebooks_and_no_solution(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        prefix = "lmcourse/course_folder/"
        found = {name.removeprefix(prefix): archive.read(name) for name in archive.namelist() if prefix in name}
    paths = [*(ROOT / "notebooks").glob("*/*.ipynb"), ROOT / "nbgrader_config.py"]
    assert found == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    assert wheel.stat().st_size < 10e6


def test_every_installation_has_the_startup_file_of_ipython(tree: Path, wheel: Path) -> None:
    make = "import setuptools.build_meta as b; b.build_editable('editable')"
    (tree / "editable").mkdir()
    assert run([sys.executable, "-c", make], tree).returncode == 0
    for made in (wheel, *tree.glob("editable/*.whl")):
        with zipfile.ZipFile(made) as archive:
            found = [name for name in archive.namelist() if ".data/data/" in name]
        assert [name.partition(".data/data/")[2] for name in found] == ["etc/ipython/startup/lmcourse_startup.py"]


def test_an_installed_wheel_opens_the_course_and_checks_answers(python: Path, tmp_path: Path) -> None:
    said = run([python, "-m", "lmcourse", "lab", "--version"], tmp_path)
    assert said.returncode == 0, said.stderr
    assert len([*tmp_path.glob("notebooks/*/*.ipynb")]) == len(CHAPTERS)
    assert (tmp_path / "notebooks" / "welcome.ipynb").is_file()
    answer = """\
from pathlib import Path
import lmcourse, sys
from lmcourse.notebook import check, start
assert Path(lmcourse.__file__).is_relative_to(sys.prefix), lmcourse.__file__
start("01-floating-point")
"""
    cells = json.loads((ROOT / "solutions/01-floating-point/floating_point.ipynb").read_text(encoding="utf-8"))["cells"]
    (solution,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "max_finite")
    script = tmp_path / "answer.py"
    script.write_text(f"{answer}{solution}\nprint(check(max_finite))\n", encoding="utf-8")
    said = run([python, script], tmp_path)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("max_finite   2 / 2 points"), said.stdout
