"""pyproject.toml, the two locks and environment.yml agree, and both locks are complete on every system.

The locks are installed without dependencies, so a forgotten package would be missing. These tests run on one system and
evaluate the markers of all requirements for the other systems and Python versions.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
TEST_LOCK = (ROOT / "requirements-test.lock").read_text(encoding="utf-8")
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))

BUILD = ("requirements.lock", "requirements-test.lock", "environment.yml", "pyproject.toml", "Makefile", ".ci/run")
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "macos": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    "windows": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
}
CORNERS = [("linux", "3.11"), ("linux", "3.13"), ("macos", "3.12"), ("windows", "3.11"), ("windows", "3.13")]

# The only package that the lock deliberately leaves out; its comments say why.
LEFT_OUT = "rfc3987-syntax"
# Packages for other systems, which are not installed here and have no requirements.
FOREIGN = {"appnope", "colorama", "pexpect", "ptyprocess", "pywinpty", "overrides"}
# Requirements of a CUDA build of torch, which torch pins itself.
CUDA = re.compile(r"(nvidia|cuda|triton|pytorch-triton)\b")

Lines = list[Requirement]


def locked_lines(lock: str) -> Lines:
    """Return the lines of a lock without comments."""
    lines = (line.split("#", 1)[0].strip() for line in lock.splitlines())
    return [Requirement(line) for line in lines if line]


def by_name(lines: Lines) -> dict[str, Requirement]:
    return {canonicalize_name(line.name): line for line in lines}


LEARNERS = by_name(locked_lines(LOCK))
"""The packages that `make lab` installs."""
LOCKED = by_name(locked_lines(LOCK) + locked_lines(TEST_LOCK))
"""All packages that `make test` uses."""


def asked_for(*extras: str) -> Lines:
    """Return the requirements in pyproject.toml; an extra may include another one, as `lmcourse[course]`."""
    optional = PROJECT["optional-dependencies"]
    lines = [Requirement(line) for line in (*PROJECT["dependencies"], *(r for e in extras for r in optional[e]))]
    others = [line for line in lines if line.name != "lmcourse"]
    return others + [each for line in lines if line.name == "lmcourse" for each in asked_for(*line.extras)]


def pinned(line: Requirement) -> str:
    """Return the version in a line of the lock."""
    (only,) = line.specifier
    return only.version


def environment(system: str, python: str) -> dict[str, str]:
    """Return the values of markers on a system and Python version."""
    versions = {"python_version": python, "python_full_version": f"{python}.0"}
    return {**default_environment(), **SYSTEMS[system], **versions}


def holds(requirement: Requirement, where: dict[str, str], extras: set[str]) -> bool:
    """Return True if a requirement applies in an environment, for a package with these extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**where, "extra": extra}) for extra in {"", *extras})


def needs(name: str, where: dict[str, str], extras: set[str]) -> Iterator[Requirement]:
    """Return the requirements of an installed package in an environment."""
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        assert name in FOREIGN, f"{name} is in the lock, not installed here and not a package of another system"
        return
    for line in lines:
        requirement = Requirement(line)
        if holds(requirement, where, extras) and not (name == "torch" and CUDA.match(requirement.name)):
            yield requirement


@pytest.fixture
def as_locked() -> None:
    """Skip tests if other versions than the locked ones are installed, because their requirements may differ."""
    versions = {name: importlib.metadata.version(name) for name in LOCKED if name not in FOREIGN}
    # 2.13.0+cpu is a build of version 2.13.0.
    others = {n: v for n, v in versions.items() if v.split("+")[0] != pinned(LOCKED[n])}
    if others:
        told = f"installed, but not as locked: {others}"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)


def test_every_line_of_the_lock_is_one_exact_version() -> None:
    lines = locked_lines(LOCK) + locked_lines(TEST_LOCK)
    for line in lines:
        assert [s.operator for s in line.specifier] == ["=="], line
        assert "*" not in str(line.specifier), line
        assert not line.extras, f"{line}: a constraints file takes no extras"
    assert len(LOCKED) == len(lines), "a package is listed twice"


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_an_extra_can_be_added_to_the_locked_course(extra: str) -> None:
    for wanted in asked_for(extra):
        line = LOCKED.get(canonicalize_name(wanted.name))
        assert line is None or wanted.specifier.contains(pinned(line)), f"extra {extra}: {wanted}, the lock: {line}"


@pytest.mark.prove
@pytest.mark.parametrize(
    ("folder", "extras"),
    [("lmcourse", ("grading", "parity", "cluster", "site")), ("tests", ("grading", "parity", "cluster", "test"))],
)
def test_every_imported_package_is_a_dependency(folder: str, extras: tuple[str, ...]) -> None:
    """A package that is only another package's dependency may disappear at any time."""
    allowed = {canonicalize_name(r.name) for r in asked_for(*extras)} | {"lmcourse"}
    owners = importlib.metadata.packages_distributions()
    stray: set[str] = set()
    for file in sorted((ROOT / folder).rglob("*.py")):
        for module in imported_modules(file):
            names = {canonicalize_name(owner) for owner in owners.get(module, [])}
            if names and not names & allowed:
                stray.add(f"{file.relative_to(ROOT)} imports {module}, from {', '.join(sorted(names))}")
    assert not stray


def imported_modules(file: Path) -> set[str]:
    """Return the top-level modules that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.usefixtures("as_locked")
@pytest.mark.parametrize(("system", "python"), CORNERS)
@pytest.mark.parametrize(
    ("lock", "extras"), [(LEARNERS, ("grading",)), (LOCKED, ("grading", "test"))], ids=["learners", "both locks"]
)
def test_the_lock_is_complete_and_nothing_in_it_is_unused(
    lock: dict[str, Requirement], extras: tuple[str, ...], system: str, python: str
) -> None:
    where = environment(system, python)
    offered = {name: line for name, line in lock.items() if holds(line, where, set())}
    reached: dict[str, set[str]] = {}
    absent: set[str] = set()
    wrong: list[str] = []
    todo = [(requirement, "pyproject.toml") for requirement in asked_for(*extras)]
    while todo:
        requirement, source = todo.pop()
        name = canonicalize_name(requirement.name)
        if name not in offered:
            absent.add(f"{name} (for {source})")
            continue
        if not requirement.specifier.contains(pinned(offered[name])):
            wrong.append(f"{source} needs {requirement}, the lock has {pinned(offered[name])}")
        if name in reached and requirement.extras <= reached[name]:
            continue
        reached[name] = reached.get(name, set()) | requirement.extras
        todo += [(r, name) for r in needs(name, where, reached[name])]
    assert not wrong
    assert absent == {f"{LEFT_OUT} (for jsonschema)"}, f"missing on {system}, Python {python}, or the omission is moot"
    assert set(offered) == set(reached), f"nothing needs {sorted(set(offered) - set(reached))} on {system}"


@pytest.mark.usefixtures("as_locked")
def test_every_locked_version_runs_on_every_python_from_its_first_release() -> None:
    for name in sorted(set(LOCKED) - FOREIGN):
        supported = SpecifierSet(importlib.metadata.metadata(name).get("Requires-Python", ""))
        for python in PYTHONS:
            assert supported.contains(f"{python}.0"), f"{name} {pinned(LOCKED[name])} needs Python {supported}"


def test_conda_allows_the_same_pythons() -> None:
    (python,) = [line for line in CONDA["dependencies"] if isinstance(line, str) and line.startswith("python")]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PROJECT["requires-python"])


def test_conda_installs_the_same_lock_and_this_package() -> None:
    (pip,) = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    assert pip == ["--requirement requirements.lock", "--editable ."]
    assert "pip" in CONDA["dependencies"], "conda warns and may take another pip when it is not named"


def test_the_documented_pythons_are_the_allowed_ones() -> None:
    allowed = SpecifierSet(PROJECT["requires-python"])
    candidates = [f"3.{minor}" for minor in range(8, 20)]
    told = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert [c for c in candidates if allowed.contains(f"{c}.1")] == list(PYTHONS) == told
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py311"


@pytest.mark.parametrize("name", BUILD)
def test_files_contain_no_address_of_a_machine_or_registry(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.findall(
        r"file://\S+|index-url\S*|find-links\S*|simple/|(?<![\w.])/(?:home|root|opt|work|Users)/\S+", text
    )
    assert not found
