"""A program run to its end, with a clock and an eye on the memory and the work of all its processes. Linux only."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BETWEEN = 0.05
"""Seconds from one look at the processes to the next."""

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A program that has ended.

    Attributes:
        seconds: from start to end.
        cpu_seconds: of processor time of all its processes; other work on the machine changes it little.
        peak: the most bytes that its processes had in memory at once. What several of them share counts for each.
        status: its exit status.
    """

    seconds: float
    cpu_seconds: float
    peak: int
    status: int


@dataclass(frozen=True)
class Process:
    """What the kernel tells of a process: its parent, its processor time in seconds, and its bytes in memory."""

    parent: int
    cpu_seconds: float
    memory: int


def watch(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Watched:
    """Run a program in a folder; what it prints goes to `log`."""
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
                # The kernel's own sum has every process that was waited for, and none that was killed with its
                # sandbox; the looks have all of them, but for what each did after the last one.
                cpu_seconds = max(cpu_of_children() - waited_for, sum(seen.values()))
                return Watched(time.perf_counter() - start, cpu_seconds, peak, status)


def cpu_of_children() -> float:
    """Seconds of processor time of all child processes that were waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tree_of(root: int) -> dict[int, Process]:
    """A process and all below it, by number."""
    known = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in brackets, may hold spaces; the state and the parent come after it.
            told = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        cpu_seconds = (int(told[11]) + int(told[12])) / TICKS
        known[int(folder.name)] = Process(int(told[1]), cpu_seconds, PAGE * int(told[21]))
    tree, waiting = {}, [root]
    while waiting:
        number = waiting.pop()
        if number in known:
            tree[number] = known[number]
        waiting += [child for child, process in known.items() if process.parent == number]
    return tree
