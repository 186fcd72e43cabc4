"""Forks kernels: run by path with the number of a listening socket; ends, with all kernels, when its stdin does."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress

from ipykernel import kernelapp

import lmcourse.notebook  # noqa: F401  # what each notebook imports first


def main() -> None:
    """Fork a kernel for each connection."""
    del sys.path[0]  # the folder of this file, which is not for notebooks
    listener = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()  # so that collections in kernels leave the pages alone that all of them share
    callers: dict[int, tuple[socket.socket, int]] = {}  # by the descriptor of each kernel's process
    while True:
        sources = [sys.stdin, listener, *callers, *(caller for caller, _ in callers.values())]
        ready, _, _ = select.select(sources, [], [])
        if sys.stdin in ready:
            for _, pid in callers.values():
                _kill(pid)
            return
        for process, (caller, pid) in [*callers.items()]:
            if process in ready:
                del callers[process]
                _tell_status(caller, pid)
                os.close(process)
            elif caller in ready:  # it was killed, so its kernel is to end
                _kill(pid)
        if listener in ready:
            caller, _ = listener.accept()
            pid = _fork(caller)
            callers[os.pidfd_open(pid)] = (caller, pid)


def _fork(caller: socket.socket) -> int:
    """Start the kernel that a stand-in asks for; its process."""
    connection_file, folder = json.loads(caller.recv(2**16))
    pid = os.fork()
    if pid:
        caller.send(str(pid).encode())
        return pid
    caller.close()
    _become_kernel(connection_file, folder)
    os._exit(0)


def _become_kernel(connection_file: str, folder: str) -> None:
    """What `python -m ipykernel_launcher -f FILE` does, in a process group of its own."""
    os.setsid()
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 2):
        os.dup2(nothing, stream)
    parent = f"--IPKernelApp.parent_handle={os.getppid()}"  # it ends when the server does, however that ends
    sys.argv = ["ipykernel_launcher.py", "-f", connection_file, parent]
    kernelapp.launch_new_instance()


def _tell_status(caller: socket.socket, pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # nobody is there any more
        caller.send(str(os.waitstatus_to_exitcode(status) & 0xFF).encode())
    caller.close()


def _kill(pid: int) -> None:
    """End a kernel and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
