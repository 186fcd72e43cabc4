"""Sampling the next token from logits: temperature, top-k, top-p, min-p, greedy.

A model gives every token of the vocabulary a score; these functions pick the next one. The rules (`temperature`,
`top_k`, `top_p`, `min_p`) map logits to logits and can be chained: a token that a rule excludes gets the logit −∞.
`greedy` and `sample` pick a token. Among equal logits the lower token id always comes first, so results do not depend
on how a device sorts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Sampler = Callable[[Float[Tensor, "b v"], torch.Generator | None], Int[Tensor, " b"]]
"""A function that picks one token per row of logits; the generator provides the random numbers."""

SMALLEST_TEMPERATURE = 1e-20
"""Temperature below which logits in fp32 could become infinite."""

EXCLUDED = -math.inf
"""The logit of a token that cannot be sampled."""


def temperature(logits: Float[Tensor, "*batch v"], value: float) -> Float[Tensor, "*batch v"]:
    """Divide logits by the temperature: below 1 favours likely tokens, above 1 unlikely ones (Ackley et al., 1985).

    Raises ValueError if the temperature is not positive and finite. (As it approaches 0, sampling becomes `greedy`.)
    """
    if not 0 < value < math.inf:  # rejects NaN, too
        raise ValueError(f"a temperature must be positive and finite, not {value:g}")
    scaled = logits / value
    # the quotients could be infinite; differences to the largest logit give the same softmax
    if value < SMALLEST_TEMPERATURE:
        above = logits.double() - logits.double().amax(dim=-1, keepdim=True)
        scaled = (above / value).to(logits.dtype)
    return scaled


def top_k(logits: Float[Tensor, "*batch v"], k: int) -> Float[Tensor, "*batch v"]:
    """Keep the k most likely tokens (Fan et al., 2018): exactly k of them, or all if there are fewer.

    A k below 1 raises ValueError.
    """
    if k < 1:
        raise ValueError(f"top-k keeps at least one token: k must be at least 1, not {k}")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, order[..., k:], EXCLUDED)


def top_p(logits: Float[Tensor, "*batch v"], p: float) -> Float[Tensor, "*batch v"]:
    """Keep the smallest set of most likely tokens with total probability p (nucleus sampling, Holtzman et al., 2020).

    A token stays if the sum of all more likely tokens is below p. So the token that crosses the threshold stays, and at
    least one token always stays. Raises ValueError if p is not in (0, 1].
    """
    _check_probability("top-p", p)
    if p == 1:
        return logits  # the sum of rounded probabilities could reach 1 before the last token
    ordered, order = logits.float().sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    out = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(out, EXCLUDED)


def min_p(logits: Float[Tensor, "*batch v"], p: float) -> Float[Tensor, "*batch v"]:
    """Keep tokens at least p times as likely as the most likely one (Nguyen et al., 2024), including ties.

    Raises ValueError if p is not in (0, 1].
    """
    _check_probability("min-p", p)
    limit = logits.amax(dim=-1, keepdim=True) + math.log(p)
    return logits.masked_fill(logits < limit, EXCLUDED)


def _check_probability(name: str, p: float) -> None:
    if not 0 < p <= 1:
        raise ValueError(f"{name} is a fraction of the probability: above 0 and at most 1, not {p:g}")


def greedy(logits: Float[Tensor, "b v"], generator: torch.Generator | None = None) -> Int[Tensor, " b"]:
    """Return the most likely token (greedy decoding); the generator is not used."""
    return logits.argmax(dim=-1)


def sample(logits: Float[Tensor, "b v"], generator: torch.Generator | None = None) -> Int[Tensor, " b"]:
    """Sample a token with the probabilities softmax(logits).

    All rows of a batch use one generator, so a row's token depends on the seed and on its place in the batch.
    """
    return torch.multinomial(logits.float().softmax(dim=-1), 1, generator=generator)[:, 0]


@dataclass(frozen=True)
class Sampling:
    """A sampler with the usual rules in the usual order: temperature, top-k, top-p, min-p; then `sample`.

    Attributes:
        temperature: the temperature; 0 means greedy decoding.
        top_k, top_p, min_p: None leaves the rule out.

    Example:
        >>> logits = torch.tensor([[2.0, 1.0, 0.0]])
        >>> Sampling(temperature=0.5, top_k=2).logits(logits)
        tensor([[4., 2., -inf]])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        self(torch.zeros(1, 1))  # so that a rule rejects a wrong value now, not at the first token

    def __call__(self, logits: Float[Tensor, "b v"], generator: torch.Generator | None = None) -> Int[Tensor, " b"]:
        """Return one token per row."""
        logits = self.logits(logits)
        return greedy(logits) if self.temperature == 0 else sample(logits, generator)

    def logits(self, logits: Float[Tensor, "b v"]) -> Float[Tensor, "b v"]:
        """Apply the rules to the logits, without sampling; a temperature of 0 does not change them."""
        if self.temperature != 0:
            logits = temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = min_p(logits, self.min_p)
        return logits
