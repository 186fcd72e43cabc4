"""Tiny models that learn stories 32 characters at a time, each with another scheme of positions, and then read 128."""

from __future__ import annotations

import random
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.data.grammar import story_grammar
from lmcourse.exercises.measured import one_thread
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn import position_bias
from lmcourse.nn.embedding import EmbeddingConfig

TRAINED, READ = 32, 128
_STEPS, _HELD_OUT = 400, 20_000


@cache
def _text() -> Int[Tensor, " n"]:
    """Return the stories as numbers of characters."""
    stories, source = story_grammar(), random.Random(0)
    story = "".join(stories.generate(source) for _ in range(300))
    characters = sorted(set(story))
    return torch.tensor([characters.index(character) for character in story])


def frequency_loss() -> float:
    """Return the loss of a table that only holds how frequent each character is, in nats."""
    share = _text().bincount() / len(_text())
    return -(share * share.log()).sum().item()


@one_thread()
def story_losses(scheme: str, seed: int = 0) -> list[float]:
    """Train a tiny LLaMA with "none", "learned", "ALiBi" or "RoPE"; return its loss at each of 128 positions."""
    torch.manual_seed(seed)
    table = EmbeddingConfig("learned", max_positions=READ) if scheme == "learned" else None
    attention = {} if scheme == "RoPE" else {"rotary": None}
    vocabulary = int(_text().max()) + 1
    config = llama_like(
        2, 32, 4, 64, vocab_size=vocabulary, context=READ, tied=True, embedding=table, layer_pattern=(attention,)
    )
    model = Transformer(config.with_(position_bias=position_bias.AlibiConfig() if scheme == "ALiBi" else None))
    initialize(model)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    for step in range(_STEPS):
        optimizer.param_groups[0]["lr"] = 0.01 * min(1, (step + 1) / 20) * (1 - step / _STEPS)
        optimizer.zero_grad()
        torch.autograd.backward(_losses(model, _text()[:-_HELD_OUT], 16, TRAINED).mean())
        optimizer.step()
    with torch.no_grad():
        torch.manual_seed(0)
        losses: list[float] = _losses(model, _text()[-_HELD_OUT:], 256, READ).mean(dim=0).tolist()
    return losses


def within_and_beyond(losses: list[float]) -> tuple[float, float]:
    """Return the mean loss at positions 16 to 32, which training knew, and at 96 to 128."""
    return sum(losses[16:32]) / 16, sum(losses[96:]) / 32


def _losses(model: Transformer, text: Int[Tensor, " n"], count: int, length: int) -> Float[Tensor, "count length"]:
    """Return the loss of each character in this many pieces of the text."""
    rows = text[torch.randint(len(text) - length, (count, 1)) + torch.arange(length + 1)]
    return F.cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:], reduction="none")
