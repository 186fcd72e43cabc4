"""The process that has loaded what the notebooks of an assignment need, and forks a child on request.

It is forked from the `zygote`, in bubblewrap, and runs only our code. It ends when the grader hangs up, or goes on to
another assignment.
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

from lmcourse.exercises.forbidden_names import Names, whole_libraries
from lmcourse.grading.examination import child
from lmcourse.grading.fork_server import linux
from lmcourse.grading.fork_server.audit import prepare_audit_hook
from lmcourse.grading.fork_server.child_setup import FORK_FAILED_STATUS, ChildSetup, covered_folders
from lmcourse.grading.fork_server.protocol import KILL, MAX_MESSAGE_BYTES, NEXT, READY
from lmcourse.grading.restrictions import Restrictions, families

ALWAYS_LOADED = ("matplotlib.font_manager",)
"""What is loaded unasked: it lists the machine's fonts by starting a program, which takes seconds and looks strange."""

THREAD_EXIT_SECONDS = 3.0
"""Seconds that a thread of a library gets to end: a fork has only one thread, and a lock that another held stays so."""

MANY_CHILDREN = 12
"""As many children as it takes until what huge pages cost, half a second, is less than what they save."""


def preload() -> None:
    """Load what the notebooks of every assignment need."""
    torch.set_num_threads(1)
    torch.zeros(2).half()  # makes torch read /proc/cpuinfo now: its children have none, and could not round to fp16
    _import(ALWAYS_LOADED)
    child.preload()
    families.warm_up()
    _wait_for_threads(ALWAYS_LOADED)
    gc.freeze()


def serve_assignment(control: socket.socket, settings: dict[str, Any]) -> None:
    """Get ready for the notebooks of an assignment, and serve the grader until it has no more of them."""
    rules = [tuple(each) for each in settings["rules"]]
    restrictions = load_modules(settings["modules"], rules)
    control.send(READY)
    covered = covered_folders(whole_libraries(name for each in rules for name in each))
    setup = ChildSetup(settings["scratch"], settings["drop_privileges"], restrictions, covered)
    serve_forks(control, setup)


def load_modules(modules: Sequence[str], rules: Iterable[Names]) -> Restrictions:
    """Import what notebooks will need; what enforces the rules of exercises, ready for these.

    Raises:
        RuntimeError: one of the modules keeps threads running.
    """
    _import(modules)
    child.disable_checks()
    restrictions = child.prepare_restrictions(rules)
    prepare_audit_hook()
    _wait_for_threads(modules)
    gc.collect()
    gc.freeze()  # so that no child's collector writes to each page that it shares with the others
    gc.enable()
    return restrictions


def _import(modules: Iterable[str]) -> None:
    for name in modules:
        with suppress(Exception):  # then the notebook will fail to import it, and say why
            importlib.import_module(name)


def _wait_for_threads(modules: Sequence[str]) -> None:
    """Wait until this is the only thread. Raises RuntimeError: it takes too long."""
    deadline = monotonic() + THREAD_EXIT_SECONDS
    while len(list(Path("/proc/self/task").iterdir())) > 1:
        if monotonic() > deadline:
            raise RuntimeError(f"one of these modules keeps threads running, which no fork survives: {modules}")
        sleep(0.05)


def serve_forks(control: socket.socket, setup: ChildSetup) -> None:
    """Fork one child after the other, until the grader goes on to another assignment or hangs up."""
    children = 0
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MAX_MESSAGE_BYTES, 2)
        if message in (b"", NEXT):
            return
        if message == KILL:
            continue  # it came too late: that child has ended by itself
        children += 1
        if children == MANY_CHILDREN:
            linux.collect_in_huge_pages()
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
