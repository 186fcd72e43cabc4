"""The memory that a process and all its descendants use."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def tree_memory(process: int) -> int:
    """Bytes in use, of their own and shared, without the files of programs and libraries.

    A page that two processes share is counted for both. What ends while we look counts as nothing.

    Args:
        process: the number of the topmost process. Linux only.
    """
    total, waiting = 0, [process]
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        with suppress(OSError):
            total += _used((folder / "status").read_text())
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


def _used(status: str) -> int:
    """The sum of RssAnon and RssShmem, which are in kB, in /proc/PID/status."""
    lines = (line.split() for line in status.splitlines() if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(int(kilobytes) * 1024 for _, kilobytes, _ in lines)
