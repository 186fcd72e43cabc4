"""The program that has torch loaded and forks a guest when it is told to. It runs in bubblewrap, and only our code.

Its standard input is a socket to the grader, one message each:

    settings →                          ← "ready"
    {"user": …} with two descriptors →  (a guest is born)
    "kill", if it is not to end itself →
                                        ← the guest's exit status, when all of it is gone

It ends when the grader hangs up.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import torch

from lmcourse.grading.examination.quiet import quieten
from lmcourse.grading.nursery.cradle import FAILED, Cradle
from lmcourse.grading.nursery.wire import KILL, LONGEST, READY
from lmcourse.grading.nursery.witness import prepare

ALWAYS = ("matplotlib.font_manager",)
"""What is loaded unasked: it lists the machine's fonts by starting a program, which takes seconds and looks strange."""

SETTLE = 3.0
"""Seconds that a thread of a library gets to end: a fork has only one thread, and a lock that another held stays so."""


def main() -> None:
    """Get ready, and serve the grader at the other end of the standard input."""
    control = socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    settings = json.loads(control.recv(LONGEST))
    load(settings["modules"])
    control.send(READY)
    keep(control, Cradle(settings["scratch"], settings["surrender"]))


def load(modules: Sequence[str]) -> None:
    """Import what guests will need.

    Raises:
        RuntimeError: one of the modules keeps threads running.
    """
    torch.set_num_threads(1)
    for name in (*ALWAYS, *modules):
        with suppress(Exception):  # then the notebook will fail to import it, and say why
            importlib.import_module(name)
    quieten()
    prepare()
    deadline = monotonic() + SETTLE
    while len(list(Path("/proc/self/task").iterdir())) > 1:
        if monotonic() > deadline:
            raise RuntimeError(f"one of these modules keeps threads running, which no fork survives: {modules}")
        sleep(0.05)
    gc.collect()
    gc.freeze()  # so that no guest's collector writes to each page that it shares with the others


def keep(control: socket.socket, cradle: Cradle) -> None:
    """One guest after the other, until the grader hangs up."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LONGEST, 2)
        if not message:
            return
        if message == KILL:
            continue  # it came too late: that guest has ended by itself
        status = _one_guest(control, cradle, json.loads(message), descriptors)
        control.send(str(status).encode())


def _one_guest(control: socket.socket, cradle: Cradle, request: dict[str, Any], descriptors: list[int]) -> int:
    """A guest from birth to end; its exit status."""
    try:
        init = cradle.birth(request["user"], *descriptors)
    except OSError as error:
        print(f"no process for a guest: {error}", flush=True)
        return FAILED
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    ended = os.pidfd_open(init)
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.register(control, select.POLLIN)
    if ended not in dict(waiting.poll()):
        os.kill(init, signal.SIGKILL)  # either "kill", read later, or the grader is gone
    _, status = os.waitpid(init, 0)
    os.close(ended)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
