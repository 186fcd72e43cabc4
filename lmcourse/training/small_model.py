"""The smallest model and its text, in loaders of three kinds: whole, ragged, and on a machine that loses power."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.data.loader import Loader

VOCAB_SIZE = 8
"""Number of different tokens in the text."""


def small_model(seed: int = 0, dropout: float = 0.0) -> nn.Sequential:
    """Return a model of 224 parameters in fp64 for the text of `small_loader`."""
    torch.default_generator.manual_seed(seed)
    parts = nn.Embedding(VOCAB_SIZE, 12), nn.LayerNorm(12), nn.Dropout(dropout), nn.Linear(12, VOCAB_SIZE)
    return nn.Sequential(*parts).double()


class PowerCutError(Exception):
    """Raised when the simulated machine loses power in the middle of a run."""


class FailingLoader(Loader):
    """A loader on a machine that loses power after some batches: from then on, `next` raises PowerCutError."""

    batches_left = 0

    def __next__(self) -> Batch:
        if self.batches_left < 1:
            raise PowerCutError("the power failed")
        self.batches_left -= 1
        return super().__next__()


def small_loader(batch: int = 2, fails_after: int | None = None) -> Loader:
    """Return a loader of a learnable text, in batches of this many windows of 8 tokens."""
    if fails_after is None:
        return Loader(small_text(), batch, seq_len=8, seed=0, prefetch=0)
    loader = FailingLoader(small_text(), batch, seq_len=8, seed=0, prefetch=0)
    loader.batches_left = fails_after
    return loader


class RaggedLoader(Loader):
    """A loader of windows with different numbers of targets: every third has two that count, the others have all."""

    def __next__(self) -> Batch:
        batch = super().__next__()
        short = torch.arange(self._windows - self.batch, self._windows) % 3 == 0
        targets = batch.targets.clone()
        targets[short, 2:] = IGNORE_INDEX
        return Batch(batch.inputs, targets)


def ragged_loader(batch: int = 2) -> Loader:
    """Return such a loader. k batches of one window have the same windows as one batch of k."""
    return RaggedLoader(small_text(), batch, seq_len=8, seed=0, prefetch=0)


def small_text() -> Tensor:
    """A text that can be learned: each token is the one before it plus 1 or 3."""
    jumps = torch.randint(2, (400,), generator=torch.Generator().manual_seed(0))
    return (1 + 2 * jumps).cumsum(0) % VOCAB_SIZE
