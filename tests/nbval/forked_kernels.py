"""Kernels for nbval that are forked from a process which has loaded what each notebook imports first.

A kernel of its own spends two seconds on PyTorch and Matplotlib before its first cell, and 40 notebooks are run. A
forked one is as far as `from lmcourse.notebook import ...` brings it, the first import of every notebook, and no cell
has run in it. nbval starts, interrupts and ends `stand_in.py`, a small process in the place of the kernel, which passes
on to the kernel what happens to it.
"""

from __future__ import annotations

import atexit
import secrets
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from traitlets import default

SERVER = Path(__file__).with_name("kernel_server.py")
STAND_IN = Path(__file__).with_name("stand_in.py")


class ForkedKernelManager(KernelManager):  # type: ignore[misc]
    """Starts kernels that are forked.

    They listen at sockets in a folder: a TCP port is chosen before there is a kernel, and another process may take it
    while the server starts.
    """

    @default("transport")
    def _default_transport(self) -> str:
        return "ipc"

    @default("connection_file")
    def _default_connection_file(self) -> str:
        return f"{folder()}/{secrets.token_hex(8)}.json"

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """What is run in the place of `python -m ipykernel_launcher -f FILE`."""
        return [sys.executable, "-I", "-S", str(STAND_IN), server(), self.connection_file]


@cache
def server() -> str:
    """The name of the socket of this process's server, which is started when its first kernel is."""
    name = f"lmcourse-kernels-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")  # a name and no file, so nothing has to be removed
        listener.listen()
        command = [sys.executable, str(SERVER), str(listener.fileno())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    atexit.register(_end, process)
    return name


@cache
def folder() -> str:
    """Where this process's kernels have their sockets, until it ends."""
    made = tempfile.TemporaryDirectory(prefix="lmcourse-kernels-", ignore_cleanup_errors=True)
    atexit.register(made.cleanup)
    return made.name


def _end(process: subprocess.Popen[Any]) -> None:
    """The server ends when its stdin does, and its kernels with it."""
    process.communicate()
