"""A decoder in the style of LLaMA: its sizes and weights. What is computed with them are functions of a mapping.

    tokens → embedding → blocks → norm → head → logits

Each block adds two branches to the stream: attention, then feed-forward, each reading a normalised stream. Another
function can be put in the place of any.
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
"""The functions by name: decoder, causal_lm_loss, and those that `decoder` needs: block, rms_norm, self_attention,
rope, grouped_query_attention, glu_ffn."""


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


def block_weights(config: Config) -> nn.ParameterDict:
    """The weights of one block, matrices as (out, in): drawn from a normal distribution, the scales of norms 1."""
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
    """Random numbers with a standard deviation of 0.02, as GPT-2 starts."""
    return torch.empty(shape).normal_(std=0.02)


class Transformer(nn.Module):
    """The whole model.

    Args:
        config: its sizes.
        parts: the functions that it is made of.
    """

    def __init__(self, config: Config, parts: Parts) -> None:
        super().__init__()
        self.config, self.parts = config, parts
        self.embedding = nn.Parameter(small_random(config.vocab_size, config.d_model))
        self.blocks = nn.ModuleList(block_weights(config) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.d_model))
        self.head = None if config.tied else nn.Parameter(small_random(config.vocab_size, config.d_model))

    def weights(self) -> dict[str, Any]:
        """Return the weights by name, as `decoder` takes them; a tied head is left out."""
        blocks = [dict(block.items()) for block in self.blocks]  # type: ignore[operator]
        weights: dict[str, Any] = {"embedding": self.embedding, "blocks": blocks, "norm": self.norm}
        return weights if self.head is None else {**weights, "head": self.head}

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token at each position, from b s to b s v."""
        logits: Tensor = self.parts["decoder"](tokens, self.weights(), asdict(self.config), self.parts)
        return logits

    def loss(self, tokens: Tensor) -> Tensor:
        """The mean of −log p(next token) in nats, over all tokens of b s but the first of each text."""
        loss: Tensor = self.parts["causal_lm_loss"](self(tokens), tokens)
        return loss

    @torch.no_grad()
    def generate(self, tokens: list[int], count: int) -> list[int]:
        """Return the `count` likeliest next tokens, one after the other; fewer if the context fills up."""
        text = list(tokens)
        while len(text) < min(len(tokens) + count, self.config.context):
            text.append(int(self(torch.tensor([text]))[0, -1].argmax()))
        return text[len(tokens) :]


def load(folder: Path, parts: Parts) -> Transformer:
    """The model whose sizes are in `config.json` and whose weights are in `model.safetensors` of a folder."""
    config = Config(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
    model = Transformer(config, parts)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.eval()
