"""A simulated decoding step to be timed: a device with a queue, the cache that each step fills, and the CPU's clock.

No mark depends on a real clock, and every mistake gives another number.
"""

from __future__ import annotations

from collections.abc import Sequence


class SimulatedDecoder:
    """An asynchronous device that decodes, its own cache, and the clock of the CPU that feeds it.

    Args:
        past: tokens in the cache at the beginning.
        seconds: how long the device works on the first step, the second, …; further steps repeat all but
            the first, so that it does not matter how many come before those that count.
        per_token: seconds that a step takes longer for each token in the cache beyond `past`.
        launch: seconds of the CPU to hand over a step.
        forget: seconds of the CPU to truncate the cache.
    """

    def __init__(
        self, past: int, seconds: Sequence[float], *, per_token: float = 0.0, launch: float = 0.0, forget: float = 0.0
    ) -> None:
        self.cache, self._tokens = self, past
        self.past, self.seconds, self.per_token, self.launch, self.forget = past, seconds, per_token, launch, forget
        self.steps = 0
        self.now = 0.0
        self._done = 0.0

    def __len__(self) -> int:
        """The number of tokens in the cache."""
        return self._tokens

    def truncate(self, tokens: int) -> None:
        """Keep the first `tokens` tokens of the cache. The CPU works on it for `forget` seconds."""
        if not 0 <= tokens <= self._tokens:
            raise ValueError(f"the cache holds {self._tokens} tokens and cannot keep {tokens}")
        self._tokens = tokens
        self.now += self.forget

    def step(self) -> None:
        """Launch a step, which reads the cache and adds a token to it."""
        self.now += self.launch
        first, *later = self.seconds
        own = later[(self.steps - 1) % len(later)] if later and self.steps else first
        work = own + self.per_token * (self._tokens - self.past)
        self._done = max(self._done, self.now) + work
        self._tokens += 1
        self.steps += 1

    def synchronise(self) -> None:
        """Let the CPU wait until the device has done all its steps."""
        self.now = max(self.now, self._done)

    def clock(self) -> float:
        """Return simulated seconds of the CPU since the start."""
        return self.now
