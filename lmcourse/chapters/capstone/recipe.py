"""The recipe that the order of the capstone fixes: the text, the training, and the sizes a model may have."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from lmcourse.accounting.activations import predict_saved_bytes
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.data.grammar import story_grammar
from lmcourse.models.config import TransformerConfig
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.config import TrainingConfig
from lmcourse.training.metrics import Record
from lmcourse.training.trainer import Callback, Trainer

VOCABULARY, BATCH, LENGTH, HEAD = 128, 16, 64, 16
WIDTHS, DEPTHS = (16, 24, 32, 48, 64, 96), (1, 2, 4)

ORDER = {"parameters": 100_000, "memory": 12 * 2**20, "flops": 6e11}
"""The limits of the order: parameters, bytes of training memory, FLOPs of the whole training."""

STORIES = 20_000
"""Of the training text: 13 million bytes, of which no run reads more than a part."""

FRESH_BYTES = 32_768
"""Of the validation text, which no model was trained on."""


@dataclass(frozen=True)
class Design:
    """A model that may be chosen.

    Attributes:
        layers, d_model: depth and width; heads and d_ff follow.
    """

    layers: int
    d_model: int

    @property
    def heads(self) -> int:
        """Heads of 16 features; half a head, where one does not fit, is one."""
        return math.ceil(self.d_model / HEAD)

    @property
    def d_ff(self) -> int:
        """8/3 of the width, rounded up to a multiple of 8."""
        return 8 * math.ceil(self.d_model / 3)

    @property
    def config(self) -> TransformerConfig:
        """The model: RMSNorm, SwiGLU, RoPE, a head of its own."""
        return llama_like(self.layers, self.d_model, self.heads, self.d_ff, vocab_size=VOCABULARY, context=LENGTH)

    @property
    def parameters(self) -> int:
        """Numbers that it learns."""
        return count_parameters(self.config).total

    @property
    def step_flops(self) -> int:
        """FLOPs of a training step on a batch of 16 × 64 bytes, all pairs counted."""
        return training_flops(self.config, BATCH, LENGTH).model.total

    @property
    def memory(self) -> int:
        """Bytes of weights, gradients, moments and all that autograd keeps of a batch, in fp32."""
        kept = predict_saved_bytes(self.config, BATCH, LENGTH).total
        return find_recipe("fp32").memory(self.parameters).total + kept

    def steps(self, flops: float) -> int:
        """How many steps such a budget pays for."""
        return int(flops // self.step_flops)


@cache
def texts() -> tuple[Tensor, Tensor]:
    """The bytes to train on and fresh ones to validate with, as numbers below 128."""
    grammar, source = story_grammar(), random.Random(0)
    training = "".join(grammar.generate(source) for _ in range(STORIES))
    fresh, source = "", random.Random(1)
    while len(fresh) < FRESH_BYTES:
        fresh += grammar.generate(source)
    return _bytes(training), _bytes(fresh)[:FRESH_BYTES]


def _bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode("ascii")), dtype=torch.uint8).long()


def train(design: Design, steps: int, seed: int = 0, callbacks: Sequence[Callback] = ()) -> tuple[Transformer, float]:
    """Train as the order says.

    Returns:
        The model, and its loss on the fresh bytes: nats a byte.
    """
    torch.manual_seed(seed)
    model = Transformer(design.config)
    initialize(model, "gpt2", std=0.4 / math.sqrt(design.d_model))
    config = TrainingConfig(
        steps,
        BATCH,
        LENGTH,
        seed=seed,
        learning_rate=8e-3 * math.sqrt(64 / design.d_model),
        schedule="wsd",
        warmup_steps=steps // 5,
        decay_steps=3 * steps // 10,
        spike_factor=100.0,  # what a steep rate does to a tiny model is no news here
    )
    last: dict[str, object] = {}

    def remember(record: Record) -> None:
        last.update(record)

    training, fresh = texts()
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model, config, training, Path(folder), validation=fresh, callbacks=[*callbacks, remember]).run()
    return model, float(str(last["validation_loss"]))
