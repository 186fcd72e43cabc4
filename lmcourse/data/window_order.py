"""The order of training windows: shuffled in each epoch, and the same for any number of processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class WindowOrder:
    """An endless sequence of windows; the n-th depends only on the seed and n.

    In an epoch, the windows are adjacent, and each comes once, in random order. The first window of each epoch starts
    at a random token, so that the borders between windows differ from epoch to epoch. All epochs have the same number
    of windows. This leaves out fewer tokens than two windows have, and different ones in each epoch. Raises ValueError
    if the text is shorter than one window.

    Args:
        tokens: number of tokens in the text.
        seq_len: inputs per window; a window is one token longer, for the last input's target.
        seed: the seed of the shuffling. A newer NumPy may shuffle differently.

    Attributes:
        per_epoch: number of windows in an epoch.
    """

    def __init__(self, tokens: int, seq_len: int, seed: int) -> None:
        if seq_len < 1 or seed < 0:
            raise ValueError(f"windows need a seq_len of at least 1 and a seed of at least 0, not {seq_len} and {seed}")
        if tokens < seq_len + 1:
            raise ValueError(
                f"the text has {tokens} tokens, and a window of {seq_len} needs {seq_len + 1}: use a longer text or "
                "shorter windows"
            )
        self.tokens, self.seq_len, self.seed = tokens, seq_len, seed
        # (tokens − seq_len) // seq_len windows fit for every start of the first window below `seq_len`.
        self.per_epoch = max(1, (tokens - seq_len) // seq_len)
        self._first_tokens = min(seq_len, tokens - self.per_epoch * seq_len)
        self._epoch = -1
        self._starts: NDArray[np.int64] = np.empty(0, np.int64)

    def starts(self, first: int, count: int) -> list[int]:
        """Return the positions in the text at which the windows number `first` to `first + count − 1` begin."""
        found: list[int] = []
        while len(found) < count:
            epoch, index = divmod(first + len(found), self.per_epoch)
            found.extend(self._shuffled(epoch)[index : index + count - len(found)].tolist())
        return found

    def _shuffled(self, epoch: int) -> NDArray[np.int64]:
        """Return an epoch's windows. The last epoch is cached, because the next call probably needs it again."""
        if epoch != self._epoch:
            generator = np.random.default_rng([self.seed, epoch])
            offset = generator.integers(self._first_tokens)
            self._starts = offset + self.seq_len * generator.permutation(self.per_epoch)
            self._epoch = epoch
        return self._starts
