"""A program run to its end, with a clock and an eye on the memory of all its processes. Linux only."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BETWEEN = 0.2
"""Seconds from one look at the memory to the next."""

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Watched:
    """A program that has ended.

    Attributes:
        seconds: from start to end.
        cpu_seconds: of processor time, its own and that of all processes that it waited for; other work on the machine
            changes it little.
        peak: the most bytes that its processes had in memory at once. What several of them share counts for each.
        status: its exit status.
    """

    seconds: float
    cpu_seconds: float
    peak: int
    status: int


def watch(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Watched:
    """Run a program in a folder; what it prints goes to `log`."""
    with log.open("wb") as printed:
        start, cpu_start = time.perf_counter(), cpu_of_children()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT
        )
        peak = 0
        while True:
            try:
                status = process.wait(BETWEEN)
            except subprocess.TimeoutExpired:
                peak = max(peak, memory_of_tree(process.pid))
            else:
                return Watched(time.perf_counter() - start, cpu_of_children() - cpu_start, peak, status)


def cpu_of_children() -> float:
    """Seconds of processor time of all child processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_of_tree(root: int) -> int:
    """Bytes in memory of a process and all below it."""
    parents, memory = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in brackets, may hold spaces; the state and the parent come after it.
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            memory[int(folder.name)] = PAGE * int((folder / "statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    total, todo = 0, [root]
    while todo:
        one = todo.pop()
        total += memory.get(one, 0)
        todo += [child for child, parent in parents.items() if parent == one]
    return total
