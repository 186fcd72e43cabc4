"""Run a program to its end, and measure time, memory and CPU time of all its processes. Linux only."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BETWEEN = 0.05
"""Seconds between two observations of the processes."""

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A program that has ended.

    Attributes:
        seconds: seconds from start to end.
        cpu_seconds: CPU time of all its processes, on which other load has little effect.
        peak: the largest number of bytes that its processes had in memory at once. Shared memory counts for each
            process.
        status: its exit status.
    """

    seconds: float
    cpu_seconds: float
    peak: int
    status: int


@dataclass(frozen=True)
class Process:
    """The kernel's data on a process: its parent, its CPU time in seconds, and its bytes in memory."""

    parent: int
    cpu_seconds: float
    memory: int


def watch(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Watched:
    """Run a program in a folder, with its output in `log`."""
    with log.open("wb") as printed:
        start, waited_for = time.perf_counter(), cpu_of_children()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT
        )
        peak, seen = 0, {}
        while True:
            try:
                status = process.wait(BETWEEN)
            except subprocess.TimeoutExpired:
                tree = tree_of(process.pid)
                peak = max(peak, sum(one.memory for one in tree.values()))
                seen |= {number: one.cpu_seconds for number, one in tree.items()}
            else:
                # The kernel's sum includes all processes that were waited for, but not those killed with their sandbox.
                # The observations include all processes, but not their work after the last observation.
                cpu_seconds = max(cpu_of_children() - waited_for, sum(seen.values()))
                return Watched(time.perf_counter() - start, cpu_seconds, peak, status)


def cpu_of_children() -> float:
    """Return the CPU time of all child processes that were waited for, and of their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tree_of(root: int) -> dict[int, Process]:
    """Return a process and all its descendants, by process id."""
    known = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name in brackets may contain spaces; state and parent come after it.
            told = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended in the meantime
        cpu_seconds = (int(told[11]) + int(told[12])) / TICKS
        known[int(folder.name)] = Process(int(told[1]), cpu_seconds, PAGE * int(told[21]))
    tree, waiting = {}, [root]
    while waiting:
        number = waiting.pop()
        if number in known:
            tree[number] = known[number]
        waiting += [child for child, process in known.items() if process.parent == number]
    return tree
