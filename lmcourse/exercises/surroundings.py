"""What an answer finds around it while it is checked, and what is put back afterwards."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass

import torch

from lmcourse.text import one_line

ENOUGH = 10_000
"""Characters that are kept of what an answer prints."""


class Paper(io.StringIO):
    """Takes what is printed and keeps the first of it: a loop that prints must not fill the memory."""

    def __init__(self, room: int = ENOUGH) -> None:
        super().__init__()
        self.room = room

    def write(self, text: str) -> int:
        super().write(text[: self.room])
        self.room -= min(len(text), self.room)
        return len(text)


@dataclass
class Heard:
    """What came out besides the result. `warned` is filled in at the end."""

    paper: Paper
    warned: tuple[str, ...] = ()


@contextmanager
def surroundings() -> Iterator[Heard]:
    """Catch what is printed and warned of, start from the same random numbers each time, and undo changes of torch's
    modes: a check gives the same result when it is run again, and leaves the notebook as it was."""
    heard = Heard(Paper())
    luck, grad, dtype = random.getstate(), torch.is_grad_enabled(), torch.get_default_dtype()
    with (
        warnings.catch_warnings(record=True) as warned,
        redirect_stdout(heard.paper),
        redirect_stderr(heard.paper),
        torch.random.fork_rng(devices=[]),
    ):
        warnings.simplefilter("default")
        random.seed(0)
        torch.default_generator.manual_seed(0)
        try:
            yield heard
        finally:
            random.setstate(luck)
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
    heard.warned = tuple(f"{warning.category.__name__}: {_text(warning.message)}" for warning in warned[:ENOUGH])


def _text(message: object) -> str:
    try:
        return one_line(str(message), 200)
    except Exception:  # a warning class of the learner's own may fail to print itself
        return ""
