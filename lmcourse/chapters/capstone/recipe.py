"""The recipe fixed by the order of the capstone: the text, the training, and the allowed sizes of a model."""

from __future__ import annotations

import itertools
import math
import random
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from lmcourse.accounting.activations import predict_saved_bytes
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.parameters import count_parameters
from lmcourse.data.grammar import story_grammar
from lmcourse.models.config import TransformerConfig
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.evaluation import evaluate
from lmcourse.training.metrics import Record
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.trainer import Callback, Trainer
from lmcourse.training.training_config import OptimizerName, TrainingConfig

VOCABULARY, BATCH, LENGTH, HEAD = 128, 16, 64, 16
WIDTHS, DEPTHS, BATCHES = (24, 32, 48, 64, 96), (1, 2, 4), (4, 8, 16, 32)

ORDER = {"parameters": 100_000, "memory": 12 * 2**20, "flops": 2e11}
"""The limits of the order: parameters, bytes of training memory, FLOPs of the whole training."""

ROWS = 256
"""Number of texts of 64 bytes that are evaluated at once."""

STORIES = 20_000
"""Stories in the training text: 13 million bytes. Every run reads only a part of them."""

WARM_UP = 30
"""Steps of warm-up, until the learning rate is at its peak."""

FRESH_BYTES = 131_072
"""Bytes of the validation text, which no model was trained on."""


@dataclass(frozen=True)
class Recipe:
    """The settings with which a design is trained.

    Attributes:
        batch: texts of 64 bytes in a step.
        rate: peak learning rate, as a multiple of the given one.
        optimizer: "adamw", or "muon" for the matrices of the blocks.
        warm_up: steps until the peak of the learning rate.
    """

    batch: int = BATCH
    rate: float = 1.0
    optimizer: OptimizerName = "adamw"
    warm_up: int = WARM_UP


GIVEN = Recipe()
"""The recipe that comes with the order."""

SMALL_RECIPE = Recipe(batch=4, rate=0.5)
"""The recipe of the small runs: with a quarter of the batch, the same FLOPs pay for four times as many steps."""


@dataclass(frozen=True)
class Design:
    """A model that the order allows.

    Attributes:
        layers, d_model: depth and width; heads and d_ff follow.
    """

    layers: int
    d_model: int

    @property
    def heads(self) -> int:
        """Number of heads, each with 16 features, rounded up."""
        return math.ceil(self.d_model / HEAD)

    @property
    def d_ff(self) -> int:
        """8/3 of the width, rounded up to a multiple of 8."""
        return 8 * math.ceil(self.d_model / 3)

    @property
    def config(self) -> TransformerConfig:
        """The configuration of the model: RMSNorm, SwiGLU, RoPE, an untied head."""
        return llama_like(self.layers, self.d_model, self.heads, self.d_ff, vocab_size=VOCABULARY, context=LENGTH)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Layers, width, heads, width of the feed-forward layer, and kinds of tokens, as `account_of` takes them."""
        return self.layers, self.d_model, self.heads, self.d_ff, VOCABULARY

    @property
    def parameters(self) -> int:
        """Number of learned parameters."""
        return count_parameters(self.config).total

    def flops_of_step(self, batch: int = BATCH) -> int:
        """FLOPs of a training step on `batch` texts of 64 bytes, all pairs counted."""
        return _flops_of_step(self, batch)

    def kept(self, batch: int = BATCH) -> int:
        """Bytes in fp32 of everything that autograd keeps for a batch."""
        return predict_saved_bytes(self.config, batch, LENGTH).total

    def memory(self, batch: int = BATCH) -> int:
        """Bytes in fp32 of weights, gradients, two moments, and what autograd keeps for a batch."""
        return 16 * self.parameters + self.kept(batch)

    def asked(self, flops: float, batch: int = BATCH) -> tuple[int, int, int, int, int]:
        """Return a row for `forecasts`: blocks, N, D, texts in a batch, and the steps that this budget pays for."""
        steps = self.steps(flops, batch)
        return self.layers, self.parameters, steps * batch * LENGTH, batch, steps

    def steps(self, flops: float, batch: int = BATCH) -> int:
        """Return the number of steps that this budget pays for."""
        return int(flops // self.flops_of_step(batch))


@cache
def _flops_of_step(design: Design, batch: int) -> int:
    return training_flops(design.config, batch, LENGTH).model.total


@cache
def texts() -> tuple[Tensor, Tensor]:
    """The training bytes and the fresh validation bytes, as numbers below 128."""
    grammar, source = story_grammar(), random.Random(0)
    training = "".join(grammar.generate(source) for _ in range(STORIES))
    return _bytes(training), stories(1, FRESH_BYTES)


def stories(seed: int, count: int) -> Tensor:
    """Return this many bytes of stories, as numbers below 128."""
    grammar, source, text = story_grammar(), random.Random(seed), ""
    while len(text) < count:
        text += grammar.generate(source)
    return _bytes(text)[:count]


def _bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode("ascii")), dtype=torch.uint8).long()


def prepared(design: Design, steps: int, seed: int, recipe: Recipe) -> tuple[Transformer, TrainingConfig]:
    """Return an untrained model and the settings of its training."""
    torch.manual_seed(seed)
    model = Transformer(design.config)
    initialize(model, "gpt2", std=0.4 / math.sqrt(design.d_model))
    config = TrainingConfig(
        steps,
        recipe.batch,
        LENGTH,
        seed=seed,
        optimizer=recipe.optimizer,
        learning_rate=8e-3 * math.sqrt(64 / design.d_model) * recipe.rate,
        muon_learning_rate=0.02 * recipe.rate,
        schedule="wsd",
        warmup_steps=min(recipe.warm_up, steps // 2),
        decay_steps=3 * steps // 10,
        spike_factor=100.0,  # spikes are normal for a tiny model with a high learning rate
    )
    return model, config


def train(
    design: Design,
    steps: int,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
    recipe: Recipe = GIVEN,
    watch: Callable[[Transformer, int], None] | None = None,
) -> tuple[Transformer, float]:
    """Train with the fixed settings of the order.

    Args:
        design: the model to train.
        steps: the number of updates.
        seed: the seed of the first weights and of the order of the text.
        callbacks: called with the record of each step.
        recipe: batch, learning rate and optimizer.
        watch: called with the model and the number of each step.

    Returns:
        The model, and its loss on the fresh text in nats per byte.
    """
    model, config = prepared(design, steps, seed, recipe)
    last: dict[str, object] = {}

    def remember(record: Record) -> None:
        last.update(record)
        if watch is not None:
            watch(model, int(str(record["step"])))

    training, fresh = texts()
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model, config, training, Path(folder), validation=fresh, callbacks=[*callbacks, remember]).run()
    return model, float(str(last["validation_loss"]))


def probe(design: Design, steps: int) -> list[float]:
    """Return the seconds of each of the first steps of a run."""
    clock = [time.perf_counter()]
    train(design, steps, callbacks=[lambda _: clock.append(time.perf_counter())])
    return [end - begin for begin, end in itertools.pairwise(clock)]


def loss_on(model: Transformer, text: Tensor) -> float:
    """Return a model's loss on a text, in nats per byte; the model reads windows of 64 bytes."""
    return evaluate(model, text, ROWS, LENGTH, MixedPrecision("fp32", torch.device("cpu")))


def write(model: Transformer, prompt: str, count: int, seed: int = 0) -> str:
    """Return the next `count` bytes that a model samples; the model reads the last 64 bytes."""
    source = torch.Generator().manual_seed(seed)
    tokens = list(prompt.encode("ascii"))
    model.eval()
    with torch.no_grad():
        for _ in range(count):
            logits = model(torch.tensor([tokens[-LENGTH:]]))[0, -1]
            tokens.append(int(torch.multinomial(logits.softmax(-1), 1, generator=source)))
    model.train()
    return bytes(tokens[len(prompt) :]).decode("ascii", "replace")


def known_words(text: str) -> float:
    """Return the fraction of a text's words that occur in the stories. A last word that is cut off is ignored."""
    words = re.findall(r"[A-Za-z]+(?=[^A-Za-z])", text)
    return sum(word in _vocabulary() for word in words) / max(1, len(words))


@cache
def _vocabulary() -> frozenset[str]:
    start = bytes(texts()[0][:300_000].to(torch.uint8).tolist()).decode("ascii")
    return frozenset(re.findall(r"[A-Za-z]+", start))
