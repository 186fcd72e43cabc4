"""From the keeper to a guest: two forks, and on the way everything is taken that a guest must not have.

    keeper ──fork──> init ──fork──> guest
                     process 1 of the new namespace      runs the notebook
                     never runs a learner's code

init makes the rooms (processes, files, shared memory, network), which no guest has used before. It only waits then.
When the guest ends init ends, and with process 1 the kernel ends whatever is left in the namespace.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from lmcourse.grading.examination.child import serve
from lmcourse.grading.jail.bubblewrap import WORK
from lmcourse.grading.jail.enter import close_all_but, give_up
from lmcourse.grading.nursery import kernel
from lmcourse.grading.nursery.wire import DATA, READY
from lmcourse.grading.nursery.witness import WitnessedChannel, install

FILES = 16384
"""Files in each of a guest's two folders in memory: an empty one costs memory too."""

NAMESPACES = kernel.NEW_PROCESSES | kernel.NEW_MOUNTS | kernel.NEW_IPC | kernel.NEW_NETWORK

FAILED = 70
"""The exit status where no guest could be made."""

EVERY_SIGNAL = set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}  # two are the C library's own


@dataclass(frozen=True)
class Cradle:
    """What each guest is given.

    Args:
        scratch: bytes of each folder in memory.
        surrender: what `enter.give_up` takes, but for the descriptors and the user.
    """

    scratch: int
    surrender: dict[str, Any]

    def birth(self, user: int | None, channel: int, witness: int) -> int:
        """Fork a guest; the process number of its init.

        Raises:
            OSError: no process can be made.
        """
        init = kernel.fork_into(NAMESPACES)
        if init == 0:
            _or_die(self._be_init, user, channel, witness)
        return init

    def _be_init(self, user: int | None, channel: int, witness: int) -> None:
        Path("/proc/self/oom_score_adj").write_text("1000")  # short of memory, the machine ends guests first
        kernel.set_readable(False)
        self._furnish()
        guest = os.fork()
        if guest == 0:
            _or_die(self._be_guest, user, channel, witness)
        close_all_but([])
        for number in EVERY_SIGNAL:
            signal.signal(number, signal.SIG_DFL)  # to process 1 the default is to ignore it
        kernel.drop_capabilities()
        while True:
            process, status = os.wait()
            if process == guest:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)

    def _furnish(self) -> None:
        """New rooms: all that the keeper or an earlier guest could share with this one is covered or left behind."""
        kernel.start_loopback()
        kernel.mount("none", "/", None, kernel.PRIVATE | kernel.RECURSIVE)
        harmless = kernel.NO_SUID | kernel.NO_DEVICES
        for place in (WORK, "/dev/shm"):
            options = f"size={self.scratch},nr_inodes={FILES},mode=1777"
            kernel.mount("tmpfs", place, "tmpfs", harmless, options)
        for path in Path(DATA).iterdir():
            target = Path(WORK, path.name)
            target.mkdir() if path.is_dir() else target.touch()
            kernel.mount(str(path), str(target), None, kernel.BIND | kernel.RECURSIVE)
        kernel.mount("tmpfs", DATA, "tmpfs", harmless | kernel.READ_ONLY, "size=4096")
        kernel.mount("proc", "/proc", "proc", harmless | kernel.NO_PROGRAMS | kernel.READ_ONLY)
        kernel.mount("tmpfs", "/proc/1", "tmpfs", harmless | kernel.READ_ONLY, "size=4096")

    def _be_guest(self, user: int | None, channel: int, witness: int) -> None:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        give_up({**self.surrender, "keep": [channel, witness], "uid": user})
        kernel.drop_capabilities()
        kernel.set_readable(True)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)  # as Python has it: a write that fails is an exception
        os.chdir(WORK)
        _forget()
        end = WitnessedChannel(socket.socket(fileno=channel))
        install(witness)
        os.write(witness, READY)
        serve(end)
        os._exit(0)


def _forget() -> None:
    """What is of the keeper, and what has to be another one in each process. `random` sees to itself after a fork."""
    sys.argv[:] = [""]
    torch.default_generator.seed()
    if drawing := sys.modules.get("numpy.random"):
        drawing.seed()


def _or_die(act: Any, *arguments: Any) -> NoReturn:
    """Do it, and end this process: what is on the stack below is the keeper's."""
    try:
        act(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(FAILED)
