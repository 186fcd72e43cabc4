"""What a notebook asks of the course while it is graded: nothing. Its checks are made outside, and nobody looks on."""

from __future__ import annotations

import torch

import lmcourse.exercises
import lmcourse.notebook


def quieten() -> None:
    """Have `check`, `hint`, `predict` and `explore` do nothing, and `start` only seed, in this process.

    The exercises themselves, with what is right and what is hidden, are not to be seen from here (see
    `lmcourse.grading.jail.view`), so they could not answer.
    """
    for module in (lmcourse.notebook, lmcourse.exercises):
        for name in {"check", "check_exercise", "explore", "hint", "predict"} & vars(module).keys():
            setattr(module, name, _nothing)
    lmcourse.notebook.start = _start


def _nothing(*_: object, **__: object) -> None:
    pass


def _start(chapter: str) -> None:
    torch.manual_seed(0)
