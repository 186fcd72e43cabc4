"""Sampling the next token from logits: temperature, top-k, top-p, min-p, greedy.

A model gives every token of the vocabulary a score; these functions decide which one is written. The rules
(`temperature`, `top_k`, `top_p`, `min_p`) turn logits into logits and can be put one after the other: a token that a
rule takes out has the logit −∞. `greedy` and `sample` pick. Among equal logits the lower token id always comes first,
so results do not depend on how a device sorts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Sampler = Callable[[Float[Tensor, "b v"], torch.Generator | None], Int[Tensor, " b"]]
"""Picks one token per row of logits; the generator provides the random numbers."""

SMALLEST_TEMPERATURE = 1e-20
"""Below this, logits in fp32 could become infinite."""

EXCLUDED = -math.inf
"""The logit of a token that cannot be sampled."""


def temperature(logits: Float[Tensor, "*batch v"], value: float) -> Float[Tensor, "*batch v"]:
    """Divide by the temperature: below 1 the likely tokens gain, above 1 the unlikely ones (Ackley et al., 1985).

    Raises:
        ValueError: it is not positive and finite. (Towards 0 it becomes `greedy`.)
    """
    if not 0 < value < math.inf:  # NaN is neither
        raise ValueError(f"a temperature must be positive and finite, not {value:g}")
    scaled = logits / value
    if value < SMALLEST_TEMPERATURE:  # the quotient may be infinite: the same softmax, of differences to the largest
        above = logits.double() - logits.double().amax(dim=-1, keepdim=True)
        scaled = (above / value).to(logits.dtype)
    return scaled


def top_k(logits: Float[Tensor, "*batch v"], k: int) -> Float[Tensor, "*batch v"]:
    """Keep the k most likely tokens (Fan et al., 2018): exactly k of them, or all if there are fewer.

    Raises:
        ValueError: k is below 1.
    """
    if k < 1:
        raise ValueError(f"top-k keeps at least one token: k must be at least 1, not {k}")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    return logits.scatter(-1, order[..., k:], EXCLUDED)


def top_p(logits: Float[Tensor, "*batch v"], p: float) -> Float[Tensor, "*batch v"]:
    """Keep the smallest set of most likely tokens with total probability p (Holtzman et al., 2020, nucleus sampling).

    A token stays if those before it have less than p together. So the one that crosses the threshold stays, and at
    least one always does.

    Raises:
        ValueError: p is not in (0, 1].
    """
    _check_probability("top-p", p)
    if p == 1:
        return logits  # adding up rounded probabilities could reach 1 before the last token
    ordered, order = logits.float().sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    out = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(out, EXCLUDED)


def min_p(logits: Float[Tensor, "*batch v"], p: float) -> Float[Tensor, "*batch v"]:
    """Keep tokens at least p times as likely as the likeliest (Nguyen et al., 2024); ties at the limit stay.

    Raises:
        ValueError: p is not in (0, 1].
    """
    _check_probability("min-p", p)
    limit = logits.amax(dim=-1, keepdim=True) + math.log(p)
    return logits.masked_fill(logits < limit, EXCLUDED)


def _check_probability(name: str, p: float) -> None:
    if not 0 < p <= 1:
        raise ValueError(f"{name} is a fraction of the probability: above 0 and at most 1, not {p:g}")


def greedy(logits: Float[Tensor, "b v"], generator: torch.Generator | None = None) -> Int[Tensor, " b"]:
    """Greedy decoding: the likeliest token; the generator is not used."""
    return logits.argmax(dim=-1)


def sample(logits: Float[Tensor, "b v"], generator: torch.Generator | None = None) -> Int[Tensor, " b"]:
    """Sample a token with the probabilities softmax(logits).

    All rows of a batch draw from one generator: a row's token depends on the seed and on its place in the batch.
    """
    return torch.multinomial(logits.float().softmax(dim=-1), 1, generator=generator)[:, 0]


@dataclass(frozen=True)
class Sampling:
    """The usual rules in the usual order: temperature, top-k, top-p, min-p; then `sample`.

    Attributes:
        temperature: 0 is greedy.
        top_k, top_p, min_p: None leaves the rule out.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        self(torch.zeros(1, 1))  # a value that its rule refuses is refused here, not at the first token

    def __call__(self, logits: Float[Tensor, "b v"], generator: torch.Generator | None = None) -> Int[Tensor, " b"]:
        """Return one token per row."""
        logits = self.logits(logits)
        return greedy(logits) if self.temperature == 0 else sample(logits, generator)

    def logits(self, logits: Float[Tensor, "b v"]) -> Float[Tensor, "b v"]:
        """Apply the rules to the logits, without sampling; a temperature of 0 changes nothing."""
        if self.temperature != 0:
            logits = temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = min_p(logits, self.min_p)
        return logits
