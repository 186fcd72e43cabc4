"""The program that `plain_forks` starts: what a notebook's plain process is when it begins to serve, to be forked.

It takes over a folder and a connection at a time, and imports nothing that a plain process does not.
"""

from __future__ import annotations

import gc
import os
import socket

import torch

from lmcourse.grading.examination.channel import Channel
from lmcourse.grading.examination.child import disable_checks, prepare_restrictions, serve


def main() -> None:
    """As `child.main`, but it serves in forks, whose numbers it tells; each is waited for when the next one is asked
    for."""
    control = socket.socket(fileno=os.dup(0))
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(devnull, stream)
    torch.set_num_threads(1)  # threads would not be in a fork
    disable_checks()
    restrictions = prepare_restrictions()
    gc.freeze()
    gc.enable()
    child = 0
    while True:
        folder, [*connection], _, _ = socket.recv_fds(control, 4096, 1)
        if child:
            os.waitpid(child, 0)
        if not folder:
            return
        child = os.fork()
        if child == 0:
            control.close()
            os.setsid()
            os.environ.update(HOME=folder.decode(), IPYTHONDIR=folder.decode())
            os.chdir(folder)
            serve(Channel(socket.socket(fileno=connection[0])), restrictions)
            os._exit(0)
        os.close(connection[0])
        control.send(str(child).encode())
