"""The n-gram model: count the tokens after each n − 1 tokens, and divide (Shannon, 1948; Jelinek and Mercer, 1980)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

_NOTHING: Counter[int] = Counter()
"""The counts after a context that was never seen: no tokens."""


class NGram:
    """An n-gram model: predicts the next token from the last `order` − 1.

    p_m(w | c) = (count(c w) + k) / (count(c) + k V) for a context c of m − 1 tokens. For a context that was never seen
    this is 0 / 0 when k = 0: then the context that is one token shorter is used, and if no token was counted at all,
    all tokens are equally likely. With weights λ the orders are mixed: Σ λ_m p_m. So the probabilities always sum to
    one.

    Witten and Bell (1991) always mix in the shorter context c', the more strongly, the more different tokens t(c)
    followed c: p_m(w | c) = (count(c w) + t(c) p_{m−1}(w | c')) / (count(c) + t(c)). Then no token has probability 0.
    Raises ValueError if the order is below 1, k is negative, the weights do not sum to one, or both ways of smoothing
    are asked for.

    Args:
        order: n: 1 ignores the context, 2 looks at one token, …
        vocab_size: how many tokens there are.
        add: k, added to every count (Laplace: 1).
        weights: λ_1 … λ_n, which sum to one; None uses the full order alone.
        witten_bell: whether to mix in shorter contexts by the rule of Witten and Bell; not together with `add`.
    """

    def __init__(
        self,
        order: int,
        vocab_size: int,
        *,
        add: float = 0.0,
        weights: Sequence[float] | None = None,
        witten_bell: bool = False,
    ) -> None:
        if order < 1 or vocab_size < 1 or add < 0:
            raise ValueError("an n-gram model needs an order and a vocabulary of at least 1, and no negative counts")
        mixed = [0.0] * (order - 1) + [1.0] if weights is None else list(weights)
        if len(mixed) != order or min(mixed) < 0 or not math.isclose(sum(mixed), 1.0):
            raise ValueError(f"an order of {order} needs {order} weights that sum to one, not {weights}")
        if witten_bell and add:
            raise ValueError("set `add` or `witten_bell`, not both")
        self.order, self.vocab_size, self.add, self.weights = order, vocab_size, add, mixed
        self.witten_bell = witten_bell
        self.counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        """For each context of 0 … n − 1 tokens, how often each token followed it."""
        self.totals: Counter[tuple[int, ...]] = Counter()
        """Occurrences of each context, with any token after it."""

    def count(self, text: Sequence[int]) -> NGram:
        """Learn from one more text. N-grams do not cross the border between two texts."""
        for end, token in enumerate(text):
            for length in range(min(self.order - 1, end) + 1):
                context = tuple(text[end - length : end])
                self.counts[context][token] += 1
                self.totals[context] += 1
        return self

    def probabilities(self, context: Sequence[int]) -> Float[Tensor, " v"]:
        """Return the probability of every token after a context. Only its last n − 1 tokens, if any, count."""
        known = tuple(context)
        every = [self._by_order(known, token) for token in range(self.vocab_size)]
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return torch.tensor(every, dtype=torch.float64) @ weights

    def losses(self, text: Sequence[int]) -> Float[Tensor, " t"]:
        """Return −ln p of each token given the tokens before it, in nats; infinite for a token with probability 0."""
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return -(weights @ self._probabilities_by_order(text)).log()

    def losses_by_order(self, text: Sequence[int]) -> Float[Tensor, "n t"]:
        """Return `losses` of the models of order 1 … n with the same counts; the weights are not used."""
        return -self._probabilities_by_order(text).log()

    def _probabilities_by_order(self, text: Sequence[int]) -> Float[Tensor, "n t"]:
        tokens, longest = tuple(text), self.order - 1
        each = [self._by_order(tokens[max(end - longest, 0) : end], token) for end, token in enumerate(tokens)]
        return torch.tensor(each, dtype=torch.float64).reshape(len(tokens), self.order).T

    def _by_order(self, context: tuple[int, ...], token: int) -> list[float]:
        """Return the probability of one token given its 0, 1, … n − 1 predecessors."""
        prior = uniform = 1 / self.vocab_size
        found = []
        for length in range(self.order):
            if length <= len(context):
                known = context[len(context) - length :]
                following, total = self.counts.get(known, _NOTHING), self.totals.get(known, 0)
                helps, strength = (prior, len(following)) if self.witten_bell else (uniform, self.add * self.vocab_size)
                if total + strength:
                    prior = (following.get(token, 0) + strength * helps) / (total + strength)
            found.append(prior)
        return found

    def log_probability(self, text: Sequence[int]) -> float:
        """Return the log-probability of a text in nats, the sum over its tokens; −∞ if one has probability 0."""
        return -math.fsum(self.losses(text).tolist())

    def perplexity(self, text: Sequence[int]) -> float:
        """Return exp of the mean −log p per token: the number of equally likely choices with the same loss.

        An empty text raises ValueError.
        """
        if not text:
            raise ValueError("the perplexity of an empty text is not defined")
        return math.exp(-self.log_probability(text) / len(text))

    def generate(self, context: Sequence[int], length: int, generator: torch.Generator | None = None) -> list[int]:
        """Sample `length` tokens and return them without the context."""
        text = list(context)
        for _ in range(length):
            text.append(int(torch.multinomial(self.probabilities(text), 1, generator=generator)))
        return text[len(context) :]
