"""A decoder in the style of LLaMA: sizes and weights. The functions that use them come from a mapping.

    tokens → embedding → blocks → norm → head → logits

Each block adds two branches to the stream: attention, then feed-forward. Each branch reads the normalised stream. You
can replace any of the functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

Parts = Mapping[str, Callable[..., Any]]
"""The functions by name: decoder, causal_lm_loss, and the functions that `decoder` needs: block, rms_norm,
self_attention, rope, grouped_query_attention, glu_ffn."""


@dataclass(frozen=True)
class Config:
    """The sizes of a model.

    Attributes:
        vocab_size: number of tokens in the vocabulary.
        d_model: the width of the stream.
        layers: number of blocks.
        heads, kv_heads, d_head: numbers of query heads and of key and value heads, and the width of each head.
        d_ff: the width of the feed-forward layer.
        context: length of the longest text in tokens.
        theta: the base of the rotary embedding.
        eps: the epsilon of all norms.
        tied: whether the head shares the embedding's matrix.
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


def with_theta(rope: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return `rope(x, positions, theta)`, which computes the speeds that `rope` takes from the base theta."""

    def turned(x: Tensor, positions: Tensor, theta: float) -> Tensor:
        d = x.shape[-1]
        return rope(x, positions, 1 / theta ** (torch.arange(0, d, 2, device=x.device) / d))

    return turned


def block_weights(config: Config) -> nn.ParameterDict:
    """Return new weights of one block: random matrices of shape (out, in), and scales of norms equal to 1."""
    d, heads = config.d_model, config.heads * config.d_head
    shapes = {
        "qkv": (heads + 2 * config.kv_heads * config.d_head, d),
        "out": (d, heads),
        "gate": (config.d_ff, d),
        "up": (config.d_ff, d),
        "down": (d, config.d_ff),
    }
    weights = {name: small_random(*shape) for name, shape in shapes.items()}
    return nn.ParameterDict(weights | {"norm_1": torch.ones(d), "norm_2": torch.ones(d)})


def small_random(*shape: int) -> Tensor:
    """Return random numbers with a standard deviation of 0.02, as in GPT-2's initialization."""
    return torch.empty(shape).normal_(std=0.02)


class Transformer(nn.Module):
    """The whole model.

    Args:
        config: the sizes of the model.
        parts: the functions of the model.
    """

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.config, self.parts = config, parts
        self.embedding = nn.Parameter(small_random(config.vocab_size, config.d_model))
        self.blocks = nn.ModuleList(block_weights(config) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.d_model))
        self.head = None if config.tied else nn.Parameter(small_random(config.vocab_size, config.d_model))

    def weights(self) -> dict[str, Any]:
        """Return the weights by name, for `decoder`; a tied head is left out."""
        blocks = [dict(block.items()) for block in self.blocks]  # type: ignore[operator]
        weights: dict[str, Any] = {"embedding": self.embedding, "blocks": blocks, "norm": self.norm}
        return weights if self.head is None else {**weights, "head": self.head}

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token at each position; maps b s to b s v."""
        logits: Tensor = self.parts["decoder"](tokens, self.weights(), asdict(self.config), self.parts)
        return logits

    def loss(self, tokens: Tensor) -> Tensor:
        """Return the mean of −log p(token) in nats over all tokens except the first of each text."""
        loss: Tensor = self.parts["causal_lm_loss"](self(tokens), tokens)
        return loss

    @torch.no_grad()
    def generate(self, tokens: list[int], count: int) -> list[int]:
        """Append the most likely token `count` times, and return the new tokens; fewer if the context is full."""
        text = list(tokens)
        while len(text) < min(len(tokens) + count, self.config.context):
            text.append(int(self(torch.tensor([text]))[0, -1].argmax()))
        return text[len(tokens) :]


def load(folder: Path, parts: Parts) -> Transformer:
    """Load a model from a folder with sizes in `config.json` and weights in `model.safetensors`."""
    config = Config(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
    model = Transformer(config, parts)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.eval()
