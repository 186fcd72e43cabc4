"""The reader's answers inside a model in training; the course's versions replace missing answers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lmcourse.nn.attend import attention_weights, weighted_values

OURS = "the course's, until yours is there"

AttendSource = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(decoder's states, source's states, mask of real words) → weighted means of source states, joined with decoder
states."""

MemorySpan = Callable[..., int | None]
"""(cell, first state, inputs, gradient at the last state) → the lag at which half of the gradient is lost."""


def teacher_or_ours(answer: Callable[[Tensor, int], Tensor]) -> tuple[Callable[[Tensor, int], Tensor], str]:
    """The reader's `teacher_inputs` and "yours"; if it is missing or wrong, the course's and a note that says so."""
    rows = torch.tensor([[4, 2, 9], [3, 3, 8]])
    try:
        right = torch.equal(answer(rows.clone(), 7), _read(rows, 7))
    except Exception:  # any exception counts as wrong: the exercise's own check explains it
        right = False
    return (answer, "yours") if right else (_read, OURS)


def attention_or_ours(answer: AttendSource) -> tuple[Callable[[Tensor, Tensor], Tensor], str]:
    """The reader's `attend_source` for a batch of texts without padding, and "yours".

    If theirs is missing or wrong, or `torch.vmap` cannot vectorize it, the result is the course's.
    """

    def of_batch(s: Tensor, h: Tensor) -> Tensor:
        real = torch.ones(h.shape[:2], dtype=torch.bool)
        return torch.vmap(answer)(s, h, real)

    source = torch.Generator().manual_seed(0)
    s, h = (torch.randn(2, length, 4, generator=source) for length in (1, 3))
    try:
        right = torch.allclose(of_batch(s, h), _attend(s, h), atol=1e-5)
    except Exception:  # any exception counts as wrong: the exercise's own check explains it
        right = False
    return (of_batch, "yours") if right else (_attend, OURS)


def span_or_ours(answer: MemorySpan) -> tuple[MemorySpan, str]:
    """The reader's `memory_span` and "yours"; if it is missing or wrong, the course's and a note that says so."""
    state, inputs, v = torch.zeros(2), torch.zeros(20, 2), torch.tensor([3.0, 4.0])
    try:
        found = [answer(lambda s, x, keep=keep: keep * s + x, state, inputs, v) for keep in (0.9, 0.5, 1.0)]
        right = found == [7, 2, None]
    except Exception:  # any exception counts as wrong: the exercise's own check explains it
        right = False
    return (answer, "yours") if right else (_span, OURS)


def _span(step: Callable[[Tensor, Tensor], Tensor], state: Tensor, inputs: Tensor, v: Tensor) -> int | None:
    states = [state.detach().requires_grad_()]
    for x in inputs:
        states.append(step(states[-1], x))
    gradients = torch.autograd.grad(states[-1] @ v, states)[::-1]
    return next((lag for lag, each in enumerate(gradients) if lag and each.norm() < v.norm() / 2), None)


def _read(target: Tensor, start: int) -> Tensor:
    return torch.nn.functional.pad(target, (1, -1), value=start)


def _attend(s: Tensor, h: Tensor) -> Tensor:
    return torch.cat([weighted_values(looks(s, h)[:, None], h[:, None])[:, 0], s], dim=-1)


def looks(s: Tensor, h: Tensor) -> Tensor:
    """Attention of each of a batch of decoder states (b t d) to each source state (b n d): (b t n)."""
    everything = torch.ones(s.shape[0], s.shape[1], h.shape[1], dtype=torch.bool)
    return attention_weights(s[:, None], h[:, None], everything, scale=1.0)[:, 0]
