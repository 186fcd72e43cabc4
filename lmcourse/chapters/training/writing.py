"""The models of notebook 13 that write: stories byte by byte, and help texts token by token."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import nn

from lmcourse.chapters.training.climb import WINDOW
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.pretrained import load_pretrained
from lmcourse.training.run_settings import Settings

NEW_LINE = 10


def story_model(seed: int = 0) -> Transformer:
    """Return a new model of two blocks and 32 features for stories in bytes."""
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, 32, 4, 64, vocab_size=128, context=160))
    initialize(model, "fan_in")
    return model


def write_story(model: nn.Module, count: int = 130) -> str:
    """Return what a model writes after a new line."""
    return bytes(_written(model, [NEW_LINE], count)[1:]).decode("ascii", "replace").replace("\n", "¶")


def watched(plot: Any, model: Transformer, settings: Settings, tokens: int) -> tuple[dict[int, str], Any]:
    """Return what the model writes after some updates, filled during the run, and a `report` that draws each update.

    Args:
        plot: the plot of the run.
        model: the model that is trained.
        settings: the settings of the run.
        tokens: the number of tokens of an update.
    """
    written: dict[int, str] = {}
    began = time.perf_counter()

    def report(step: int, loss: float) -> None:
        speed = step * tokens / (time.perf_counter() - began)
        norm = math.sqrt(sum(p.grad.square().sum().item() for p in model.parameters() if p.grad is not None))
        rate = settings.rate * settings.factor(step - 1)
        done = {"step": step, "loss": loss, "tokens": step * tokens, "learning_rate": rate}
        plot({**done, "gradient_norm": norm, "tokens_per_second": speed})
        if step in (60, 150, 300):
            written[step] = write_story(model)

    return written, report


def write_help(model: nn.Module, count: int = 60, opening: str = "Return the ") -> str:
    """Return what a model of help texts writes after an opening."""
    tokenizer = load_pretrained().tokenizer
    text: str = tokenizer.decode(_written(model, tokenizer.encode(opening), count))
    return text


@torch.no_grad()
def _written(model: nn.Module, tokens: list[int], count: int) -> list[int]:
    """Return tokens with `count` more, which a model adds at a temperature of 0.7."""
    chance = torch.Generator().manual_seed(0)
    model.eval()
    for _ in range(count):
        logits = model(torch.tensor([tokens[-WINDOW:]]))[0, -1]
        tokens = [*tokens, int(torch.multinomial((logits / 0.7).softmax(-1), 1, generator=chance))]
    model.train()
    return tokens
