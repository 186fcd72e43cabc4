"""How much of the machine a jailed program may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lmcourse.units import MIB


@dataclass(frozen=True)
class Limits:
    """Limits of one jail. The kernel keeps all but the sum of `memory`, which `run` keeps.

    `memory` limits two things. For each process it is RLIMIT_DATA, so that honest code that asks for too much
    gets a MemoryError it can read. RLIMIT_AS would count the files of libraries as well: `import torch` maps
    0.6 GB and uses 0.2, and a build for CUDA maps several GB. RLIMIT_DATA counts neither shared memory nor the
    sum over processes, so `run` looks at the whole tree as well, and kills it. A cgroup would do both at once,
    but an ordinary user has none without systemd, and a container often none at all.

    Not limited is the number of files: an empty one costs about 1 KB of the kernel's memory, until the end.

    Args:
        memory: bytes, of a process and of all together. Pages shared after a fork count once per process.
        cpu_seconds: seconds of processor time of one process.
        processes: processes and threads at once. Before Linux 5.14 an ordinary user's others count as well.
        file_size: bytes of one file.
        open_files: file descriptors of one process.
        scratch: bytes that the working folder, and likewise shared memory in /dev/shm, may hold.
    """

    memory: int = 2048 * MIB
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

    def of_process(self) -> dict[str, tuple[int, int]]:
        """The soft and the hard limits that the kernel keeps for one process, by their names in `resource`."""
        return {
            "RLIMIT_CORE": (0, 0),
            # The signal of the first limit says that it was time; one second later comes SIGKILL.
            "RLIMIT_CPU": (self.cpu_seconds, self.cpu_seconds + 1),
            "RLIMIT_DATA": (self.memory, self.memory),
            "RLIMIT_FSIZE": (self.file_size, self.file_size),
            "RLIMIT_NOFILE": (self.open_files, self.open_files),
            "RLIMIT_NPROC": (self.processes, self.processes),
        }
