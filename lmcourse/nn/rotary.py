"""RoPE: rotate queries and keys by an angle that grows with their position (Su et al., 2021).

The features of a head are taken in pairs; pair i is rotated by position × θ^(−2i/d). The dot product of two rotated
vectors depends only on the difference of their positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.nn.checks import check_choice
from lmcourse.nn.fp32_buffer import Fp32Buffer
from lmcourse.nn.rope_scaling import LongRope, RopeScaling, tokens_per_radian

PairLayout = Literal["half", "interleaved"]


@dataclass(frozen=True)
class RotaryConfig:
    """RoPE settings: theta, fraction, pair layout, scaling.

    Attributes:
        theta: the base θ. The slowest pair needs about 2πθ tokens for one rotation.
        fraction: the fraction of a head's features that is rotated; the other features have no position.
        layout: the features that form a pair. "half": i and i + d/2 (GPT-NeoX, Llama in Hugging Face's files);
            "interleaved": 2i and 2i + 1 (the paper, GPT-J).
        linear_factor: the divisor of positions: linear scaling, or position interpolation (Chen et al., 2023).
        scaling: a method that slows down only slow pairs (Llama 3, YaRN, LongRoPE).
    """

    theta: float = 10_000.0
    fraction: float = 1.0
    layout: PairLayout = "half"
    linear_factor: float = 1.0
    scaling: RopeScaling | None = None

    def __post_init__(self) -> None:
        check_choice("layout of RoPE's pairs", self.layout, PairLayout)
        if self.theta <= 0 or self.linear_factor <= 0 or not 0 < self.fraction <= 1:
            raise ValueError("RoPE needs theta > 0, linear_factor > 0 and a fraction in (0, 1]")
        if self.scaling and (self.theta == 1 or self.linear_factor != 1):
            raise ValueError("a scaling of some pairs needs theta != 1 and linear_factor = 1")

    def width(self, d_head: int) -> int:
        """Return the number of rotated features per head, an even number.

        If the number is 0 or odd, or LongRoPE's lists do not fit the heads, ValueError is raised.
        """
        width = int(d_head * self.fraction + 1e-6)  # + 1e-6 because of rounding: 49 · (1/49) is below 1
        if width < 2 or width % 2:
            raise ValueError(f"RoPE rotates features in pairs: {self.fraction:g} of a head of {d_head} is {width}")
        if isinstance(self.scaling, LongRope) and 2 * len(self.scaling.short_factor) != width:
            raise ValueError(
                f"LongRoPE has {len(self.scaling.short_factor)} divisors, but {width // 2} pairs are rotated"
            )
        return width


def pair_frequencies(config: RotaryConfig, width: int) -> Float[Tensor, "*lists pairs"]:
    """Return the frequencies of the pairs in radians per token; for LongRoPE, those of short and of long texts."""
    if config.scaling:
        return config.scaling(config.theta, width)
    # Published models divide by θ^(2i/d). θ^(−2i/d) differs in the last bit, and a far position multiplies that.
    return 1 / tokens_per_radian(config.theta, width) / config.linear_factor


class Rotary(nn.Module):
    """RoPE: rotates the first features of every head by the token's position."""

    def __init__(self, config: RotaryConfig, d_head: int) -> None:
        super().__init__()
        self.config = config
        self.width = config.width(d_head)
        self.attention_scaling = config.scaling.attention_scaling if config.scaling else 1.0
        self.frequencies = Fp32Buffer(partial(pair_frequencies, config, self.width))

    def cos_sin(
        self, positions: Int[Tensor, "b s"]
    ) -> tuple[Float[Tensor, "b 1 s width"], Float[Tensor, "b 1 s width"]]:
        """Return every feature's cosine and signed sine at these positions, the same for all layers with this rotation.

        A pair (a, b) becomes (a cos − b sin, b cos + a sin): each feature times the cosine, plus its partner times the
        sine, which is negative for the first of the two. The angles are computed in fp32, because bf16 cannot count
        past 256.
        """
        frequencies = self.frequencies()
        if isinstance(self.config.scaling, LongRope):
            frequencies = self.config.scaling.choose(frequencies, positions)
        angles = positions[:, None, :, None].float() * frequencies
        cos, sin = angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling
        return self._join(cos, cos), self._join(-sin, sin)

    def forward(self, x: Float[Tensor, "b h s d"], positions: Int[Tensor, "b s"]) -> Float[Tensor, "b h s d"]:
        """Return x rotated to its positions."""
        return self.rotate(x, self.cos_sin(positions))

    def rotate(
        self,
        x: Float[Tensor, "b h s d"],
        cos_sin: tuple[Float[Tensor, "b_or_1 1 s width"], Float[Tensor, "b_or_1 1 s width"]],
    ) -> Float[Tensor, "b h s d"]:
        """Return x rotated to the positions of `cos_sin`."""
        cos, sin = cos_sin
        moving, still = x[..., : self.width], x[..., self.width :]
        rotated = torch.addcmul(moving * cos, self._partners(moving), sin).to(x.dtype)
        return torch.cat([rotated, still], dim=-1) if still.shape[-1] else rotated

    def _join(self, first: Float[Tensor, "*shape pairs"], second: Float[Tensor, "*shape pairs"]) -> Tensor:
        """Join the two features of each pair, and return all features."""
        if self.config.layout == "half":
            return torch.cat([first, second], dim=-1)
        return torch.stack([first, second], dim=-1).flatten(-2)

    def _partners(self, x: Float[Tensor, "*shape d"]) -> Float[Tensor, "*shape d"]:
        """Return every feature's partner in its pair, at the feature's place."""
        if self.config.layout == "half":
            return x.roll(self.width // 2, dims=-1)
        return torch.stack([x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
