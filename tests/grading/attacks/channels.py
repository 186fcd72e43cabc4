"""Ways by which two notebooks that are examined at the same time could talk to each other, for the table of attacks."""

from __future__ import annotations

from dataclasses import dataclass

REFUSED, UNSEEN, OPEN = "refused", "nobody else's is seen", "**open**, bit by bit"


@dataclass(frozen=True)
class Channel:
    """One way.

    Attributes:
        what: what is used.
        tells: what another notebook could learn by it.
        here: what becomes of it in the sandbox.
        proof: the test that tries it, in `tests/grading`; none for one that stays open.
    """

    what: str
    tells: str
    here: str
    proof: str = ""


_CHANNELS, _SECRETS, _FORKED = "test_sandbox_channels", "test_sandbox_secrets", "test_fork_server_isolation"

CHANNELS = [
    Channel(
        "`flock`, `lockf` and locks of an open file",
        "who holds one on a file that both may read, or on `/dev/null`",
        UNSEEN,
        f"{_CHANNELS}.test_nobody_elses_locks_are_seen",
    ),
    Channel(
        "`fcntl`: questions about locks, leases, directory notices, pipe sizes, seals",
        "the same, without a lock of one's own",
        REFUSED,
        f"{_CHANNELS}.test_files_have_nothing_else_to_tell",
    ),
    Channel(
        "`inotify`, `fanotify`",
        "who opens a shared file, and when",
        REFUSED,
        f"{_CHANNELS}.test_who_opens_a_file_is_not_told",
    ),
    Channel(
        "times of devices, counters in `/proc`",
        "that somebody touched a device, or worked",
        "read-only, and not shown",
        f"{_CHANNELS}.test_times_of_devices_and_counters_of_the_machine_tell_nothing",
    ),
    Channel(
        "`mincore`, System V and POSIX queues, semaphores and memory, keys of the kernel",
        "which pages of a shared file lie in memory; whatever is put there",
        REFUSED,
        f"{_FORKED}.test_denied_calls_are_denied",
    ),
    Channel(
        "`/tmp`, `/var/tmp`, `/dev/shm`, the home",
        "notes",
        "each has its own",
        f"{_FORKED}.test_nothing_outside_its_folder_can_be_written",
    ),
    Channel(
        "other processes: signals, `/proc/PID`, `ptrace`",
        "that they are there",
        "none is there",
        f"{_FORKED}.test_of_the_processes_it_sees_only_itself",
    ),
    Channel(
        "sockets: TCP, by path, abstract, datagrams",
        "anything",
        REFUSED,
        f"{_SECRETS}.test_servers_of_the_machine_cannot_be_reached",
    ),
    Channel("how long something takes", "that somebody computes, or reads a file for the first time", OPEN),
    Channel("`sysinfo`", "how much memory is free", OPEN),
    Channel("a futex on a page of a shared file", "that somebody waits there", OPEN),
]
"""All of them."""
