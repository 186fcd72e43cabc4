"""What every test may use, which notebooks are tested, and how tests are spread over processes."""

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

from lmcourse.course import CHAPTERS, Chapter, find_chapter
from lmcourse.exercises import Exercise
from lmcourse.exercises.registry import exercises_of
from lmcourse.units import GIB

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]

WORKER_MEMORY = 3 * GIB
"""Bytes that one process of tests may need at worst, with the kernels and graders that it starts."""

LONGEST_FIRST = (
    *("tests/grading/attacks/test_attacks", "tests/grading/test_class", "tests/course/test_grading"),
    *("tests/grading", "tests/browser", "tests/course", "solutions", "notebooks", "tests/training"),
    *("tests/setup", "tests/site", "tests/collect"),
)
"""Where the tests are that take longest: begun last, they would keep one process busy while the others wait."""

LOCKED_IN = "submissions are isolated with Linux's namespaces"
BY_FORK = "a class is graded on Linux or macOS: Windows has no Unix sockets"
PROVE = re.compile(r"^pytestmark = .*\bpytest\.mark\.prove\b", re.MULTILINE)
"""A module all of whose tests are for `make prove`."""

ELSEWHERE: dict[str, dict[str, str]] = {
    "darwin": {"tests/grading/test_sandbox": LOCKED_IN, "tests/grading/attacks": LOCKED_IN},
    "win32": {"tests/grading/": BY_FORK, "tests/setup/test_makefile": "Windows installs with pip, not with make"},
}
"""What other systems than Linux do not test: the beginning of a module's path, and the reason."""


@pytest.fixture(scope="session")
def course() -> Path:
    """The folder of the course."""
    return ROOT


@pytest.fixture(scope="session")
def in_ci() -> bool:
    """Whether a missing tool is a failure, on a machine set up for tests, or a skip, on a person's."""
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.fixture(scope="session")
def chromium(in_ci: bool) -> str:
    """The path of the browser. Without one a person's run skips these tests; CI's fails."""
    missing = "playwright is not installed (pip install playwright)"
    if importlib.util.find_spec("playwright") is not None:
        from tests.browser.driver import find_chromium

        path = find_chromium()
        if path is not None:
            return path
        missing = "there is no chromium (on Debian and Ubuntu: apt install chromium)"
    if in_ci:
        pytest.fail(f"The browser tests cannot run: {missing}")
    pytest.skip(f"The browser tests are left out: {missing}")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless browser. One that outlived its module would keep the event loop of this process running."""
    from tests.browser.driver import open_browser

    with open_browser(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """One thread for all runs that are compared: sums in another order are other sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--notebooks "09 14"`."""
    parser.addoption("--notebooks", default="", help='test only what concerns these notebooks: "09 14"')


def pytest_configure(config: pytest.Config) -> None:
    """Share the cores: without this each process would use all of them, and they would wait for each other. And keep
    compiled modules, whatever the environment says: hundreds of processes are started that import the course."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if workers := getattr(config.option, "numprocesses", None):
        threads = str(max(1, cores() // workers))
        os.environ.setdefault("OMP_NUM_THREADS", threads)
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", threads)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`-n auto`: two processes more than there are cores, unless memory is short: many a test waits for a server, a
    browser or the end of a time limit."""
    return max(1, min(cores() + 2, psutil.virtual_memory().available // WORKER_MEMORY))


def cores() -> int:
    """The processor cores that this process may use."""
    return len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep the garbage collector away from what stays to the end: while tests and modules are collected nothing is
    garbage, and afterwards each full pass, one before every measurement of a time, would go through all of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # not preceded by a collection, which takes a second and finds about twenty objects
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out for `make test`, before they are imported, the modules that `make prove` runs: they import most."""
    if config.option.markexpr == "not prove" and collection_path.suffix == ".py":
        return bool(PROVE.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip whole what is another system's, with the reason, before it is imported."""
    if reason := skipped_on(sys.platform, module_path):
        module: pytest.Module = Skipped.from_parent(parent, path=module_path)
        module.stash[REASON] = reason
        return module
    return None


REASON = pytest.StashKey[str]()


class Skipped(pytest.Module):
    """A module of tests that is not for this system."""

    def collect(self) -> NoReturn:
        """Say why, in place of the tests."""
        pytest.skip(self.stash[REASON], allow_module_level=True)


def skipped_on(platform: str, module: Path) -> str:
    """Why a module of tests is not for a system; empty if it is."""
    name = module.relative_to(ROOT).as_posix()
    return next((reason for begins, reason in ELSEWHERE.get(platform, {}).items() if name.startswith(begins)), "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what concerns other notebooks than those asked for, and begin with what takes longest."""
    if names := config.getoption("--notebooks").split():
        chosen = {find_chapter(name) for name in names}
        left_out = [item for item in items if chapter_of(item) not in chosen]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if chapter_of(item) in chosen]
    items.sort(key=lambda item: next((rank for rank, at in enumerate(LONGEST_FIRST) if item.nodeid.startswith(at)), 99))


def chapter_of(item: pytest.Item) -> Chapter | None:
    """The chapter that a test is about: by its parameter, its folder, or the name of its file."""
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
    """Tests of one module go to one process, in the order in which they were collected."""
    config.option.loadscopereorder = False
    return ByModule(config, log)


class ByModule(LoadScopeScheduling):  # type: ignore[misc]
    """As `--dist loadscope`, but the proofs of two chapters have nothing in common, so each may go elsewhere."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::", 1)[0]
        return nodeid[nodeid.index("[") :] if module == "tests/course/test_proof.py" else module
