"""Run the Makefile's installation with a few tiny packages.

Possible errors are: an interrupted installation looks finished, a second run installs again, torch's CUDA packages are
missing, or a deliberately excluded package is installed.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(MAKE is None or sys.platform == "win32", reason="needs make (Windows installs with pip)"),
]

LOCK = "torch==2.13.0\nserver==1.0\nschema==1.0\n"

# A minimal build backend, so that `pip install --editable .` works without setuptools.
BACKEND = """
import pathlib, zipfile
FILES = {
    "lmcourse.pth": str(pathlib.Path.cwd()),
    "lmcourse-0.1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: lmcourse\\nVersion: 0.1.0\\n",
    "lmcourse-0.1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "lmcourse-0.1.0.dist-info/RECORD": "",
}
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "lmcourse-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        for path, text in FILES.items():
            wheel.writestr(path, text)
    return name
"""


@dataclass(frozen=True)
class Course:
    """A copy of the Makefile with a lock of tiny packages."""

    folder: Path
    wheels: Path

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run make in the course's folder; pip sees only the tiny packages."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "MAKE", "MFLAGS", "PYTHON"))}
        env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull}
        command = [str(MAKE), *arguments]
        if not any(a.startswith("PYTHON=") for a in arguments):
            command.append(f"PYTHON={sys.executable}")
        return subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=120
        )

    def installed(self) -> set[str]:
        """Return the distributions in .venv, except pip."""
        (site,) = (self.folder / ".venv").glob("lib/python*/site-packages")
        found = {path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info")}
        return {name for name in found if not name.startswith(("pip-", "setuptools-"))}

    def lock(self, text: str) -> None:
        """Write the lock with a time later than the installation."""
        (self.folder / "requirements.lock").write_text(text, encoding="utf-8")


def write_wheel(folder: Path, name: str, version: str, *requires: str, extra: str = "") -> None:
    """Write a wheel with one empty module."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Provides-Extra: {extra}"] if extra else []
    metadata += [f"Requires-Dist: {r}" for r in requires]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", "\n".join(metadata) + "\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A new checkout with packages that stand for torch with CUDA, and for jsonschema with its slow extra."""
    # The space is deliberate, because people use folder names with spaces.
    folder = tmp_path_factory.mktemp("a course")
    wheels = tmp_path_factory.mktemp("wheels")
    write_wheel(wheels, "torch", "2.13.0", "nvidia_cuda==13.0")
    write_wheel(wheels, "torch", "2.14.0", "nvidia_cuda==14.0")
    write_wheel(wheels, "nvidia_cuda", "13.0")
    write_wheel(wheels, "nvidia_cuda", "14.0")
    write_wheel(wheels, "server", "1.0", "schema[slow]")
    write_wheel(wheels, "server", "2.0")
    write_wheel(wheels, "schema", "1.0", 'slow; extra == "slow"', extra="slow")
    write_wheel(wheels, "slow", "1.0")
    write_wheel(wheels, "tool", "1.0", "schema")
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    (folder / "setup.py").touch()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "lmcourse"\nversion = "0.1.0"\n',
        encoding="utf-8",
    )
    (folder / "requirements-test.lock").write_text("tool==1.0\n", encoding="utf-8")
    (folder / "lmcourse" / "jupyter").mkdir(parents=True)
    (folder / "lmcourse" / "__init__.py").touch()
    (folder / "lmcourse" / "jupyter" / "lab.py").write_text(
        "import sys\nprint('lab', sys.argv[1:])\n", encoding="utf-8"
    )
    return Course(folder, wheels)


def test_make_installs_the_locked_packages_and_torch_with_its_own(course: Course) -> None:
    course.lock(LOCK)
    result = course.make("install")
    assert result.returncode == 0, result.stderr
    assert course.installed() == {"torch-2.13.0", "nvidia_cuda-13.0", "server-1.0", "schema-1.0", "lmcourse-0.1.0"}


def test_installed_packages_are_compiled(course: Course) -> None:
    """A sandbox cannot write, so it would compile them again each time."""
    (site,) = (course.folder / ".venv").glob("lib/python*/site-packages")
    compiled = {path.name.partition(".")[0] for path in (site / "__pycache__").iterdir()}
    assert compiled >= {"torch", "nvidia_cuda", "server", "schema"}


def test_a_second_run_starts_at_once_and_passes_options_on(course: Course) -> None:
    assert course.make("--question", "install").returncode == 0, "make would install again"
    result = course.make("lab", "LAB_ARGS=--port 9999 --no-browser")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["lab ['--port', '9999', '--no-browser']"]


def test_tools_of_the_tests_come_with_the_tests(course: Course) -> None:
    """`python -m pytest` fails because pytest is not installed here, but by then its tools are installed."""
    assert "tool-1.0" not in course.installed()
    assert "No module named pytest" in course.make("tests").stderr
    assert "tool-1.0" in course.installed()
    assert [*course.folder.glob(".venv/lib/python*/site-packages/__pycache__/tool.*.pyc")]
    again = course.make("--dry-run", "tests").stdout
    assert " install " not in again
    assert course.make("--question", "install").returncode == 0


def test_a_changed_pyproject_installs_only_the_package_again(course: Course) -> None:
    later = (course.folder / ".venv" / "ready").stat().st_mtime + 2
    os.utime(course.folder / "pyproject.toml", (later, later))
    steps = [line for line in course.make("--dry-run", "install").stdout.splitlines() if " install " in line]
    assert len(steps) == 1, steps
    assert "--editable ." in steps[0]


def test_an_interrupted_installation_is_repeated(course: Course) -> None:
    """A wheel in the new lock is missing at first; when it is available, the same command finishes."""
    course.lock("torch==2.13.0\nserver==2.0\nlate==1.0\n")
    assert course.make("install").returncode != 0
    assert course.make("--question", "install").returncode == 1, "a half-made .venv counts as finished"
    write_wheel(course.wheels, "late", "1.0")
    result = course.make("install")
    assert result.returncode == 0, result.stderr
    # Packages that the new lock does not name were removed.
    assert course.installed() == {"torch-2.13.0", "nvidia_cuda-13.0", "server-2.0", "late-1.0", "lmcourse-0.1.0"}
    assert course.make("--question", "install").returncode == 0


def test_an_unsupported_python_is_reported_in_one_line(course: Course, tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.1" && exit\nexit 1\n', encoding="utf-8")
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    result = course.make("install", f"PYTHON={old}")
    assert result.returncode != 0
    told = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert told == [
        f"The course needs Python 3.11, 3.12 or 3.13, and {old} is Python 3.9.1. "
        "Name one that fits: make lab PYTHON=python3.12"
    ]
    assert course.make("--question", "install").returncode == 0, "the working .venv was touched"


def test_make_without_a_target_prints_help(course: Course) -> None:
    shown = course.make().stdout
    for target in ("lab", "test", "build", "doctor", "clean"):
        assert f"make {target}" in shown
