"""Examining a few cells, for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from lmcourse.exercises import Exercise, Report
from lmcourse.grading.examination import Patience, PlainHost, examine
from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.examination.child import serve
from lmcourse.grading.examination.host import Host
from lmcourse.grading.examination_result import Evidence, ExaminationResult

ROOT = Path(__file__).resolve().parents[2]


def code_cells(folder: str, number: str) -> list[str]:
    """The code of a notebook of the course, solved ("solutions") or as it is handed out ("notebooks")."""
    [path] = ROOT.glob(f"{folder}/{number}-*/*.ipynb")
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def examined(
    texts: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int = 1,
    host: Host | None = None,
    patience: Patience | None = None,
    handed_out: Sequence[str] = (),
) -> ExaminationResult:
    """The whole examination, in a plain process unless another host is given."""
    return examine(texts, exercises, seed, host or PlainHost(), patience, handed_out)


def reports_of(
    texts: Sequence[str],
    exercises: Sequence[Exercise],
    seed: int = 1,
    host: Host | None = None,
    patience: Patience | None = None,
) -> dict[str, Report]:
    """The reports alone."""
    return examined(texts, exercises, seed, host, patience).reports


class Fork:
    """A guest that is a fork of the test."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.waited = False

    def kill(self) -> None:
        if not self.waited:
            with suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        self.waited = True

    def ended_for(self) -> str:
        return ""

    def evidence(self) -> list[Evidence]:
        return []


class Forked:
    """A host for most tests: it needs no jail, and has nothing to load."""

    def __init__(self, guest: Callable[[int], Fork] = Fork) -> None:
        self.guest = guest

    def start(self, end: socket.socket) -> Fork:
        process = os.fork()
        if process:
            with suppress(OSError):
                os.setpgid(process, process)  # both sides do, so that it is done before anybody goes on
            end.close()
            return self.guest(process)
        try:
            os.setpgid(0, 0)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            os.closerange(3, end.fileno())  # what the test has open is none of its business
            os.closerange(end.fileno() + 1, 1024)
            torch.set_num_threads(1)  # the threads of the test are not in its fork
            serve(Channel(end))
        finally:
            os._exit(0)
