"""The transformer block: attention and feed-forward, two branches of the residual stream.

The four placements (`Residual`) differ only in where the norms are. In serial blocks one branch follows the other; in
parallel blocks both have the same input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lmcourse.nn.attention import Attention, AttentionConfig, CrossAttention
from lmcourse.nn.checks import check_choice, check_probability
from lmcourse.nn.context import ForwardContext
from lmcourse.nn.feed_forward import FeedForwardConfig, build_feed_forward
from lmcourse.nn.norm import Norm, NormConfig, TensorFunction, identity

Placement = Literal["pre", "post", "double", "output"]
Branches = Literal["serial", "parallel", "parallel_two_norms"]


@dataclass(frozen=True)
class LayerConfig:
    """Settings of one layer: its attention and its feed-forward part."""

    attention: AttentionConfig
    feed_forward: FeedForwardConfig


@dataclass(frozen=True)
class BlockConfig:
    """Block settings that all blocks of a model share: norm, its placement, serial or parallel branches, dropout.

    Attributes:
        norm: the norm of every branch.
        placement: "pre" x + f(N(x)); "post" N(x + f(x)) (Vaswani et al., 2017); "double" x + N(f(N(x))) (Gemma 2);
            "output" x + N(f(x)) (OLMo 2).
        branches: "serial": attention, then feed-forward. "parallel": both read one normalised input (GPT-J, PaLM);
            "parallel_two_norms": each has a separate norm (GPT-NeoX).
        dropout: probability of dropout on each branch's output.
        residual_scale: the factor of each branch's output (Granite).
    """

    norm: NormConfig
    placement: Placement = "pre"
    branches: Branches = "serial"
    dropout: float = 0.0
    residual_scale: float = 1.0

    def __post_init__(self) -> None:
        check_choice("placement", self.placement, Placement)
        check_choice("way to branch", self.branches, Branches)
        if self.branches != "serial" and self.placement != "pre":
            raise ValueError(
                f"parallel branches start from a normalised input: placement must be 'pre', not {self.placement!r}"
            )
        check_probability("dropout", self.dropout)


class Residual(nn.Module):
    """The sum x + f(x), with norms at the configured places."""

    def __init__(self, layer: nn.Module, config: BlockConfig, d_model: int) -> None:
        super().__init__()
        place = config.placement
        self.input_norm: TensorFunction = Norm(config.norm, d_model) if place in ("pre", "double") else identity
        self.layer = layer
        self.output_norm: TensorFunction = Norm(config.norm, d_model) if place in ("double", "output") else identity
        self.post_norm: TensorFunction = Norm(config.norm, d_model) if place == "post" else identity
        self.dropout: TensorFunction = nn.Dropout(config.dropout) if config.dropout else identity
        self.scale = config.residual_scale

    def forward(self, x: Float[Tensor, "b s d"], *context: Any) -> Float[Tensor, "b s d"]:
        """Return x plus the branch's output; `context` is passed to the branch."""
        added = self.dropout(self.output_norm(self.layer(self.input_norm(x), *context)))
        return self.post_norm(torch.add(x, added, alpha=self.scale))


class Block(nn.Module):
    """A serial block: attention, then feed-forward."""

    def __init__(self, layer: LayerConfig, config: BlockConfig, d_model: int, index: int = 0) -> None:
        super().__init__()
        self.attention = Residual(Attention(layer.attention, d_model, index), config, d_model)
        self.feed_forward = Residual(build_feed_forward(layer.feed_forward, d_model), config, d_model)

    def forward(self, x: Float[Tensor, "b s d"], context: ForwardContext) -> Float[Tensor, "b s d"]:
        """Return the residual stream after this block, of shape b s d."""
        result: Tensor = self.feed_forward(self.attention(x, context))
        return result


class ParallelBlock(nn.Module):
    """A parallel block: x + attention(N x) + feed_forward(N′ x)."""

    def __init__(self, layer: LayerConfig, config: BlockConfig, d_model: int, index: int = 0) -> None:
        super().__init__()
        self.norm = Norm(config.norm, d_model)
        # Left out if both branches share a norm: a module with two names would be in every state_dict twice.
        self.norm_feed_forward = Norm(config.norm, d_model) if config.branches == "parallel_two_norms" else None
        self.attention = Attention(layer.attention, d_model, index)
        self.feed_forward = build_feed_forward(layer.feed_forward, d_model)
        self.dropout: TensorFunction = nn.Dropout(config.dropout) if config.dropout else identity
        self.scale = config.residual_scale

    def forward(self, x: Float[Tensor, "b s d"], context: ForwardContext) -> Float[Tensor, "b s d"]:
        """Return the residual stream after this block, of shape b s d."""
        normed = self.norm(x)
        attended = self.dropout(self.attention(normed, context))
        second = normed if self.norm_feed_forward is None else self.norm_feed_forward(x)
        thought = self.dropout(self.feed_forward(second))
        result: Tensor = torch.add(x, attended + thought, alpha=self.scale)
        return result


class CrossBlock(nn.Module):
    """A decoder's block: self-attention, then attention to the encoder's output, then feed-forward."""

    def __init__(self, layer: LayerConfig, config: BlockConfig, d_model: int, index: int = 0) -> None:
        super().__init__()
        self.attention = Residual(Attention(layer.attention, d_model, index), config, d_model)
        self.cross = Residual(CrossAttention(layer.attention, d_model), config, d_model)
        self.feed_forward = Residual(build_feed_forward(layer.feed_forward, d_model), config, d_model)

    def forward(
        self,
        x: Float[Tensor, "b s d"],
        context: ForwardContext,
        memory: tuple[Tensor, Tensor],
        visible: Bool[Tensor, "b t"],
    ) -> Float[Tensor, "b s d"]:
        """Return the residual stream after this block, b s d; `memory` and `visible` as in `CrossAttention`."""
        attended = self.cross(self.attention(x, context), memory, visible)
        result: Tensor = self.feed_forward(attended)
        return result


def build_block(layer: LayerConfig, config: BlockConfig, d_model: int, index: int) -> Block | ParallelBlock:
    """Build the block that a configuration describes."""
    kind = Block if config.branches == "serial" else ParallelBlock
    return kind(layer, config, d_model, index)
