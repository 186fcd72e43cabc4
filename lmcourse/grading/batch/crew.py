"""Worker processes, one for each thread that asks."""

from __future__ import annotations

import subprocess
import sys
import threading

PROGRAM = (sys.executable, "-P", "-m", "lmcourse.grading.batch.worker")


class WorkerError(Exception):
    """A worker ended instead of answering."""


class Crew:
    """The workers of this process. Each starts with its first job, and anew after it was lost."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._all: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def perform(self, line: str) -> str:
        """The answer to a job, both as a line of JSON. A worker that ends is replaced once.

        Raises:
            WorkerError: two workers ended over this job, or the crew was closed.
        """
        for _ in range(2):
            process = self._worker()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                print(line, file=process.stdin, flush=True)
                if answer := process.stdout.readline():
                    return answer
            except OSError:
                pass
            self._end(process)
        raise WorkerError("the worker ended instead of answering, twice")

    def stop(self) -> None:
        """End all workers, also in the middle of a job. None starts again."""
        with self._lock:
            self._closed = True
        for process in self._all:
            process.kill()

    def close(self) -> None:
        """The same, and tidy up, once no thread asks any more."""
        self.stop()
        while self._all:
            self._all.pop().communicate()

    def _worker(self) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] | None = getattr(self._own, "process", None)
        if process is not None and process.poll() is None:
            return process
        with self._lock:
            if self._closed:
                raise WorkerError("grading was broken off")
            process = self._own.process = subprocess.Popen(
                PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
            self._all.add(process)
        return process

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()
        with self._lock:
            self._all.discard(process)
        self._own.process = None
