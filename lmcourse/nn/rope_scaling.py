"""RoPE scaling for texts longer than it was trained on: Llama 3, YaRN and LongRoPE slow the rotation down.

All keep fast pairs, which tell neighbours apart, and slow down the slow ones, whose angles would otherwise grow beyond
all that training showed. Each takes the frequencies of the pairs, in radians per token, and returns new ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Llama3RopeScaling:
    """Llama 3.1: divide low frequencies, keep high ones, interpolate between (Grattafiori et al., 2024, §3.4.2).

    Low and high is how often a pair rotates within the original context. The rule is in Meta's code for Llama 3.1.

    Attributes:
        factor: the number that divides the frequencies of slow pairs.
        original_context: the context the model was trained on first, in tokens.
        low_freq_factor: a pair that rotates at most so often within it is slow.
        high_freq_factor: a pair that rotates at least so often keeps its frequency; between the two, both are
            mixed. If they are equal nothing is mixed (Llama 4).
    """

    factor: float
    original_context: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        if self.factor <= 0 or self.original_context < 1 or not 0 < self.low_freq_factor <= self.high_freq_factor:
            raise ValueError(
                "Llama 3's RoPE scaling needs factor > 0, original_context >= 1 and "
                "0 < low_freq_factor <= high_freq_factor"
            )

    @property
    def attention_scaling(self) -> float:
        """Factor on cosine and sine."""
        return 1.0

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        """The new frequencies, in radians per token."""
        rotations = self.original_context * frequencies / (2 * math.pi)
        band = max(self.high_freq_factor - self.low_freq_factor, 1e-9)
        kept = ((rotations - self.low_freq_factor) / band).clamp(0, 1)
        return frequencies * (kept + (1 - kept) / self.factor)


@dataclass(frozen=True)
class Yarn:
    """YaRN: blend interpolation and extrapolation per frequency, with attention scaling (Peng et al., 2024).

    The paper's formula blends by how often a pair rotates, as Llama 3.1 does. Its code, and all models since, let the
    share of interpolation grow linearly with the pair's index, from the pair that rotates `beta_fast` times within the
    original context to the one that rotates `beta_slow` times.

    Attributes:
        factor: the number that divides the frequencies of slow pairs.
        original_context: the context the model was trained on first, in tokens.
        beta_slow, beta_fast: how often a pair rotates within it that is slow, or that keeps its frequency.
        attention_factor: cosine and sine are multiplied by it, and so the scores by its square; None is
            0.1 ln(factor) + 1 (their equation 22).
        truncate: whether the two pairs' numbers are rounded, outwards, to whole ones.
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

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        """The new frequencies, in radians per token."""
        pairs = len(frequencies)
        first, last = self._pair(frequencies, self.beta_fast), self._pair(frequencies, self.beta_slow)
        if self.truncate:
            first, last = first.floor(), last.ceil()
        first, last = first.clamp(min=0), last.clamp(max=2 * pairs - 1)
        slowed = ((torch.arange(pairs) - first) / (last - first).clamp(min=1e-3)).clamp(0, 1)
        return frequencies * (1 - slowed + slowed / self.factor)

    def _pair(self, frequencies: Float[Tensor, " pairs"], rotations: float) -> Float[Tensor, ""]:
        """Return the index, perhaps a fraction, of the pair that rotates this often within the trained context."""
        step = torch.log(frequencies[0] / frequencies[-1]) / max(len(frequencies) - 1, 1)
        ratio = torch.log(self.original_context * frequencies[0] / (2 * math.pi * rotations))
        return (ratio / step).nan_to_num()


@dataclass(frozen=True)
class LongRope:
    """LongRoPE: a searched divisor per frequency, one list for short texts and one for long ones (Ding et al., 2024).

    A text that grows beyond `original_context` changes from one list to the other, as in Phi-3: keys that a cache kept
    from before stay rotated by the first.

    Attributes:
        short_factor, long_factor: what each pair's frequency is divided by.
        original_context: texts of more tokens are long.
        factor: how many times longer texts may become.
        attention_factor: cosine and sine are multiplied by it; None is √(1 + ln(factor) / ln(original_context)).
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
            raise ValueError(
                "LongRoPE needs two lists of equal length, "
                f"not {len(self.short_factor)} and {len(self.long_factor)} divisors"
            )

    @property
    def attention_scaling(self) -> float:
        """Factor on cosine and sine."""
        usual = math.sqrt(1 + math.log(self.factor) / math.log(self.original_context))
        return usual if self.attention_factor is None else self.attention_factor

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, "2 pairs"]:
        """The new frequencies, for short texts and for long ones."""
        return frequencies / torch.tensor([self.short_factor, self.long_factor])

    def choose(
        self, frequencies: Float[Tensor, "2 pairs"], positions: Int[Tensor, "b s"]
    ) -> Float[Tensor, "b 1 1 pairs"]:
        """Choose the frequencies of each text by its length, without waiting for a GPU."""
        is_long = positions.amax(dim=1)[:, None, None, None] >= self.original_context
        return torch.where(is_long, frequencies[1], frequencies[0])


RopeScaling = Llama3RopeScaling | Yarn | LongRope
"""The published ways to slow some pairs more than others (`rope_scaling` in Hugging Face's configurations)."""
