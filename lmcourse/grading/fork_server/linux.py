"""Linux system calls that Python 3.11 does not wrap: mount, clone with namespaces, capabilities.

Only our own code makes them; a sandboxed process is refused most.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import signal
import socket
import struct
from pathlib import Path

from lmcourse.grading.sandbox.drop_privileges import prctl
from lmcourse.grading.sandbox.seccomp import ARCHITECTURES, CLONE

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
"""Flags of clone(2): namespaces of mounts, of System V IPC, of processes and of the network."""

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
"""Flags of mount(2)."""

MS_REMOUNT, MS_NOATIME, MS_NODIRATIME, MS_RELATIME, ST_RELATIME = 32, 1024, 2048, 1 << 21, 1 << 12
"""More of them; statvfs(2) says the last one in its own way."""

PR_SET_DUMPABLE, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 47, 4
CAPABILITY_VERSION_3 = 0x20080522
MADV_COLLAPSE, HUGE_PAGE = 25, 2**21
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

_libc = ctypes.PyDLL(None, use_errno=True)  # PyDLL: nothing else of Python may run while a process is doubled
_kill = _libc.kill


def fork_into(namespaces: int) -> int:
    """fork() into new namespaces (clone(2)), as their first process; returns 0 in the child, its pid in the parent.

    unshare(2) would do for all but processes: an ordinary user's fork parent cannot go back to its own afterwards.

    Raises:
        OSError: no process can be made.
    """
    clone = CLONE[list(ARCHITECTURES).index(platform.machine())]
    ctypes.pythonapi.PyOS_BeforeFork()
    process: int = _libc.syscall(clone, ctypes.c_ulong(namespaces | signal.SIGCHLD), None, None, None, None)
    number = ctypes.get_errno()
    if process == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if process < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return process


def end_other_processes() -> None:
    """kill(2) of all processes in this namespace but this one and process 1, at once: none gets to fork meanwhile.

    Not by `os.kill`, which a notebook could replace, and of which the audit hook would tell.
    """
    _kill(-1, signal.SIGKILL)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2). `kind` is the file system's, None for a bind mount or a change of flags. Raises OSError."""
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _check(f"mount of {target}", _libc.mount(*words, ctypes.c_ulong(flags), options.encode()))


def remount_read_only(place: str) -> None:
    """Make a mounted file's attributes unchangeable; a device can still be written to. Raises OSError."""
    now = os.statvfs(place).f_flag
    atime = MS_RELATIME if now & ST_RELATIME else 0
    kept = now & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
    mount("none", place, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept | atime)


def set_dumpable(dumpable: bool) -> None:
    """Whether processes of the same user may look into this one (ptrace, /proc/PID/mem). Raises OSError."""
    prctl(PR_SET_DUMPABLE, int(dumpable))


def drop_capabilities() -> None:
    """Give up every right that this process could still use or pass on. Raises OSError."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _check("capset", _libc.capset(header, bytes(24)))


def start_loopback() -> None:
    """Give a new network namespace its own 127.0.0.1, which is all the network there is. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("=16sh14x", b"lo", IFF_UP))


def collect_in_huge_pages() -> None:
    """Have this process's memory in pages of 2 MiB, as far as the kernel can (madvise(2), since Linux 6.1).

    To fork, and to end a fork, then takes a fifth of the time: it is spent on the table of all pages.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, access, _, _, inode, *_ = line.split()
        begin, end = (int(number, 16) for number in place.split("-"))
        first, last = -(-begin // HUGE_PAGE) * HUGE_PAGE, end // HUGE_PAGE * HUGE_PAGE
        if access.startswith("rw") and inode == "0" and first < last:
            _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_COLLAPSE)  # or it stays as it is


def _check(what: str, result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
