"""A fixed global state (random seeds, torch settings) for checking an answer, restored afterwards; captures output."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass

import torch

from lmcourse.text import one_line

MAX_PRINTED_CHARS = 10_000
"""Characters that are kept of what an answer prints."""

MAX_WARNING_CHARS = 200
"""Characters that are kept of one warning."""


class BoundedBuffer(io.StringIO):
    """A text stream that keeps the first `max_chars` characters: a loop that prints must not fill the memory."""

    def __init__(self, max_chars: int = MAX_PRINTED_CHARS) -> None:
        super().__init__()
        self._free = max_chars

    def write(self, text: str) -> int:
        """Keep as much of the text as fits. Return its whole length, as a file does."""
        super().write(text[: self._free])
        self._free -= min(len(text), self._free)
        return len(text)


@dataclass
class CapturedOutput:
    """Text and warnings that the code produced besides its result.

    Attributes:
        output: what was written to stdout and stderr.
        warned: the warnings, one line each; filled in at the end.
    """

    output: BoundedBuffer
    warned: tuple[str, ...] = ()


@contextmanager
def isolated_state() -> Iterator[CapturedOutput]:
    """Capture output and warnings, start from fixed random numbers, and undo changes of torch's modes. So a check
    gives the same result when it is run again, and leaves the notebook as it was.
    """
    captured = CapturedOutput(BoundedBuffer())
    random_state, grad, dtype = random.getstate(), torch.is_grad_enabled(), torch.get_default_dtype()
    with (
        warnings.catch_warnings(record=True) as warned,
        redirect_stdout(captured.output),
        redirect_stderr(captured.output),
        torch.random.fork_rng(devices=[]),
    ):
        warnings.simplefilter("default")
        random.seed(0)
        torch.default_generator.manual_seed(0)
        try:
            yield captured
        finally:
            random.setstate(random_state)
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
    captured.warned = tuple(f"{item.category.__name__}: {_text(item.message)}" for item in warned)


def _text(message: object) -> str:
    try:
        return one_line(str(message), MAX_WARNING_CHARS)
    except Exception:  # a warning class of the learner's own may fail to print itself
        return ""
