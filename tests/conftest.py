"""Shared fixtures, the selection of notebooks, and the distribution of tests over processes."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psutil
import pytest
import torch
from xdist.scheduler import LoadScopeScheduling

from lmcourse.base.units import GIB
from lmcourse.course.chapters import CHAPTERS, Chapter, find_chapter
from lmcourse.exercises import Exercise
from lmcourse.exercises.registry import exercises_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]

WORKER_MEMORY = 3 * GIB
"""Largest number of bytes that one test process needs, including the kernels and graders that it starts."""

LONGEST_FIRST = (
    *("tests/grading/attacks/test_attacks", "tests/grading/test_class", "tests/course/test_grading"),
    *("tests/grading", "tests/browser", "tests/course", "tests/chapters/test_figures", "solutions", "notebooks"),
    *("tests/training", "tests/setup", "tests/site", "tests/own_package", "tests/pretended_gpu"),
)
"""The slowest tests, which begin first: otherwise one process would run them at the end while the others wait."""

LOCKED_IN = "submissions are isolated with Linux's namespaces"
BY_FORK = "a class is graded on Linux or macOS: Windows has no Unix sockets"
PROVE = re.compile(r"^pytestmark = .*\bpytest\.mark\.prove\b", re.MULTILINE)
"""Matches a module whose tests are all for `make prove`."""

ELSEWHERE: dict[str, dict[str, str]] = {
    "darwin": {"tests/grading/test_sandbox": LOCKED_IN, "tests/grading/attacks": LOCKED_IN},
    "win32": {"tests/grading/": BY_FORK, "tests/setup/test_makefile": "Windows installs with pip, not with make"},
}
"""Tests that run only on Linux: the beginning of a module's path, and the reason."""


@pytest.fixture(scope="session")
def course() -> Path:
    """The folder of the course."""
    return ROOT


@pytest.fixture(scope="session")
def in_ci() -> bool:
    """Return True if a missing tool is a failure (in CI); on other machines it only skips tests."""
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.fixture(scope="session")
def chromium(in_ci: bool) -> str:
    """The path of the browser. If there is none, tests are skipped, or fail in CI."""
    missing = "playwright is not installed (pip install playwright)"
    if importlib.util.find_spec("playwright") is not None:
        from lmcourse.site.browser import find_chromium

        path = find_chromium()
        if path is not None:
            return path
        missing = "there is no chromium (on Debian and Ubuntu: apt install chromium)"
    if in_ci:
        pytest.fail(f"The browser tests cannot run: {missing}")
    pytest.skip(f"The browser tests are left out: {missing}")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless browser for one module. If it stayed open, this process's event loop would keep running."""
    from lmcourse.site.browser import open_browser

    with open_browser(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread for comparable runs, because the order of sums changes their rounding."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--notebooks "09 14"`."""
    parser.addoption("--notebooks", default="", help='test only what concerns these notebooks: "09 14"')


def pytest_configure(config: pytest.Config) -> None:
    """Divide the cores among the processes, which would otherwise all use every core. Also write compiled modules,
    because hundreds of processes import the course."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if workers := getattr(config.option, "numprocesses", None):
        threads = str(max(1, cores() // workers))
        os.environ.setdefault("OMP_NUM_THREADS", threads)
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", threads)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """For `-n auto`, use two processes more than there are cores if there is enough memory, because many tests wait for
    a server, a browser or a time limit."""
    return max(1, min(cores() + 2, psutil.virtual_memory().available // WORKER_MEMORY))


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Freeze all objects from the collection of tests. They stay until the end, so garbage collections, such as those
    before each timing, need not visit them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # not preceded by a collection, which takes a second and finds about twenty objects
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the modules of `make prove` in `make test` before their slow imports."""
    if config.option.markexpr == "not prove" and collection_path.suffix == ".py":
        return bool(PROVE.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip modules for other systems before they are imported, with the reason."""
    if reason := skipped_on(sys.platform, module_path):
        module: pytest.Module = Skipped.from_parent(parent, path=module_path)
        module.stash[REASON] = reason
        return module
    return None


REASON = pytest.StashKey[str]()


class Skipped(pytest.Module):
    """A skipped module of tests for another system."""

    def collect(self) -> NoReturn:
        """Skip the module with its reason."""
        pytest.skip(self.stash[REASON], allow_module_level=True)


def skipped_on(platform: str, module: Path) -> str:
    """Return why a module of tests is not for a system; otherwise ""."""
    name = module.relative_to(ROOT).as_posix()
    return next((reason for begins, reason in ELSEWHERE.get(platform, {}).items() if name.startswith(begins)), "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove tests of notebooks that were not requested, and begin with the slowest tests."""
    if names := config.getoption("--notebooks").split():
        chosen = {find_chapter(name) for name in names}
        left_out = [item for item in items if chapter_of(item) not in chosen]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if chapter_of(item) in chosen]
    items.sort(key=lambda item: next((rank for rank, at in enumerate(LONGEST_FIRST) if item.nodeid.startswith(at)), 99))


def chapter_of(item: pytest.Item) -> Chapter | None:
    """Return the chapter of a test, from its parameter, its folder or its file name."""
    parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    if isinstance(chapter := parameters.get("chapter"), Chapter):
        return chapter
    if isinstance(exercise := parameters.get("exercise"), Exercise):
        return next((chapter for chapter in CHAPTERS if exercise in exercises_of(chapter)), None)
    place = item.path.relative_to(ROOT).parts
    if place[0] in ("solutions", "notebooks"):
        return find_chapter(place[1])
    topic = item.path.stem.removeprefix("test_") if place[:2] == ("tests", "chapters") else ""
    return next((chapter for chapter in CHAPTERS if chapter.topic == topic), None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Send the tests of one module to one process, in the order in which they were collected."""
    config.option.loadscopereorder = False
    return ByModule(config, log)


class ByModule(LoadScopeScheduling):  # type: ignore[misc]
    """Like `--dist loadscope`, except that the answer checks of two chapters may run in different processes."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::", 1)[0]
        return nodeid[nodeid.index("[") :] if module == "tests/course/test_checks.py" else module
