"""The program that preloads torch and forks a child on request. It runs in bubblewrap, and runs only our code.

Its standard input is a socket to the grader (see `protocol`). It ends when the grader hangs up.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import torch

from lmcourse.exercises.forbidden_calls import dotted_name
from lmcourse.exercises.forbidden_names import ANSWER_LIBRARIES, Names, whole_libraries
from lmcourse.grading.examination.child import disable_checks, prepare_restrictions
from lmcourse.grading.fork_server.audit import prepare_audit_hook
from lmcourse.grading.fork_server.child_setup import FORK_FAILED_STATUS, ChildSetup
from lmcourse.grading.fork_server.protocol import KILL, MAX_MESSAGE_BYTES, READY
from lmcourse.grading.restrictions import Restrictions

ALWAYS_LOADED = ("matplotlib.font_manager",)
"""What is loaded unasked: it lists the machine's fonts by starting a program, which takes seconds and looks strange."""

THREAD_EXIT_SECONDS = 3.0
"""Seconds that a thread of a library gets to end: a fork has only one thread, and a lock that another held stays so."""


def main() -> None:
    """Get ready, and serve the grader at the other end of the standard input."""
    control = socket.socket(fileno=os.dup(0))
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    settings = json.loads(control.recv(MAX_MESSAGE_BYTES))
    rules = [tuple(each) for each in settings["rules"]]
    restrictions = load_modules(settings["modules"], rules)
    control.send(READY)
    libraries = (*ANSWER_LIBRARIES, *whole_libraries(name for each in rules for name in each))
    serve_forks(control, ChildSetup(settings["scratch"], settings["drop_privileges"], restrictions, libraries))


def load_modules(modules: Sequence[str], rules: Iterable[Names]) -> Restrictions:
    """Import what notebooks will need; what enforces the rules of exercises, ready for these.

    Raises:
        RuntimeError: one of the modules keeps threads running.
    """
    torch.set_num_threads(1)
    torch.zeros(2).half()  # makes torch read /proc/cpuinfo now: its children have none, and could not round to fp16
    for name in (*ALWAYS_LOADED, *modules):
        with suppress(Exception):  # then the notebook will fail to import it, and say why
            importlib.import_module(name)
    dotted_name(torch.softmax)  # makes torch list all of its functions by name, which takes each process long
    disable_checks()
    restrictions = prepare_restrictions(rules)
    prepare_audit_hook()
    deadline = monotonic() + THREAD_EXIT_SECONDS
    while len(list(Path("/proc/self/task").iterdir())) > 1:
        if monotonic() > deadline:
            raise RuntimeError(f"one of these modules keeps threads running, which no fork survives: {modules}")
        sleep(0.05)
    gc.collect()
    gc.freeze()  # so that no child's collector writes to each page that it shares with the others
    return restrictions


def serve_forks(control: socket.socket, setup: ChildSetup) -> None:
    """Fork one child after the other, until the grader hangs up."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MAX_MESSAGE_BYTES, 2)
        if not message:
            return
        if message == KILL:
            continue  # it came too late: that child has ended by itself
        status = _run_child(control, setup, json.loads(message), descriptors)
        control.send(str(status).encode())


def _run_child(control: socket.socket, setup: ChildSetup, request: dict[str, Any], descriptors: list[int]) -> int:
    """A child from its fork to its end; its exit status."""
    try:
        init = setup.fork(request["user"], *descriptors)
    except OSError as error:
        print(f"no process for a notebook: {error}", flush=True)
        return FORK_FAILED_STATUS
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    pidfd = os.pidfd_open(init)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(control, select.POLLIN)
    if pidfd not in dict(poll.poll()):
        os.kill(init, signal.SIGKILL)  # either "kill", read later, or the grader is gone
    _, status = os.waitpid(init, 0)
    os.close(pidfd)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
