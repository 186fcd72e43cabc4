"""Check answers in a fixed global state (random seeds, torch settings), capture output, and restore the state."""

from __future__ import annotations

import io
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout

import torch

from lmcourse.base.text import one_line

MAX_PRINTED_CHARS = 10_000

MAX_WARNING_CHARS = 200

RECURSION_LIMIT = 3_000
"""Python's limit while an answer runs, as in a new kernel; a grade does not run a cell that raises it."""


class BoundedBuffer(io.StringIO):
    """A text stream that keeps only the first `max_chars` characters, so that a printing loop cannot fill the
    memory."""

    def __init__(self, max_chars: int = MAX_PRINTED_CHARS) -> None:
        super().__init__()
        self._free = max_chars

    def write(self, text: str) -> int:
        """Keep as much of the text as fits, and return the length of the whole text, as a file does."""
        super().write(text[: self._free])
        self._free -= min(len(text), self._free)
        return len(text)


@contextmanager
def isolated_state(*, compiled: bool = False) -> Iterator[tuple[BoundedBuffer, list[warnings.WarningMessage]]]:
    """Capture output and warnings, set fixed random seeds, and undo changes of torch's modes. So a repeated check gives
    the same result, and a check does not change the notebook's state.

    A function under `torch.compile` runs as it is written, because compiling takes longer than a check may; if
    `compiled`, it is compiled.
    """
    # torch has imported its compiler, which takes seconds, if it is used
    as_written = not compiled and "torch._dynamo" in sys.modules
    output = BoundedBuffer()
    random_state, grad, dtype = random.getstate(), torch.is_grad_enabled(), torch.get_default_dtype()
    recursion = sys.getrecursionlimit()
    with (
        warnings.catch_warnings(record=True) as warned,
        redirect_stdout(output),
        redirect_stderr(output),
        torch.random.fork_rng(devices=[]),
        torch.compiler.set_stance("force_eager") if as_written else nullcontext(),
    ):
        warnings.simplefilter("default")
        random.seed(0)
        torch.default_generator.manual_seed(0)
        sys.setrecursionlimit(min(recursion, RECURSION_LIMIT))
        try:
            yield output, warned
        finally:
            sys.setrecursionlimit(recursion)
            random.setstate(random_state)
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)


def warning_line(warned: warnings.WarningMessage) -> str:
    """Return a warning as one line."""
    try:
        return f"{warned.category.__name__}: {one_line(str(warned.message), MAX_WARNING_CHARS)}"
    except Exception:  # printing a warning of the learner's own class may fail
        return f"{warned.category.__name__}: "
