"""Token embedding with absolute positions, and the output head: from token ids to vectors, from vectors to logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.nn.checks import check_choice, check_probability
from lmcourse.nn.norm import Norm, NormConfig

Positions = Literal["none", "learned", "sinusoidal"]


@dataclass(frozen=True)
class EmbeddingConfig:
    """Embedding settings: absolute positions, scale, width, norm, dropout.

    Attributes:
        positions: the absolute positions to add to the tokens: learned, sines and cosines (Vaswani et al., 2017), or
            none.
        max_positions: the number of learned positions.
        position_offset: the row of the table at which learned positions start (OPT: 2).
        scale: the factor of the token vectors (Gemma: √d).
        width: the width of the token vectors if it is smaller than the model's; a matrix then projects them (OPT-350M).
        norm: a norm right after the embedding (BLOOM).
        dropout: the probability of dropout on the sum of token and position.
    """

    positions: Positions = "none"
    max_positions: int | None = None
    position_offset: int = 0
    scale: float = 1.0
    width: int | None = None
    norm: NormConfig | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice("kind of position", self.positions, Positions)
        check_probability("dropout", self.dropout)
        if any(size is not None and size < 1 for size in (self.max_positions, self.width)) or self.position_offset < 0:
            raise ValueError(
                "the width and max_positions must be positive, and the position offset must not be negative"
            )
        if (self.positions == "learned") != (self.max_positions is not None):
            raise ValueError("set `max_positions` if and only if positions are learned")


@dataclass(frozen=True)
class HeadConfig:
    """Output-head settings: weight tying, bias, scale, soft cap.

    Attributes:
        tied: whether the output matrix is the token embedding (Press and Wolf, 2017).
        bias: whether the head has a bias.
        scale: the factor of the logits (Cohere; T5: d^−½).
        soft_cap: a limit: a tanh squeezes the logits into ±soft_cap (Gemma 2).
    """

    tied: bool = True
    bias: bool = False
    scale: float = 1.0
    soft_cap: float | None = None

    def __post_init__(self) -> None:
        if self.soft_cap is not None and self.soft_cap <= 0:
            raise ValueError(f"the soft cap must be positive, not {self.soft_cap}")


def sinusoidal(positions: Int[Tensor, "*shape"], d: int) -> Float[Tensor, "*shape d"]:
    """Return sin(position / 10000^(2i/d)) in even features and the cosine in odd ones (Vaswani et al., 2017, §3.5).

    Raises ValueError if d is odd.
    """
    if d % 2:
        raise ValueError(f"sinusoidal positions pair a sine with a cosine: the width must be even, not {d}")
    exponents = torch.arange(0, d, 2, device=positions.device) / d
    angles = positions[..., None].float() * 10_000.0**-exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class Embedding(nn.Module):
    """Token vectors plus absolute positions."""

    def __init__(self, config: EmbeddingConfig, vocab_size: int, d_model: int) -> None:
        super().__init__()
        width = d_model if config.width is None else config.width
        self.tokens = nn.Embedding(vocab_size, width)
        self.project: nn.Module = nn.Identity() if width == d_model else nn.Linear(width, d_model, bias=False)
        self.positions = (
            nn.Embedding(config.max_positions + config.position_offset, d_model) if config.max_positions else None
        )
        self.sinusoidal = config.positions == "sinusoidal"
        self.norm: nn.Module = Norm(config.norm, d_model) if config.norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.scale, self.max_positions = config.scale, config.max_positions
        self.position_offset = config.position_offset

    def forward(self, tokens: Int[Tensor, "b s"], positions: Int[Tensor, "b_or_1 s"]) -> Float[Tensor, "b s d"]:
        """Return the tokens' vectors. A single row of positions is used for every text.

        A token outside the vocabulary, or a position without a learned vector, raises ValueError, but only on a CPU.
        Reading numbers from a GPU would mean waiting for it, so there torch itself raises an error. `check_seq_len`
        works without reading positions.
        """
        try:
            x: Tensor = self.project(self.tokens(tokens)) * self.scale
        except IndexError:
            least, most, vocab_size = int(tokens.min()), int(tokens.max()), self.tokens.num_embeddings
            wrong = least if least < 0 else most
            raise ValueError(f"token {wrong} is not in the model's vocabulary of {vocab_size}") from None
        at = positions.clamp(min=0)  # padding has no position, and no token sees its vector
        if self.positions is not None:
            try:
                x = x + self.positions(at + self.position_offset)
            except IndexError:
                self.check_seq_len(int(at.max()) + 1)
                raise
        if self.sinusoidal:
            x = x + sinusoidal(at, x.shape[-1]).to(x.dtype)
        result: Tensor = self.dropout(self.norm(x))
        return result

    def check_seq_len(self, tokens: int) -> None:
        """Raise ValueError if a text of this many tokens has more tokens than there are learned positions."""
        if self.max_positions is not None and tokens > self.max_positions:
            raise ValueError(f"a text of {tokens} tokens is longer than the {self.max_positions} learned positions")


class Head(nn.Module):
    """The output head: computes the logits of the next token."""

    def __init__(self, config: HeadConfig, embedding: Embedding, d_model: int) -> None:
        super().__init__()
        vocab_size, width = embedding.tokens.weight.shape
        self.project: nn.Module = nn.Identity() if width == d_model else nn.Linear(d_model, width, bias=False)
        self.linear = nn.Linear(width, vocab_size, bias=config.bias)
        if config.tied:
            self.linear.weight = embedding.tokens.weight
        self.scale, self.soft_cap = config.scale, config.soft_cap

    def forward(self, x: Float[Tensor, "b s d"]) -> Float[Tensor, "b s v"]:
        """Return every token's logits over the vocabulary."""
        logits: Tensor = self.linear(self.project(x))
        if self.scale != 1:  # logits are a model's largest tensor, so skip products that change nothing
            logits = logits * self.scale
        return logits if self.soft_cap is None else self.soft_cap * torch.tanh(logits / self.soft_cap)
