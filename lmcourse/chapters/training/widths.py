"""Short runs of one block at several widths, to find whether a narrow model's learning rate suits a wide one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from lmcourse.chapters.training.strangers import train
from lmcourse.data.corpus_sources import stories
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.run_settings import Settings

WIDTHS, RATES, BASE = (16, 32, 64, 128), (0.002, 0.004, 0.008, 0.016, 0.032, 0.064), 32
"""Widths and rates of the sweep, and the width on which the scaled rates are based."""

STEPS, WARMUP, DECAY, BATCH, WINDOW = 100, 10, 30, 8, 64
"""Settings of a run: number of updates, warm-up and decay steps, windows per update, bytes per window."""

Factors = Callable[[Mapping[str, list[int]], Mapping[str, list[int]], list[str]], Mapping[str, float]]
"""Takes shapes by name, the shapes of the model of width `BASE`, and the names of the embeddings."""


@cache
def story_bytes(count: int = 400, seed: int = 0) -> Int[Tensor, " n"]:
    """Return the bytes of stories from the grammar of notebook 05."""
    return torch.tensor([*"".join(stories(count, seed)).encode()])


def make_model(width: int, seed: int = 0) -> Transformer:
    """Return a model of one block with heads of 16 features; the variance of its weights is one over the inputs."""
    torch.manual_seed(seed)
    model = Transformer(llama_like(1, width, width // 16, 3 * width, vocab_size=128, context=WINDOW))
    initialize(model, "fan_in")
    return model


def shapes_of(model: torch.nn.Module) -> dict[str, list[int]]:
    """Return every parameter's shape by its name."""
    return {name: list(p.shape) for name, p in model.named_parameters()}


def groups_of(model: Transformer, rate: float, factors: Factors | None) -> list[dict[str, object]]:
    """Return an optimizer group with its rate for each parameter. With `factors`, also divide the head's
    weights by √(width / BASE)."""
    shapes = shapes_of(model)
    if factors is None:
        found: Mapping[str, float] = dict.fromkeys(shapes, 1.0)
    else:
        found = factors(shapes, shapes_of(make_model(BASE)), ["embedding.tokens.weight"])
        with torch.no_grad():
            head = model.head.linear.weight
            head.mul_((BASE / head.shape[1]) ** 0.5)
    return [{"params": [p], "lr": rate * found[name]} for name, p in model.named_parameters()]


def end_of_run(width: int, rate: float, factors: Factors | None = None, seed: int = 0) -> float:
    """Return the mean loss of the last ten of `STEPS` updates, nats per byte: AdamW without decay, WSD."""

    def optimizer(model: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups_of(model, rate, factors), weight_decay=0.0)

    loader = Loader(story_bytes(), BATCH, WINDOW, seed=seed, prefetch=0)
    losses = train(make_model(width, seed), loader, Settings(STEPS, rate, WARMUP, DECAY, optimizer=optimizer))
    return sum(losses[-10:]) / 10


PARTS = {"head": "head", "attention": "attention.", "feed-forward": "feed_forward.", "embedding": "embedding"}
"""Parts of the model, and words in the names of their parameters."""


def changes_by_part(factors: Factors | None = None) -> dict[str, list[float]]:
    """Return how far one update of each part alone moves a new model's logits, by width: the root mean square."""
    return {part: [_change_of_logits(width, word, factors) for width in WIDTHS] for part, word in PARTS.items()}


def _change_of_logits(width: int, word: str, factors: Factors | None) -> float:
    model = make_model(width)
    optimizer = torch.optim.AdamW(groups_of(model, 0.016, factors), weight_decay=0.0)
    batch = next(Loader(story_bytes(), BATCH, WINDOW, seed=0, prefetch=0))
    before = model(batch.inputs)
    next_token_loss(before, batch.targets).backward()  # type: ignore[no-untyped-call]
    for name, p in model.named_parameters():
        if word not in name:
            p.grad = None
    optimizer.step()
    with torch.no_grad():
        moved: Tensor = model(batch.inputs) - before
        return moved.square().mean().sqrt().item()
