"""Attention to a source for a batch of texts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lmcourse.nn.attend import attention_weights

AttendSource = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(decoder's states, source's states, mask of real words) → weighted means of source states, joined with decoder
states."""


def in_batches(answer: AttendSource) -> Callable[[Tensor, Tensor], Tensor]:
    """Return `attend_source` for a batch of texts without padding; text by text if `torch.vmap` cannot vectorize it."""

    def of_batch(s: Tensor, h: Tensor) -> Tensor:
        texts = s, h, torch.ones(h.shape[:2], dtype=torch.bool)
        try:
            return torch.vmap(answer)(*texts)
        except RuntimeError:
            return torch.stack([answer(*text) for text in zip(*texts, strict=True)])

    return of_batch


def looks(s: Tensor, h: Tensor) -> Tensor:
    """Attention of each of a batch of decoder states (b t d) to each source state (b n d): (b t n)."""
    everything = torch.ones(s.shape[0], s.shape[1], h.shape[1], dtype=torch.bool)
    return attention_weights(s[:, None], h[:, None], everything, scale=1.0)[:, 0]
