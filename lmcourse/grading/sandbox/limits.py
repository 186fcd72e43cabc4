"""Resource limits of a sandbox, and measuring the memory of its processes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from lmcourse.units import MIB


@dataclass(frozen=True)
class ResourceLimits:
    """Limits of one sandbox. The kernel keeps all but the sum of `memory`, which the grader keeps.

    `memory` limits two things. For each process it is RLIMIT_DATA, so that honest code that asks for too much
    gets a MemoryError it can read. RLIMIT_AS would count the files of libraries as well: `import torch` maps
    0.6 GB and uses 0.2, and a build for CUDA maps several GB. RLIMIT_DATA counts neither shared memory nor the
    sum over processes, so the grader looks at the whole tree as well, and kills it. A cgroup would do both at once,
    but an ordinary user has none without systemd, and a container often none at all.

    By default it is what a check allows in the notebook (so that nothing fails only in a grade), and what torch takes.

    Not limited is the number of files: an empty one costs about 1 KB of the kernel's memory, until the end.

    Args:
        memory: bytes, of a process and of all together. Pages shared after a fork count once per process.
        cpu_seconds: seconds of processor time of one process.
        processes: processes and threads at once. Before Linux 5.14 an ordinary user's others count as well.
        file_size: bytes of one file.
        open_files: file descriptors of one process.
        scratch: bytes that the working folder, and likewise shared memory in /dev/shm, may hold.
    """

    memory: int = 5120 * MIB
    cpu_seconds: int = 900
    processes: int = 64
    file_size: int = 64 * MIB
    open_files: int = 256
    scratch: int = 128 * MIB

    def __post_init__(self) -> None:
        """Raises ValueError unless every limit is positive: 0 often means "without limit"."""
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1, not {getattr(self, field.name)}")

    def rlimits(self) -> dict[str, tuple[int, int]]:
        """The soft and hard limits that the kernel keeps for one process, by their names in the module `resource`."""
        return {
            "RLIMIT_CORE": (0, 0),
            # The signal of the first limit says that it was time; one second later comes SIGKILL.
            "RLIMIT_CPU": (self.cpu_seconds, self.cpu_seconds + 1),
            "RLIMIT_DATA": (self.memory, self.memory),
            "RLIMIT_FSIZE": (self.file_size, self.file_size),
            "RLIMIT_NOFILE": (self.open_files, self.open_files),
            "RLIMIT_NPROC": (self.processes, self.processes),
        }


def process_tree_memory(process: int) -> int:
    """Bytes in use, of their own and shared, without the files of programs and libraries.

    A page that two processes share is counted for both. What ends while we look counts as nothing.

    Args:
        process: the id of the topmost process. Linux only.
    """
    return sum(_sum_of_fields(folder / "status", ("RssAnon:", "RssShmem:")) for folder in _process_tree(process))


def forks_exceed(process: int, limit: int) -> bool:
    """Whether the descendants of a process use more than `limit` bytes, as proportional set size (PSS).

    A page that n processes share is counted as 1/n for each. To find out takes the kernel some milliseconds for each
    process, so it is asked only when the quick sum, in which every page counts as one's own, is too large.
    """
    if process_tree_memory(process) <= limit:
        return False
    forks = [folder for folder in _process_tree(process) if folder.name != str(process)]
    return sum(_sum_of_fields(folder / "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for folder in forks) > limit


def _process_tree(process: int) -> Iterator[Path]:
    """The folders in /proc of a process and all that came from it."""
    waiting = [process]
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        yield folder
        with suppress(OSError):
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def _sum_of_fields(table: Path, fields: Collection[str]) -> int:
    """The sum of some lines of a table of /proc, which are in kB, in bytes; 0 if the process has gone."""
    with suppress(OSError):
        lines = (line.split() for line in table.read_text().splitlines())
        return sum(int(line[1]) * 1024 for line in lines if line[0] in fields)
    return 0
