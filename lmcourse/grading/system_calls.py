"""Deny system calls to the process of a submission with a seccomp filter."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from typing import NamedTuple

DENIED = {
    "memfd_create": (319, 279),  # files in memory, which `memory_used` does not count
    "memfd_secret": (447, 447),
    "shmget": (29, 194),  # System V's shared memory and queues, likewise
    "msgget": (68, 186),
    "mount": (165, 40),
    "fsopen": (430, 430),
    "io_uring_setup": (425, 425),  # its operations would pass by this filter
    "unshare": (272, 97),
    "keyctl": (250, 219),  # reads the grader's keys
}
"""The denied system calls, with their numbers on x86-64 and on AArch64."""

CLONE3 = 435  # has its flags in memory, which a filter cannot read
X32 = 0x40000000  # this bit in a call's number selects the x32 form of x86-64
CLONE_NEWUSER = 0x10000000


class Machine(NamedTuple):
    """A machine: its place in `DENIED`, its audit architecture, and its number of the system call clone."""

    column: int
    architecture: int
    clone: int


MACHINES = {"x86_64": Machine(0, 0xC000003E, 56), "aarch64": Machine(1, 0xC00000B7, 220)}

# operations of classic BPF: the code, and the two jumps of a comparison (instructions to skip if true and if false)
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# offsets in `struct seccomp_data`
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16

ALLOW = (RETURN, 0, 0, 0x7FFF0000)
DENY = (RETURN, 0, 0, 0x00050001)  # EPERM
UNKNOWN = (RETURN, 0, 0, 0x00050026)  # ENOSYS, so that the C library uses clone instead of clone3

PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38


def deny_system_calls() -> None:
    """Deny the calls in `DENIED` and new user namespaces for the rest of the process; only on Linux."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return
    program = filter_program(MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))


def filter_program(machine: Machine) -> list[tuple[int, int, int, int]]:
    """Return the instructions of the filter, each as its code, two jumps and a value."""
    denied = [numbers[machine.column] for numbers in DENIED.values()]
    return [
        *((LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, machine.architecture), DENY),
        *((LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, X32), DENY),
        *((EQUAL, 0, 1, CLONE3), UNKNOWN),
        *(line for number in denied for line in ((EQUAL, 0, 1, number), DENY)),
        *((EQUAL, 0, 3, machine.clone), (LOAD, 0, 0, FIRST_ARGUMENT), (HAS_BITS, 0, 1, CLONE_NEWUSER), DENY),
        ALLOW,
    ]
