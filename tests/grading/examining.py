"""Examining a few cells, for tests."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch

from lmcourse.exercises import Exercise, Report
from lmcourse.exercises.forbidden_names import Names
from lmcourse.grading.examination import PlainLauncher, Timeouts, examine
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.examination.child import preload, serve
from lmcourse.grading.examination.code_cells import cells_of
from lmcourse.grading.examination.launchers import Launcher
from lmcourse.grading.examination.own_answers import gives_meaning
from lmcourse.grading.examination_result import Evidence, ExaminationResult
from lmcourse.grading.restrictions import Restrictions, close_side_doors

ROOT = Path(__file__).resolve().parents[2]

RESTRICTIONS = Restrictions()
"""What enforces rules in each fork of the test."""


@dataclass
class Prepared:
    """What the forks of the test find prepared: for these rules, and of so many modules."""

    rules: set[Names] = field(default_factory=set)
    modules: int = 0


PREPARED = Prepared()


def code_cells(folder: str, number: str) -> list[str]:
    """The code of a notebook of the course, solved ("solutions") or as it is handed out ("notebooks")."""
    [path] = ROOT.glob(f"{folder}/{number}-*/*.ipynb")
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def examined(
    texts: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int = 1,
    launcher: Launcher | None = None,
    timeouts: Timeouts | None = None,
    provided_cells: Sequence[str] = (),
    answer_cells: Mapping[str, int] | None = None,
) -> ExaminationResult:
    """The whole examination, in a plain process unless another launcher is given.

    The cell for an answer is the last one that defines it, unless `answer_cells` says another.
    """
    if answer_cells is None:
        cells = cells_of(texts)
        answer_cells = {
            exercise.name: cell.number
            for exercise in exercises
            for cell in cells
            if gives_meaning(cell.tree, exercise.name)
        }
    if isinstance(launcher, ForkLauncher):
        prepare(exercises)
    return examine(texts, answer_cells, exercises, seed, launcher or PlainLauncher(), timeouts, provided_cells)


def prepare(exercises: Sequence[Exercise]) -> None:
    """Do what each fork of the test would do anew: what torch does late, and finding what rules cover, whenever there
    are other rules or more modules."""
    new = {exercise.rules for exercise in exercises} - PREPARED.rules
    if new or len(sys.modules) > PREPARED.modules:
        first = not PREPARED.modules
        preload()
        RESTRICTIONS.prepare(sorted(new))
        PREPARED.rules |= new
        PREPARED.modules = len(sys.modules)
        gc.collect()
        gc.freeze()  # so that no fork's collector writes to what it shares with the test
        if first and sys.platform == "linux":
            from lmcourse.grading.fork_server import linux

            linux.collect_in_huge_pages()


def reports_of(
    texts: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int = 1,
    launcher: Launcher | None = None,
    timeouts: Timeouts | None = None,
) -> dict[str, Report]:
    """The reports alone."""
    return examined(texts, exercises, seed, launcher, timeouts).reports


class ForkedProcess:
    """A process that is a fork of the test."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.waited = False

    def kill(self) -> None:
        if not self.waited:
            with suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        self.waited = True

    def kill_reason(self) -> str:
        return ""

    def evidence(self) -> list[Evidence]:
        return []


class ForkLauncher:
    """A launcher for most tests: it needs no sandbox, and has nothing to load."""

    quick = True

    def __init__(self, process_class: Callable[[int], ForkedProcess] = ForkedProcess) -> None:
        self.process_class = process_class

    def start(self, connection: socket.socket) -> ForkedProcess:
        process = os.fork()
        if process:
            with suppress(OSError):
                os.setpgid(process, process)  # both sides do, so that it is done before anybody goes on
            connection.close()
            return self.process_class(process)
        try:
            os.setpgid(0, 0)
            devnull = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(devnull, stream)
            os.closerange(3, connection.fileno())  # what the test has open is none of its business
            os.closerange(connection.fileno() + 1, 1024)
            torch.set_num_threads(1)  # the threads of the test are not in its fork
            close_side_doors()
            serve(Channel(connection), RESTRICTIONS)
        finally:
            os._exit(0)
