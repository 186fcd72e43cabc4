"""RoPE in texts longer than it was trained on: three published ways to slow the rotation down.

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
class Stretch:
    """By how often a pair turns within the trained context (Grattafiori et al., 2024, §3.4.2; the rule is in Meta's
    code for Llama 3.1).

    A pair that turns at least `fast` times keeps its frequency; one that turns at most `slow` times has it divided by
    `factor`; between them both are mixed. With `slow` equal to `fast` nothing is mixed (Llama 4).

    Attributes:
        trained: the context the model was trained on first, in tokens.
    """

    factor: float
    trained: int
    slow: float = 1.0
    fast: float = 4.0

    def __post_init__(self) -> None:
        if self.factor <= 0 or self.trained < 1 or not 0 < self.slow <= self.fast:
            raise ValueError("stretching RoPE needs factor > 0, trained >= 1 and 0 < slow <= fast")

    @property
    def attention(self) -> float:
        """What cosine and sine are multiplied by."""
        return 1.0

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        """The new frequencies."""
        turns = self.trained * frequencies / (2 * math.pi)
        band = max(self.fast - self.slow, 1e-9)
        kept = ((turns - self.slow) / band).clamp(0, 1)
        return frequencies * (kept + (1 - kept) / self.factor)


@dataclass(frozen=True)
class Yarn:
    """The same, mixed by the pair's number instead of its turns, and with sharper attention (Peng et al., 2024, YaRN).

    The paper's formula mixes by turns, as Llama 3.1 does. Its code, and all models since, let the share grow evenly
    from the pair that turns `fast` times to the one that turns `slow` times.

    Attributes:
        trained: the context the model was trained on first, in tokens.
        sharpening: cosine and sine are multiplied by it, and so the scores by its square; None is 0.1 ln(factor) + 1
            (their equation 22).
        whole: whether the two pairs are rounded, outwards, to whole numbers.
    """

    factor: float
    trained: int
    slow: float = 1.0
    fast: float = 32.0
    sharpening: float | None = None
    whole: bool = True

    def __post_init__(self) -> None:
        if self.factor < 1 or self.trained < 1 or not 0 < self.slow < self.fast:
            raise ValueError("YaRN needs factor >= 1, trained >= 1 and 0 < slow < fast")

    @property
    def attention(self) -> float:
        """What cosine and sine are multiplied by."""
        return 0.1 * math.log(self.factor) + 1 if self.sharpening is None else self.sharpening

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        """The new frequencies."""
        pairs = len(frequencies)
        first, last = self._pair(frequencies, self.fast), self._pair(frequencies, self.slow)
        if self.whole:
            first, last = first.floor(), last.ceil()
        first, last = first.clamp(min=0), last.clamp(max=2 * pairs - 1)
        slowed = ((torch.arange(pairs) - first) / (last - first).clamp(min=1e-3)).clamp(0, 1)
        return frequencies * (1 - slowed + slowed / self.factor)

    def _pair(self, frequencies: Float[Tensor, " pairs"], turns: float) -> Float[Tensor, ""]:
        """The number of the pair that turns so often within the trained context: a fraction, perhaps none of them."""
        step = torch.log(frequencies[0] / frequencies[-1]) / max(len(frequencies) - 1, 1)
        ratio = torch.log(self.trained * frequencies[0] / (2 * math.pi * turns))
        return (ratio / step).nan_to_num()


@dataclass(frozen=True)
class LongRope:
    """A searched divisor for every pair, one list for short texts and one for long ones (Ding et al., 2024, LongRoPE).

    A text that grows beyond `trained` changes from one list to the other, as in Phi-3: keys that a cache kept from
    before stay turned by the first.

    Attributes:
        short, long: what each pair's frequency is divided by.
        trained: texts of more tokens are long.
        factor: how many times longer texts may become.
        sharpening: cosine and sine are multiplied by it; None is √(1 + ln(factor) / ln(trained)).
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    trained: int
    factor: float
    sharpening: float | None = None

    def __post_init__(self) -> None:
        if self.factor < 1 or self.trained < 2 or min(*self.short, *self.long, 1.0) <= 0:
            raise ValueError("LongRoPE needs factor >= 1, trained >= 2 and positive divisors")
        if len(self.short) != len(self.long):
            raise ValueError(f"LongRoPE needs two lists alike, not {len(self.short)} and {len(self.long)} divisors")

    @property
    def attention(self) -> float:
        """What cosine and sine are multiplied by."""
        usual = math.sqrt(1 + math.log(self.factor) / math.log(self.trained))
        return usual if self.sharpening is None else self.sharpening

    def __call__(self, frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, "2 pairs"]:
        """The new frequencies, for short texts and for long ones."""
        return frequencies / torch.tensor([self.short, self.long])

    def choose(
        self, frequencies: Float[Tensor, "2 pairs"], positions: Int[Tensor, "b s"]
    ) -> Float[Tensor, "b 1 1 pairs"]:
        """Those of each text. Nothing here waits for a GPU."""
        is_long = positions.amax(dim=1)[:, None, None, None] >= self.trained
        return torch.where(is_long, frequencies[1], frequencies[0])
