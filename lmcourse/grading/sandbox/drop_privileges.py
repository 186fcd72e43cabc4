"""The first program inside the sandbox: drops the remaining privileges, then executes the learner's program.

It runs before anything of a learner does, as a file of its own (`python -I -S drop_privileges.py SETTINGS PROGRAM …`),
and so imports nothing of this package. What it sets, no later program can take back.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2


class SockFprog(ctypes.Structure):
    """struct sock_fprog: a seccomp filter and its length in instructions of 8 bytes."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def exec_program(settings: dict[str, Any], program: list[str]) -> None:
    """Drop privileges and become the program: a path and its arguments.

    Raises:
        OSError: the kernel refused; then nothing is run.
    """
    drop_privileges(settings)
    os.execv(program[0], program)


def drop_privileges(settings: dict[str, Any]) -> None:
    """Limit this process, for good: descriptors, resources, user and system calls.

    Args:
        settings: `limits` (soft and hard, by their names in the module `resource`), `keep_fds` (file descriptors),
            `uid` (None: stay) and `filter` (of system calls, in hexadecimal).

    Raises:
        OSError: the kernel refused; then this process must not go on.
    """
    close_fds_except(settings["keep_fds"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what it ignores would stay ignored
        signal.signal(number, signal.SIG_DFL)
    for name, (soft, hard) in settings["limits"].items():
        lower_limit(getattr(resource, name), soft, hard)
    if settings["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[settings["uid"]] * 3)
        os.setresuid(*[settings["uid"]] * 3)
    bytecode = bytes.fromhex(settings["filter"])
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(SockFprog(len(bytecode) // 8, bytecode)))


def close_fds_except(keep: list[int]) -> None:
    """Close what was inherited, except the standard streams and the descriptors to keep."""
    start = 3
    for number in sorted(set(keep) | {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}):
        os.closerange(start, number)
        start = max(start, number + 1)


def lower_limit(kind: int, soft: int, hard: int) -> None:
    """Set a limit, unless the grader itself runs under a lower one, which nobody inside may raise."""
    ours = resource.getrlimit(kind)[1]
    if ours != resource.RLIM_INFINITY:
        soft, hard = min(soft, ours), min(hard, ours)
    resource.setrlimit(kind, (soft, hard))


def prctl(option: int, value: int, argument: Any = 0) -> None:
    """prctl(2), with an exception where it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), argument, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")


if __name__ == "__main__":
    exec_program(json.loads(sys.argv[1]), sys.argv[2:])
