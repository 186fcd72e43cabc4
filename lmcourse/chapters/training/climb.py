"""The open task of notebook 13: a recipe of the learner climbs on from the ladder's last rung.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from lmcourse.chapters.training.strangers import train
from lmcourse.data.batch import Batch
from lmcourse.data.help_texts import help_texts
from lmcourse.data.loader import Loader
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.training.run_settings import Settings

Recipe = Callable[..., Any]

BUDGET, PARAMETERS, VOCABULARY, WINDOW, HELD_OUT = 204_800, 172_416, 512, 64, 300
"""Tokens that the meter hands out, and parameters, at most; tokens of the vocabulary; the held-out windows."""

FRESH = 5.9
"""The least loss before the first update, in nats: guessing costs 6.24."""

THREE = "`recipe` must return a model, the loader that `meter` made, and `Settings`."
FUNCTIONS = "`optimizer` and `factor` of your settings must be functions: of the model, and of the step."
MANY = "Your model has {:,} parameters. At most {:,} are allowed."
LONG = "Your run takes {:,} tokens. The meter hands out {:,}."
READ = " `recipe` itself has read {:,} of them."
SPENT = "The meter has handed out its 204,800 tokens."
LOGITS = "Your model must turn tokens of shape (b, s) into logits of shape (b, s, 512). Yours have the shape {}."
KNOWS = "Before its first update your model's loss is {:.2f}, and guessing costs 6.24: it knows something already."
FUTURE = "Your model reads later tokens: its logits change with them."
ROWS = "Your model reads other rows of the batch: its logits change with them."
MEMORY = "Your model keeps more than parameters: with its first weights it no longer gives its first logits."
GRADIENTS = "Your recipe computes gradients of its own. Only the trainer does, and it uses every batch once."


class Meter:
    """Makes loaders of the training text that hand out `BUDGET` tokens, all of them together."""

    def __init__(self) -> None:
        self.left = BUDGET

    def __call__(self, batch: int, length: int, seed: int) -> Loader:
        """Return a loader of batches of `batch` windows of `length` tokens."""
        return MeteredLoader(self, batch, length, seed)


class MeteredLoader(Loader):
    """A loader whose tokens a meter counts."""

    def __init__(self, meter: Meter, batch: int, length: int, seed: int) -> None:
        super().__init__(texts()[0], batch, length, seed=seed, prefetch=0)
        self.meter = meter

    def __next__(self) -> Batch:
        tokens = self.batch * self.order.seq_len
        if tokens > self.meter.left:
            raise Unfit(SPENT)
        self.meter.left -= tokens
        return super().__next__()


texts = cache(help_texts)
"""Returns the tokens to train on, and those that are held out."""


@torch.no_grad()
def held_out_loss(model: nn.Module, windows: int = HELD_OUT) -> float:
    """Return the mean loss on windows of the held-out text, in nats per token."""
    model.eval()
    tokens = texts()[1][: WINDOW * windows + 1]
    total = 0.0
    for x, y in zip(*(torch.split(part.view(-1, WINDOW), 50) for part in (tokens[:-1], tokens[1:])), strict=True):
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
    model.train()
    return total / (WINDOW * windows)


@one_thread()
def inspect_recipe(recipe: Recipe) -> None:
    """Raise Unfit if what a recipe makes breaks a rule before it is trained."""
    _made(recipe, 0)


@one_thread()
def measure_recipe(recipe: Recipe, seed: int) -> dict[str, float]:
    """Train by a recipe; return the loss on the held-out text."""
    with _backward_passes() as passes:
        model, loader, settings = _made(recipe, seed)
        first = {name: p.detach().clone() for name, p in model.named_parameters()}
        before = _logits(model, _probe())
        train(model, loader, settings)
        if len(passes) > settings.steps * settings.micro_batches:
            raise Unfit(GRADIENTS)
    loss = held_out_loss(model)
    _check_logits(model)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(first[name])
    if not torch.allclose(_logits(model, _probe()), before, atol=1e-3):
        raise Unfit(MEMORY)
    return {"loss": loss}


def _made(recipe: Recipe, seed: int) -> tuple[nn.Module, Loader, Settings]:
    """Return what a recipe makes; raise Unfit if it breaks a rule."""
    torch.manual_seed(seed)
    meter = Meter()
    made = recipe(meter, seed)
    if not isinstance(made, tuple | list) or len(made) != 3:
        raise Unfit(THREE)
    model, loader, settings = made
    whole = isinstance(model, nn.Module) and isinstance(loader, MeteredLoader) and isinstance(settings, Settings)
    if not whole or loader.meter is not meter:
        raise Unfit(THREE)
    if not (callable(settings.optimizer) and callable(settings.factor)):
        raise Unfit(FUNCTIONS)
    if (count := sum(p.numel() for p in model.parameters())) > PARAMETERS:
        raise Unfit(MANY.format(count, PARAMETERS))
    tokens = settings.steps * settings.micro_batches * loader.batch * loader.order.seq_len
    if tokens > meter.left:
        read = BUDGET - meter.left
        raise Unfit(LONG.format(tokens, BUDGET) + (READ.format(read) if read else ""))
    if (shape := _logits(model, _probe()).shape) != (*_probe().shape, VOCABULARY):
        raise Unfit(LOGITS.format(tuple(shape)))
    if (loss := held_out_loss(model, 50)) < FRESH:
        raise Unfit(KNOWS.format(loss))
    _check_logits(model)
    return model, loader, settings


def _check_logits(model: nn.Module) -> None:
    """Raise Unfit if logits depend on later tokens or on other rows."""
    probe, half = _probe(), WINDOW // 2
    as_it_is = _logits(model, probe)
    changed = torch.cat([probe[:, :half], probe.flip(0)[:, half:]], dim=1)
    if not torch.allclose(_logits(model, changed)[:, :half], as_it_is[:, :half], atol=1e-3):
        raise Unfit(FUTURE)
    if not torch.allclose(_logits(model, probe[:1])[0], as_it_is[0], atol=1e-3):
        raise Unfit(ROWS)


@cache
def _probe() -> Int[Tensor, "8 64"]:
    return texts()[1][-8 * WINDOW :].view(8, WINDOW)


@torch.no_grad()
def _logits(model: nn.Module, tokens: Int[Tensor, "b s"]) -> Tensor:
    model.eval()
    logits: Tensor = model(tokens)
    model.train()
    return logits


@contextmanager
def _backward_passes() -> Iterator[list[int]]:
    """Count the backward passes in this block."""
    passes: list[int] = []
    autograd: Any = torch.autograd
    engine = autograd._engine_run_backward

    def counted(*args: Any, **kwargs: Any) -> Any:
        passes.append(1)
        return engine(*args, **kwargs)

    autograd._engine_run_backward = counted
    try:
        yield passes
    finally:
        autograd._engine_run_backward = engine
