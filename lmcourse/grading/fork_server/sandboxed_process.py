"""A notebook's sandboxed process: monitored by a thread of the grader, and killed."""

from __future__ import annotations

import json
import os
import select
import signal
from contextlib import AbstractContextManager, suppress
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

from lmcourse.grading.examination_result import Evidence, distinct_evidence
from lmcourse.grading.fork_server.protocol import MAX_MESSAGE_BYTES
from lmcourse.grading.fork_server.server_handle import ServerHandle
from lmcourse.grading.sandbox import ResourceLimits
from lmcourse.grading.sandbox.limits import forks_exceed
from lmcourse.units import MIB

POLL_SECONDS = 0.05
"""Seconds between two looks at its memory."""

KILL_SECONDS = 5.0
"""Seconds until a fork parent that does not kill its child is killed itself."""

EXIT_SECONDS = 2.0
"""Seconds between the end of a process's descriptors and its own, at most."""

MAX_REPORT_BYTES = 2**16
"""Bytes that are read from an audit hook in all."""

MAX_LINE_BYTES = 300
"""Bytes of one line from an audit hook."""

AUDIT_KINDS = ("file", "network", "process", "interpreter", "builtins")
"""The kinds of evidence that an audit hook reports."""

FORGED = Evidence("protocol", "What came from the audit hook in its process was not the audit hook's.", "seen")
CUT_OFF = Evidence("protocol", "The audit hook in its process was cut off while the notebook ran on.", "seen")


class SandboxedProcess:
    """One child of a fork parent, and what it started.

    Args:
        server: whose child it is; it has been forked, and is ready.
        limits: of its memory and time.
        audit_pipe: the grader's end of its audit hook's pipe, which this takes over.
        reservation: what holds its user id.
    """

    def __init__(
        self, server: ServerHandle, limits: ResourceLimits, audit_pipe: int, reservation: AbstractContextManager[object]
    ) -> None:
        self._server, self._limits, self._audit_pipe, self._reservation = server, limits, audit_pipe, reservation
        self._reports = AuditReports()
        self._found: list[Evidence] = []
        self._kill_reason = ""
        self._gone = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Kill all of it, and return when it is gone. May be called again."""
        if not self._gone.is_set():
            self._drain_reports()
            if self._reports.closed:
                self._gone.wait(EXIT_SECONDS)  # it is dying, or wants to be thought so
            if not self._gone.is_set() and self._reports.closed:
                self._reports.cut_off()
            self._server.kill_child()
            if not self._gone.wait(KILL_SECONDS):
                self._server.kill()
        self._thread.join()

    def _drain_reports(self) -> None:
        """Give the watching thread time for what the audit hook has written, or for the end of its pipe."""
        deadline = monotonic() + EXIT_SECONDS
        with suppress(OSError, ValueError):  # closed meanwhile: all is read
            while (
                not self._reports.closed and monotonic() < deadline and select.select([self._audit_pipe], [], [], 0)[0]
            ):
                sleep(0.001)

    def kill_reason(self) -> str:
        """Which limit it was killed for, in half a sentence, or nothing."""
        return self._kill_reason

    def evidence(self) -> list[Evidence]:
        """Evidence of tampering; complete once it has been killed."""
        return [*self._found, *self._reports.evidence()]

    def _watch(self) -> None:
        """Until it is gone: check its memory, read its audit hook's reports, and wait for its end."""
        poll = select.poll()
        poll.register(self._server.control, select.POLLIN)
        poll.register(self._audit_pipe, select.POLLIN)
        next_check = monotonic()
        while self._server.control.fileno() not in (ready := dict(poll.poll(1000 * POLL_SECONDS))):
            if self._audit_pipe in ready and self._read_reports():
                poll.unregister(self._audit_pipe)
            if monotonic() >= next_check and not self._kill_reason:
                self._check_memory()
                next_check = monotonic() + POLL_SECONDS
        self._finish()

    def _read_reports(self) -> bool:
        """Read what the audit hook wrote; whether it was the last."""
        self._reports.add(os.read(self._audit_pipe, 4096))
        return self._reports.closed

    def _check_memory(self) -> None:
        if forks_exceed(self._server.pid, self._limits.memory):
            self._kill_reason = f"it used more than {self._limits.memory / MIB:.0f} MiB of memory"
            self._found.append(Evidence("memory", f"The notebook was ended: {self._kill_reason}.", "seen"))
            self._server.kill_child()

    def _finish(self) -> None:
        """All of it is gone, or the fork parent died, and with it the child."""
        status = b""
        with suppress(OSError):
            status = self._server.control.recv(MAX_MESSAGE_BYTES)
        if not status:
            self._server.kill()
        while not self._reports.closed:
            self._read_reports()
        os.close(self._audit_pipe)
        with self._reservation:
            pass
        number = int(status or 0) - 128
        if number == signal.SIGXCPU:
            self._kill_reason = f"it used more than {self._limits.cpu_seconds} s of processor time"
        elif number in set(signal.Signals) - {signal.SIGKILL}:
            what = f"Its Python ended with {signal.Signals(number).name}: a crash, or a signal that it sent itself."
            self._found.append(Evidence("crash", what, "seen"))
        self._gone.set()


class AuditReports:
    """Lines that came over the pipe of one audit hook, perhaps from somebody who took its place.

    Only lines that an audit hook could have written are believed.

    Attributes:
        closed: whether the pipe has ended.
    """

    def __init__(self) -> None:
        self.closed = False
        self._found: list[Evidence] = []
        self._rest = b""
        self._read = 0

    def add(self, piece: bytes) -> None:
        """Take what was read; nothing was read at the end of the pipe."""
        self.closed = self.closed or not piece
        if self._read > MAX_REPORT_BYTES:
            return
        self._read += len(piece)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._found.append(_evidence_of(line))
        if len(self._rest) > MAX_LINE_BYTES or self._read > MAX_REPORT_BYTES or (self.closed and self._rest):
            self._found.append(FORGED)
            self._rest = b""

    def cut_off(self) -> None:
        """Note that the pipe ended before the process did."""
        self._found.append(CUT_OFF)

    def evidence(self) -> list[Evidence]:
        """The evidence in these lines, each piece once."""
        return list(distinct_evidence(self._found))


def _evidence_of(line: bytes) -> Evidence:
    try:
        report: Any = json.loads(line) if len(line) <= MAX_LINE_BYTES else None
        if report.keys() == {"kind", "what"} and report["kind"] in AUDIT_KINDS and isinstance(report["what"], str):
            return Evidence(report["kind"], report["what"], "told")
    except (AttributeError, TypeError, ValueError, RecursionError):
        pass
    return FORGED
