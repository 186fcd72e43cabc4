"""A small model that learns to write from 60,000 letters, and its loss on new stories.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from lmcourse.chapters.data_and_scores.pool import HELD_OUT, paragraphs
from lmcourse.data.loader import Loader
from lmcourse.exercises.measured import one_thread
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.run_settings import Settings

Fit = Callable[..., Any]
"""Takes (model, loader, settings) and trains the model: the trainer of notebook 13."""

WINDOW, STEPS = 64, 300


def letters(documents: Iterable[str]) -> Int[Tensor, " n"]:
    """Return the letters of documents as numbers below 128."""
    return torch.tensor(list("".join(documents).encode("ascii")))


def new_model(seed: int) -> Transformer:
    """Return a new model of two blocks and 32 features that reads letters."""
    torch.manual_seed(seed)
    return Transformer(llama_like(2, 32, 2, 64, vocab_size=128, context=96))


def fit(model: nn.Module, loader: Loader, settings: Settings) -> None:
    """Train a model as notebook 13 asks for it, without snapshots."""
    optimizer = settings.optimizer(model)
    rates = [group["lr"] for group in optimizer.param_groups]
    for step in range(settings.steps):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * settings.factor(step)
        batch = next(loader)
        loss = F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), settings.limit)
        optimizer.step()


@one_thread()
def trained_on(documents: Iterable[str], seed: int, fit: Fit = fit) -> Transformer:
    """Return a model after 300 updates of 16 windows of 64 letters: several epochs of 60,000 letters."""
    model = new_model(seed)
    loader = Loader(letters(documents), 16, WINDOW, seed=seed, prefetch=0)
    fit(model, loader, Settings(STEPS, rate=0.01, warmup=15, decay=150, every=STEPS + 1))
    return model


@one_thread()
@torch.no_grad()
def loss_on(model: nn.Module, documents: Iterable[str], length: int = 96) -> float:
    """Return the mean loss on documents, cut into windows, in nats a letter."""
    model.eval()
    text = letters(documents)
    windows = text[: len(text) // length * length].view(-1, length)
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten()).item()


def held_out_loss(model: nn.Module) -> float:
    """Return the mean loss on 260 new paragraphs, 43,000 letters, in which all places are equally frequent."""
    return loss_on(model, paragraphs(HELD_OUT, 260))
