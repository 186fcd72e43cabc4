"""A seccomp filter (BPF) that denies system calls to a sandboxed program.

Grading needs none of them. Each either opens a part of the kernel that a sandbox is broken through (user
namespaces, mounts, eBPF, io_uring), reaches into another process, keeps memory that no limit counts
(anonymous files, System V and POSIX queues, keys), or tells another sandbox something by a file that both may read:
locks, leases, watches, and what of it is in memory.

File locks are granted without being asked for. Nobody else can want them, and a database in a file needs them.

The numbers are those of Linux's `unistd` headers, the instructions those of classic BPF (Linux,
Documentation/userspace-api/seccomp_filter.rst).
"""

from __future__ import annotations

import errno
import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""What the kernel calls each machine (AUDIT_ARCH in linux/audit.h)."""

DENIED_SYSCALLS = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "cachestat": (451, 451),
    "delete_module": (176, 106),
    "fadvise64": (221, 223),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "inotify_init1": (294, 26),
    "io_setup": (206, 0),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mincore": (27, 232),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "preadv2": (327, 286),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "readahead": (187, 213),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""Each call's number on x86_64 and on aarch64."""

CLONE = (56, 220)
CLONE3 = (435, 435)
NAMESPACE_FLAGS = 0x7E020000
"""The flags of clone(2) that make a namespace; CLONE_NEWTIME is not among them, clone(2) reads it as a signal."""
SOCKET = (41, 198)
SOCKET_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
"""The sockets that end at the sandbox's own network namespace. AF_VSOCK, for one, reaches a virtual machine's host."""
FLOCK = (73, 32)
FCNTL = (72, 25)
FCNTL_ALLOWED = {
    "F_DUPFD": 0,
    "F_GETFD": 1,
    "F_SETFD": 2,
    "F_GETFL": 3,
    "F_SETFL": 4,
    "F_DUPFD_CLOEXEC": 1030,
    "F_GETPIPE_SZ": 1032,
}
"""What fcntl(2) may do: to descriptors, not to files (linux/fcntl.h)."""
FCNTL_LOCKS = {"F_SETLK": 6, "F_SETLKW": 7, "F_OFD_SETLK": 37, "F_OFD_SETLKW": 38}
"""Of these it says that they are done."""
X32_BASE = 0x40000000
"""Numbers from here on are x86_64's second table of the same calls."""

NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
"""Where they lie in struct seccomp_data, the low word first."""
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000


def syscall_filter(machine: str | None = None) -> bytes:
    """The filter for a machine, by default this one.

    A denied call fails with EPERM; a file lock does nothing and succeeds. clone3 fails with ENOSYS, since its flags lie
    in memory, where a filter cannot look; the C library then uses clone. A call of another architecture's table ends
    the process.

    Raises:
        ValueError: the machine is neither x86_64 nor aarch64.
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        raise ValueError(f"no filter of system calls is written for {machine}, only for {', '.join(ARCHITECTURES)}")
    which = list(ARCHITECTURES).index(machine)
    allow, refuse = _instruction(RETURN, ALLOW), _instruction(RETURN, REFUSE | errno.EPERM)
    pretend = _instruction(RETURN, REFUSE | 0)
    program = [
        _instruction(LOAD, ARCHITECTURE),
        _instruction(EQUAL, ARCHITECTURES[machine], skip_if_true=1),
        _instruction(RETURN, KILL),
        _instruction(LOAD, NUMBER),
    ]
    if machine == "x86_64":
        program += [_instruction(AT_LEAST, X32_BASE, skip_if_false=1), refuse]
    for numbers in DENIED_SYSCALLS.values():
        program += [_instruction(EQUAL, numbers[which], skip_if_false=1), refuse]
    program += [_instruction(EQUAL, FLOCK[which], skip_if_false=1), pretend]
    commands = [(number, allow) for number in FCNTL_ALLOWED.values()]
    commands += [(number, pretend) for number in FCNTL_LOCKS.values()]
    program += [
        _instruction(EQUAL, FCNTL[which], skip_if_false=2 + 2 * len(commands)),
        _instruction(LOAD, SECOND_ARGUMENT),
        *(line for number, end in commands for line in (_instruction(EQUAL, number, skip_if_false=1), end)),
        refuse,
    ]
    program += [
        _instruction(EQUAL, CLONE3[which], skip_if_false=1),
        _instruction(RETURN, REFUSE | errno.ENOSYS),
        _instruction(EQUAL, CLONE[which], skip_if_false=4),
        _instruction(LOAD, FIRST_ARGUMENT),
        _instruction(ANY_BIT, NAMESPACE_FLAGS, skip_if_false=1),
        refuse,
        allow,
        _instruction(EQUAL, SOCKET[which], skip_if_false=2 + len(SOCKET_FAMILIES)),
        _instruction(LOAD, FIRST_ARGUMENT),
    ]
    program += [
        _instruction(EQUAL, one, skip_if_true=len(SOCKET_FAMILIES) - i)
        for i, one in enumerate(SOCKET_FAMILIES.values())
    ]
    return b"".join([*program, refuse, allow])


def _instruction(code: int, value: int, *, skip_if_true: int = 0, skip_if_false: int = 0) -> bytes:
    """One struct sock_filter."""
    return struct.pack("=HBBI", code, skip_if_true, skip_if_false, value)
