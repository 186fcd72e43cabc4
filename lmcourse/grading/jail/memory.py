"""The memory that a process and all its descendants use."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path


def tree_memory(process: int) -> int:
    """Bytes in use, of their own and shared, without the files of programs and libraries.

    A page that two processes share is counted for both. What ends while we look counts as nothing.

    Args:
        process: the number of the topmost process. Linux only.
    """
    return sum(_sum_of(folder / "status", ("RssAnon:", "RssShmem:")) for folder in _tree(process))


def forks_use_more(process: int, limit: int) -> bool:
    """Whether the descendants of a process use more than `limit` bytes, where a fork begins with what it shares.

    A page that n processes share is counted as 1/n for each. To find out takes the kernel some milliseconds for each
    process, so it is asked only when the quick sum, in which every page counts as one's own, is too large.
    """
    if tree_memory(process) <= limit:
        return False
    forks = [folder for folder in _tree(process) if folder.name != str(process)]
    return sum(_sum_of(folder / "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for folder in forks) > limit


def _tree(process: int) -> Iterator[Path]:
    """The folders in /proc of a process and all that came from it."""
    waiting = [process]
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        yield folder
        with suppress(OSError):
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def _sum_of(table: Path, fields: Collection[str]) -> int:
    """The sum of some lines of a table of /proc, which are in kB, in bytes; 0 if the process has gone."""
    with suppress(OSError):
        lines = (line.split() for line in table.read_text().splitlines())
        return sum(int(line[1]) * 1024 for line in lines if line[0] in fields)
    return 0
