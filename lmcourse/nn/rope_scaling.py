"""RoPE scaling for texts longer than the training texts: Llama 3, YaRN and LongRoPE slow the rotation down.

All three keep fast pairs, which distinguish neighbours. They slow down slow pairs, whose angles would otherwise become
larger than any angle in training. Each returns the new frequencies of the pairs, in radians per token.

The order of operations is that of published models: another one changes the last bit of a frequency, which a position
multiplies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


def tokens_per_radian(theta: float, width: int) -> Float[Tensor, " pairs"]:
    """Return the number of tokens in which each pair turns by one radian, for RoPE on `width` features."""
    return theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)


@dataclass(frozen=True)
class Llama3RopeScaling:
    """Llama 3.1: divide low frequencies, keep high ones, interpolate in between (Grattafiori et al., 2024, §3.4.2).

    A frequency is low or high depending on the number of rotations within the original context. The rule comes from
    Meta's code for Llama 3.1.

    Attributes:
        factor: the number that divides the frequencies of slow pairs.
        original_context: the context the model was trained on first, in tokens.
        low_freq_factor: a pair with at most this many rotations in the original context is slow.
        high_freq_factor: a pair with at least this many rotations keeps its frequency; in between, the old and the
            divided frequency are mixed. If both factors are equal, no pair is in between (Llama 4).
    """

    factor: float
    original_context: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        if self.factor <= 0 or self.original_context < 1 or not 0 < self.low_freq_factor <= self.high_freq_factor:
            limits = "factor > 0, original_context >= 1 and 0 < low_freq_factor <= high_freq_factor"
            raise ValueError(f"Llama 3's RoPE scaling needs {limits}")

    @property
    def attention_scaling(self) -> float:
        """Factor on cosine and sine."""
        return 1.0

    def __call__(self, theta: float, width: int) -> Float[Tensor, " pairs"]:
        """Return the new frequencies for the base `theta` and `width` rotated features."""
        frequencies = 1 / tokens_per_radian(theta, width)
        wavelengths = 2 * math.pi / frequencies
        band = max(self.high_freq_factor - self.low_freq_factor, 1e-9)
        kept = (self.original_context / wavelengths - self.low_freq_factor) / band
        mixed = (1 - kept) * frequencies / self.factor + kept * frequencies
        fast_or_mixed = torch.where(wavelengths < self.original_context / self.high_freq_factor, frequencies, mixed)
        slow = wavelengths > self.original_context / self.low_freq_factor
        return torch.where(slow, frequencies / self.factor, fast_or_mixed)


@dataclass(frozen=True)
class Yarn:
    """YaRN: blend interpolation and extrapolation per frequency, with attention scaling (Peng et al., 2024).

    In the paper's formula the blend depends on the number of rotations of a pair, as in Llama 3.1. In its code, and in
    all models since, the fraction of interpolation grows linearly with the pair's index: from the pair that rotates
    `beta_fast` times within the original context to the pair that rotates `beta_slow` times.

    Attributes:
        factor: the number that divides the frequencies of slow pairs.
        original_context: the context the model was trained on first, in tokens.
        beta_slow, beta_fast: the numbers of rotations in the original context of a slow pair, and of a pair that keeps
            its frequency.
        attention_factor: the factor of cosine and sine, which multiplies scores by its square; None means 0.1
            ln(factor) + 1 (equation 22 of the paper).
        truncate: whether to round the indices of these two pairs to integers, away from each other.
    """

    factor: float
    original_context: int
    beta_slow: float = 1.0
    beta_fast: float = 32.0
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        if self.factor < 1 or self.original_context < 1 or not 0 < self.beta_slow < self.beta_fast:
            raise ValueError("YaRN needs factor >= 1, original_context >= 1 and 0 < beta_slow < beta_fast")

    @property
    def attention_scaling(self) -> float:
        """Factor on cosine and sine."""
        return 0.1 * math.log(self.factor) + 1 if self.attention_factor is None else self.attention_factor

    def __call__(self, theta: float, width: int) -> Float[Tensor, " pairs"]:
        """Return the new frequencies for the base `theta` and `width` rotated features."""
        first, last = (self._pair(theta, width, beta) for beta in (self.beta_fast, self.beta_slow))
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, width - 1)
        kept = 1 - ((torch.arange(width // 2) - first) / (last - first or 1e-3)).clamp(0, 1)
        periods = tokens_per_radian(theta, width)
        return 1 / (self.factor * periods) * (1 - kept) + 1 / periods * kept

    def _pair(self, theta: float, width: int, rotations: float) -> float:
        """Return the index, as a real number, of the pair with this many rotations in the original context."""
        return width * math.log(self.original_context / (rotations * 2 * math.pi)) / (2 * math.log(theta))


@dataclass(frozen=True)
class LongRope:
    """LongRoPE: a divisor for each frequency, found by search, with lists for short and for long texts (Ding et al.,
    2024).

    A text that grows beyond `original_context` changes from the first list to the second, as in Phi-3. Keys that are
    already in a cache stay rotated by the first list.

    Attributes:
        short_factor, long_factor: the divisors of the pairs' frequencies for short and for long texts.
        original_context: texts with more tokens than this are long.
        factor: the factor by which the context becomes longer.
        attention_factor: the factor of cosine and sine; None means √(1 + ln(factor) / ln(original_context)).
    """

    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    original_context: int
    factor: float
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        if self.factor < 1 or self.original_context < 2 or min(*self.short_factor, *self.long_factor, 1.0) <= 0:
            raise ValueError("LongRoPE needs factor >= 1, original_context >= 2 and positive divisors")
        if len(self.short_factor) != len(self.long_factor):
            short, long = len(self.short_factor), len(self.long_factor)
            raise ValueError(f"LongRoPE needs two lists of equal length, not {short} and {long} divisors")

    @property
    def attention_scaling(self) -> float:
        """Factor on cosine and sine."""
        usual = math.sqrt(1 + math.log(self.factor) / math.log(self.original_context))
        return usual if self.attention_factor is None else self.attention_factor

    def __call__(self, theta: float, width: int) -> Float[Tensor, "2 pairs"]:
        """Return the new frequencies for short texts and for long texts."""
        return 1 / (torch.tensor([self.short_factor, self.long_factor]) * tokens_per_radian(theta, width))

    def choose(
        self, frequencies: Float[Tensor, "2 pairs"], positions: Int[Tensor, "b s"]
    ) -> Float[Tensor, "b 1 1 pairs"]:
        """Choose the frequencies of each text by its length, without waiting for a GPU."""
        is_long = positions.amax(dim=1)[:, None, None, None] >= self.original_context
        return torch.where(is_long, frequencies[1], frequencies[0])


RopeScaling = Llama3RopeScaling | Yarn | LongRope
"""The published ways to slow some pairs more than others (`rope_scaling` in Hugging Face's configurations)."""
