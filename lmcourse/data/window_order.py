"""The order of training windows: shuffled, epoch after epoch, the same on any number of processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class WindowOrder:
    """An endless sequence of windows; the n-th is a function of the seed and n alone.

    In an epoch, windows lie side by side and come in random order, each once. An epoch starts them at its own random
    token, so that their borders are elsewhere in the next one. All epochs have as many windows: the fewer than two
    windows' worth of tokens that this leaves out are others each time.

    Args:
        tokens: how many there are in the text.
        seq_len: inputs per window; a window is one token longer, for the last input's target.
        seed: of the shuffling. A newer NumPy may shuffle otherwise.

    Attributes:
        per_epoch: how many windows an epoch has.

    Raises:
        ValueError: the text is shorter than one window.
    """

    def __init__(self, tokens: int, seq_len: int, seed: int) -> None:
        if seq_len < 1 or seed < 0:
            raise ValueError(f"windows need a seq_len of at least 1 and a seed of at least 0, not {seq_len} and {seed}")
        if tokens < seq_len + 1:
            raise ValueError(
                f"the text has {tokens} tokens, and a window of {seq_len} needs {seq_len + 1}: take a longer text or "
                "shorter windows"
            )
        self.tokens, self.seq_len, self.seed = tokens, seq_len, seed
        # (tokens − seq_len) // seq_len windows fit wherever the first one starts, if that is below `seq_len`.
        self.per_epoch = max(1, (tokens - seq_len) // seq_len)
        self._first_tokens = min(seq_len, tokens - self.per_epoch * seq_len)
        self._epoch = -1
        self._starts: NDArray[np.int64] = np.empty(0, np.int64)

    def starts(self, first: int, count: int) -> list[int]:
        """Return where the windows number `first` to `first + count − 1` begin in the text."""
        found: list[int] = []
        while len(found) < count:
            epoch, index = divmod(first + len(found), self.per_epoch)
            found.extend(self._shuffled(epoch)[index : index + count - len(found)].tolist())
        return found

    def _shuffled(self, epoch: int) -> NDArray[np.int64]:
        """Return an epoch's windows. The last epoch is cached, because the next call probably asks for it again."""
        if epoch != self._epoch:
            generator = np.random.default_rng([self.seed, epoch])
            offset = generator.integers(self._first_tokens)
            self._starts = offset + self.seq_len * generator.permutation(self.per_epoch)
            self._epoch = epoch
        return self._starts
