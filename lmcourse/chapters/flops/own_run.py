"""The open task of notebook 15: a small run, its speed beside that of the given settings, and its held-out loss.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median
from time import process_time
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.parameters import matmul_parameters
from lmcourse.data.corpus_sources import stories
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.config import TransformerConfig
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like

Settings = Mapping[str, Any]

GIVEN: Settings = MappingProxyType({"batch": 1, "length": 64, "shape": (4, 64, 128), "rate": 0.001})
"""The settings from which learners start, and which the check measures beside theirs: read-only. The shape: layers,
width, width of the feed-forward layers."""

VOCABULARY, WINDOW, HEAD, STEPS = 128, 64, 32, 400
"""Bytes; length of a held-out window; width of a head; steps of the given run that take as long as a measured run."""

FLOPS, PARAMETERS = 20_000_000_000, 10_000_000
"""At most as many model FLOPs in a step, and parameters."""

FORM = 'Return a dict with the keys of `GIVEN`: "batch", "length", "shape" and "rate".'
NUMBERS = "Batch, length and the three numbers of the shape must be integers above 0, and the rate a number above 0."
CHANGED = "You change {} of the settings: {}. At most two may differ from the given ones."
WIDTH = "The width {} is not a multiple of 32, the width of a head."
MANY = "Your model has {:,} matrix weights. At most 10 million are allowed."
LONG = "A step with your settings takes {:.1e} FLOPs. At most 2e10 are allowed."


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        settings: its settings.
        steps, seconds: its updates, and the processor seconds that they took.
        rate: FLOP/s of the fastest product that was measured between the steps.
        loss: held-out loss in nats per byte.
    """

    settings: Settings
    steps: int
    seconds: float
    rate: float
    loss: float

    def __str__(self) -> str:
        return (
            f"{self.steps} steps in {self.seconds:.1f} s beside products at {self.rate / 1e9:.0f} GFLOP/s, "
            f"loss {self.loss:.2f}"
        )

    @property
    def published(self) -> dict[str, Any]:
        """The run as `four_shares` takes one."""
        layers, width, _ = self.settings["shape"]
        batch, length = self.settings["batch"], self.settings["length"]
        parameters = matmul_parameters(config_of(self.settings))
        sizes = {
            "layers": layers,
            "d_model": width,
            "d_attn": width,
            "vocab_size": VOCABULARY,
            "parameters": parameters,
        }
        speed = {"tokens_per_second": self.steps * batch * length / self.seconds, "devices": 1, "peak": self.rate}
        return {**sizes, **speed, "context": length, "recompute": "nothing"}


class _Training:
    """A model in training."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings = settings
        torch.manual_seed(seed)
        self.model = Transformer(config_of(settings))
        initialize(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), settings["rate"], fused=True)
        self.generator = torch.Generator().manual_seed(seed)

    def step(self, steps: int = 1) -> float:
        """Make updates; return their processor seconds."""
        begin, length = process_time(), self.settings["length"]
        for _ in range(steps):
            starts = torch.randint(len(texts()[0]) - length, (self.settings["batch"], 1), generator=self.generator)
            rows = texts()[0][starts + torch.arange(length + 1)]
            loss = next_token_loss(self.model(rows[:, :-1]), rows[:, 1:])
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        return process_time() - begin

    @torch.no_grad()
    def loss(self) -> float:
        """Return the held-out loss."""
        return next_token_loss(self.model(texts()[1][:, :-1]), texts()[1][:, 1:]).item()


@cache
def texts() -> tuple[Int[Tensor, " n"], Int[Tensor, "windows 65"]]:
    """Return the bytes to train on, and the windows of the held-out tenth."""
    text = torch.tensor([*"".join(stories(400, 0)).encode()])
    end = int(0.9 * len(text))
    return text[:end], text[end:].unfold(0, WINDOW + 1, WINDOW)


def config_of(settings: Settings) -> TransformerConfig:
    """Return the configuration of the model that the settings describe."""
    layers, width, hidden = settings["shape"]
    return llama_like(
        layers, width, width // HEAD, hidden, vocab_size=VOCABULARY, context=max(settings["length"], WINDOW)
    )


def step_flops(settings: Settings) -> int:
    """Return the model FLOPs of a step, all pairs counted."""
    return training_flops(config_of(settings), settings["batch"], settings["length"]).model.total


@one_thread()
def train(settings: Settings, *, steps: int | None = None, seconds: float = math.inf) -> Run:
    """Train a model until it has made `steps` updates, or for as many processor seconds."""
    if steps is None and seconds == math.inf:
        raise ValueError("say when the run ends: steps or seconds")
    training = _Training(settings, 0)
    made, used, rates, measured = 0, 0.0, [_product_rate(), _product_rate()], 0.0
    while (steps is None or made < steps) and used < seconds:
        used += training.step()
        made += 1
        if used > measured + 0.1:
            rates.append(_product_rate())
            measured = used
    return Run(settings, made, used, max(rates), training.loss())


def _product_rate(size: int = 1024) -> float:
    a, b = torch.ones(2, size, size)
    begin = process_time()
    a @ b
    return 2 * size**3 / (process_time() - begin)


def inspect_settings(my_settings: Callable[[], Any]) -> None:
    """Raise Unfit if settings are not valid."""
    _valid(my_settings())


def _valid(settings: Any) -> Settings:
    if not isinstance(settings, Mapping) or settings.keys() != GIVEN.keys():
        raise Unfit(FORM)
    batch, length, shape, rate = (settings[name] for name in GIVEN)
    numbers = [batch, length, *shape] if isinstance(shape, tuple | list) and len(shape) == 3 else [None]
    if not all(type(n) is int and n > 0 for n in numbers) or type(rate) not in (int, float) or not 0 < rate < math.inf:
        raise Unfit(NUMBERS)
    settings = {**settings, "shape": tuple(shape)}
    if len(changed := [name for name in GIVEN if settings[name] != GIVEN[name]]) > 2:
        raise Unfit(CHANGED.format(len(changed), ", ".join(changed)))
    layers, width, hidden = shape
    if width % HEAD:
        raise Unfit(WIDTH.format(width))
    parameters = layers * width * (4 * width + 3 * hidden) + 2 * VOCABULARY * width
    if parameters > PARAMETERS or (flops := step_flops(settings)) > FLOPS:
        raise Unfit(MANY.format(parameters) if parameters > PARAMETERS else LONG.format(flops))
    return dict(settings)


def measure_settings(my_settings: Callable[[], Any], seed: int) -> dict[str, float]:
    """Train with the learner's settings and, in turns, with the given ones; return FLOP/s over the given, and the loss.

    The run lasts as long as `STEPS` steps of the given run, whose time is measured between its own slices.
    """
    settings = _valid(my_settings())
    with one_thread():
        given, yours = _Training(GIVEN, seed), _Training(settings, seed)
        given.step(2)
        pace, used, factors = yours.step(2) / 2, 0.0, []
        while used < STEPS:
            step = given.step(4) / 4
            count = max(1, round(25 * step / pace))
            pace = yours.step(count) / count
            used += count * pace / step
            factors.append(step_flops(settings) / pace / (step_flops(GIVEN) / step))
        return {"FLOP/s": median(factors), "loss": yours.loss()}
