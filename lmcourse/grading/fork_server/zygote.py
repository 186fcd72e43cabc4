"""The program that loads torch once, and forks a fork parent for one assignment after the other. It runs in bubblewrap.

A parent loads what the notebooks of its assignment need on top, and takes all of that with it when it ends: what is
loaded here belongs to no assignment. Its standard input is a socket to the grader (see `protocol`). It ends when the
grader hangs up, or when a parent dies.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from lmcourse.grading.fork_server.fork_parent import preload, serve_assignment
from lmcourse.grading.fork_server.protocol import MAX_MESSAGE_BYTES


def main() -> None:
    """Get ready, and serve the grader at the other end of the standard input."""
    control = socket.socket(fileno=os.dup(0))
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    preload()
    while settings := control.recv(MAX_MESSAGE_BYTES):
        parent = os.fork()
        if parent == 0:
            serve_assignment(control, json.loads(settings))
            os._exit(0)
        if os.waitpid(parent, 0)[1]:
            sys.exit(1)
