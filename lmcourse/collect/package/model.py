"""A decoder in the style of LLaMA, assembled from functions: norm, rotary embedding, attention, feed-forward, block.

    tokens → embedding → blocks → norm → head → logits

Each block adds two branches to the stream: attention, then feed-forward, each reading a normalised stream. The
functions come as a mapping, so that another one can be put in the place of any.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

Parts = Mapping[str, Callable[..., Any]]
"""The functions by name: rms_norm, rope, grouped_query_attention, glu_ffn, block."""


@dataclass(frozen=True)
class Config:
    """The sizes of a model.

    Attributes:
        vocab_size: how many tokens there are.
        d_model: the width of the stream.
        layers: how many blocks.
        heads, kv_heads, d_head: of attention: query heads, key and value heads, and the width of each.
        d_ff: the width of the feed-forward layer.
        context: the longest text, in tokens.
        theta: the base of the rotary embedding.
        eps: of every norm.
        tied: whether the head is the embedding.
    """

    vocab_size: int
    d_model: int
    layers: int
    heads: int
    kv_heads: int
    d_head: int
    d_ff: int
    context: int
    theta: float = 10_000.0
    eps: float = 1e-5
    tied: bool = False


class Norm(nn.Module):
    """RMSNorm with a learned scale."""

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.d_model))
        self.eps, self.rms_norm = config.eps, parts["rms_norm"]

    def forward(self, x: Tensor) -> Tensor:
        """The stream, each token's vector normalised; shape b s d."""
        y: Tensor = self.rms_norm(x, self.weight, self.eps)
        return y


class Attention(nn.Module):
    """Causal attention with grouped queries and rotary embedding."""

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.config = config
        self.rope, self.attend = parts["rope"], parts["grouped_query_attention"]
        self.qkv = nn.Linear(config.d_model, (config.heads + 2 * config.kv_heads) * config.d_head, bias=False)
        self.out = nn.Linear(config.heads * config.d_head, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """What every token gathers from those before it and itself; shape b s d."""
        config = self.config
        heads = self.qkv(x).unflatten(-1, (-1, config.d_head)).transpose(1, 2)  # b s (h d) -> b h s d
        q, k, v = heads.split([config.heads, config.kv_heads, config.kv_heads], dim=1)
        positions = torch.arange(x.shape[1], device=x.device)
        q, k = (self.rope(as_neighbours(each), positions, config.theta) for each in (q, k))
        y: Tensor = self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return y


def as_neighbours(x: Tensor) -> Tensor:
    """Put feature i and feature i + d/2 side by side.

    Published weights rotate these two together, and `rope` rotates neighbours. Queries and keys are reordered alike,
    so no score changes.
    """
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


class FeedForward(nn.Module):
    """SwiGLU, with the gate and what it multiplies in one matrix."""

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.gate_up = nn.Linear(config.d_model, 2 * config.d_ff, bias=False)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.glu_ffn = parts["glu_ffn"]

    def forward(self, x: Tensor) -> Tensor:
        """Every token's vector through the layer, on its own; shape b s d."""
        gate, up = self.gate_up.weight.chunk(2)
        y: Tensor = self.glu_ffn(x, gate.T, up.T, self.down.weight.T, "swiglu")
        return y


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to the stream."""

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.norm_1, self.attention = Norm(config, parts), Attention(config, parts)
        self.norm_2, self.feed_forward = Norm(config, parts), FeedForward(config, parts)
        self.block = parts["block"]

    def forward(self, x: Tensor) -> Tensor:
        """The stream after this layer; shape b s d."""
        y: Tensor = self.block(x, self.attention, self.feed_forward, self.norm_1, self.norm_2, False)
        return y


class Transformer(nn.Module):
    """The whole model.

    Args:
        config: its sizes.
        parts: the functions that it is made of.
    """

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(Block(config, parts) for _ in range(config.layers))
        self.norm = Norm(config, parts)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """The logits of the token after each; from b s to b s v."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits

    def loss(self, tokens: Tensor) -> Tensor:
        """The mean of −log p(next token) in nats, over all tokens of b s but the first of each text."""
        logits = self(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    @torch.no_grad()
    def generate(self, tokens: list[int], count: int) -> list[int]:
        """The `count` likeliest next tokens, one after the other; fewer if the context is full before."""
        text = list(tokens)
        while len(text) < min(len(tokens) + count, self.config.context):
            text.append(int(self(torch.tensor([text]))[0, -1].argmax()))
        return text[len(tokens) :]


def load(folder: Path, parts: Parts) -> Transformer:
    """The model whose sizes are in `config.json` and whose weights are in `model.safetensors` of a folder."""
    config = Config(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
    model = Transformer(config, parts)
    weights = load_file(folder / "model.safetensors")
    if config.tied:
        weights["head.weight"] = weights["embedding.weight"]
    model.load_state_dict(weights)
    return model.eval()
