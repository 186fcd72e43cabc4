"""The n-gram model: count what followed the last n − 1 tokens, and divide (Shannon, 1948; Jelinek and Mercer, 1980)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


class NGram:
    """An n-gram model: predicts the next token from the last `order` − 1.

    p_m(w | c) = (count(c w) + k) / (count(c) + k V) for a context c of m − 1 tokens. A context that was never seen says
    nothing (0 / 0 when k = 0): the one token shorter context answers for it, and below the single tokens all are equal.
    With weights λ the orders are mixed, Σ λ_m p_m. So the probabilities sum to one whatever was counted.

    Args:
        order: n: 1 ignores the context, 2 looks at one token, …
        vocab_size: how many tokens there are.
        add: k, added to every count (Laplace: 1).
        weights: λ_1 … λ_n, which sum to one; None takes the full order alone.

    Raises:
        ValueError: an order below 1, a negative k, weights that are no weights.
    """

    def __init__(
        self, order: int, vocab_size: int, *, add: float = 0.0, weights: Sequence[float] | None = None
    ) -> None:
        if order < 1 or vocab_size < 1 or add < 0:
            raise ValueError("an n-gram model needs an order and a vocabulary of at least 1, and no negative counts")
        mixed = [0.0] * (order - 1) + [1.0] if weights is None else list(weights)
        if len(mixed) != order or min(mixed) < 0 or not math.isclose(sum(mixed), 1.0):
            raise ValueError(f"an order of {order} needs {order} weights that sum to one, not {weights}")
        self.order, self.vocab_size, self.add, self.weights = order, vocab_size, add, mixed
        self.counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        """What followed each context of 0 … n − 1 tokens, how often."""

    def count(self, text: Sequence[int]) -> NGram:
        """Learn from one more text. Nothing is counted across the border of two texts."""
        for end, token in enumerate(text):
            for length in range(min(self.order - 1, end) + 1):
                self.counts[tuple(text[end - length : end])][token] += 1
        return self

    def probabilities(self, context: Sequence[int]) -> Float[Tensor, " v"]:
        """Of every token, to follow the context. Its last n − 1 tokens matter; at a text's start there are fewer."""
        known = tuple(context)
        mixed = torch.zeros(self.vocab_size, dtype=torch.float64)
        current = torch.full((self.vocab_size,), 1 / self.vocab_size, dtype=torch.float64)
        for order, weight in enumerate(self.weights, start=1):
            if len(known) >= order - 1:
                current = self._counted(known[len(known) - order + 1 :], otherwise=current)
            mixed += weight * current
        return mixed

    def _counted(self, context: tuple[int, ...], otherwise: Tensor) -> Float[Tensor, " v"]:
        following = self.counts.get(context, Counter())
        total = following.total() + self.add * self.vocab_size
        if total == 0:
            return otherwise
        counts = torch.full((self.vocab_size,), self.add, dtype=torch.float64)
        for token, times in following.items():
            counts[token] += times
        return counts / total

    def log_probability(self, text: Sequence[int]) -> float:
        """Of a whole text, in nats: the sum over its tokens, each given those before it. −∞ if one was impossible."""
        each = (self.probabilities(text[:end])[token].log().item() for end, token in enumerate(text))
        return math.fsum(each)

    def perplexity(self, text: Sequence[int]) -> float:
        """exp of the mean −log p per token: among how many equal choices the model seems to waver.

        Raises:
            ValueError: the text is empty.
        """
        if not text:
            raise ValueError("the perplexity of an empty text is not defined")
        return math.exp(-self.log_probability(text) / len(text))

    def generate(self, context: Sequence[int], length: int, generator: torch.Generator | None = None) -> list[int]:
        """`length` tokens drawn one after the other, without the context."""
        text = list(context)
        for _ in range(length):
            text.append(int(torch.multinomial(self.probabilities(text), 1, generator=generator)))
        return text[len(context) :]
