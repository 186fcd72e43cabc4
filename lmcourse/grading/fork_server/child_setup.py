"""Fork a sandboxed child: two forks with namespaces, mounts and limits, dropping privileges on the way.

    parent ──fork──> init ──fork──> child
                     process 1 of the new namespace      runs the notebook
                     never runs a learner's code

init makes new namespaces (processes, files, shared memory, network), which no child has used before. Then it only
waits. When the child ends init ends, and with process 1 the kernel ends whatever is left in the namespace.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from lmcourse.exercises.forbidden_names import ANSWER_LIBRARIES
from lmcourse.grading.examination.child import serve
from lmcourse.grading.fork_server import linux
from lmcourse.grading.fork_server.audit import AuditedChannel, install_audit_hook
from lmcourse.grading.fork_server.protocol import DATA_DIR, READY
from lmcourse.grading.restrictions import Restrictions
from lmcourse.grading.sandbox import WORK_DIR, filesystem
from lmcourse.grading.sandbox.drop_privileges import close_fds_except, drop_privileges

MAX_FILES = 16384
"""Files in each of a child's two folders in memory: an empty one costs memory too."""

NAMESPACES = linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWNET

FORK_FAILED_STATUS = 70
"""The exit status where no child could be forked."""

SETTABLE_SIGNALS = set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}  # two are the C library's own


@dataclass(frozen=True)
class ChildSetup:
    """Settings of every child, and how to fork one.

    Args:
        scratch: bytes of each folder in memory.
        privileges: what `drop_privileges` takes, but for the descriptors and the user.
        restrictions: what enforces the rules of exercises.
        covered: folders in which a child sees nothing.
    """

    scratch: int
    privileges: dict[str, Any]
    restrictions: Restrictions
    covered: tuple[Path, ...]

    def fork(self, uid: int | None, connection: int, audit_pipe: int) -> int:
        """Fork a child; the process id of its init.

        Args:
            uid: the user that it becomes; None: it stays who it is.
            connection: the descriptor of the socket on which it serves requests.
            audit_pipe: the descriptor to which its audit hook writes.

        Raises:
            OSError: no process can be made.
        """
        init = linux.fork_into(NAMESPACES)
        if init == 0:
            _run_or_exit(self._run_init, uid, connection, audit_pipe)
        return init

    def _run_init(self, uid: int | None, connection: int, audit_pipe: int) -> None:
        Path("/proc/self/oom_score_adj").write_text("1000")  # short of memory, the machine kills children first
        linux.set_dumpable(False)
        self._mount_filesystem()
        child = os.fork()
        if child == 0:
            _run_or_exit(self._run_child, uid, connection, audit_pipe)
        close_fds_except([])
        for number in SETTABLE_SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # to process 1 the default is to ignore it
        linux.drop_capabilities()
        while True:
            process, status = os.wait()
            if process == child:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)

    def _mount_filesystem(self) -> None:
        """New mounts: all that the parent or an earlier child could share with this one is covered or left behind."""
        linux.start_loopback()
        linux.mount("none", "/", None, linux.MS_PRIVATE | linux.MS_REC)
        safe = linux.MS_NOSUID | linux.MS_NODEV
        for place in (WORK_DIR, "/dev/shm"):
            options = f"size={self.scratch},nr_inodes={MAX_FILES},mode=1777"
            linux.mount("tmpfs", place, "tmpfs", safe, options)
        for path in Path(DATA_DIR).iterdir():
            target = Path(WORK_DIR, path.name)
            target.mkdir() if path.is_dir() else target.touch()
            linux.mount(str(path), str(target), None, linux.MS_BIND | linux.MS_REC)
        linux.mount("tmpfs", DATA_DIR, "tmpfs", safe | linux.MS_RDONLY, "size=4096")
        for folder in self.covered:
            linux.mount("tmpfs", str(folder), "tmpfs", safe | linux.MS_RDONLY, "size=4096")
        for device in filesystem.SHARED_DEVICES:  # or anybody could set their times, which everybody sees
            linux.remount_read_only(f"/dev/{device}")
        self._mount_proc(safe | linux.MS_NOEXEC | linux.MS_RDONLY)
        linux.mount("tmpfs", "/proc/1", "tmpfs", safe | linux.MS_RDONLY, "size=4096")

    def _mount_proc(self, flags: int) -> None:
        """/proc with processes only: counters of the whole machine, such as its open files, carry messages."""
        try:
            linux.mount("proc", "/proc", "proc", flags, "subset=pid")
        except OSError:  # before Linux 5.8
            linux.mount("proc", "/proc", "proc", flags)

    def _run_child(self, uid: int | None, connection: int, audit_pipe: int) -> None:
        os.setsid()
        devnull = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(devnull, stream)
        drop_privileges({**self.privileges, "keep_fds": [connection, audit_pipe], "uid": uid})
        linux.drop_capabilities()
        linux.set_dumpable(True)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)  # as Python has it: a write that fails is an exception
        os.chdir(WORK_DIR)
        _reset_state()
        channel = AuditedChannel(socket.socket(fileno=connection))
        install_audit_hook(audit_pipe)
        os.write(audit_pipe, READY)
        serve(channel, self.restrictions, linux.end_other_processes)
        os._exit(0)


def covered_folders(libraries: Iterable[str] = ()) -> tuple[Path, ...]:
    """What no notebook is to read: what one imports of the package is loaded, and the rest is none of its business, nor
    is the text of all of it. To be called when everything is loaded.

    Args:
        libraries: more of them that are to be covered, unless they are loaded.
    """
    return (*filesystem.library_folders(), *filesystem.folders_of((*ANSWER_LIBRARIES, *libraries)))


def _reset_state() -> None:
    """Replace what is the parent's, and what must differ in each process. `random` sees to itself after a fork."""
    sys.argv[:] = [""]
    torch.default_generator.seed()
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed()


def _run_or_exit(function: Any, *arguments: Any) -> NoReturn:
    """Do it, and end this process: what is on the stack below is the parent's."""
    try:
        function(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(FORK_FAILED_STATUS)
