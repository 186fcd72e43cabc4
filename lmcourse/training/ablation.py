"""Ablation: short runs of the smallest model that differ in one choice, so that the effect of each choice is a
number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from lmcourse.data.help_texts import help_texts
from lmcourse.data.loader import Tokens
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.embedding import EmbeddingConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.training.metrics import Record
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import ScheduleName, TrainingConfig

WINDOW = 64
"""Number of tokens in a window."""


@dataclass(frozen=True)
class Recipe:
    """Settings in which short runs may differ; the rest is as in `nano`: two blocks, d = 64, four heads.

    Attributes:
        tied: whether the head uses the weights of the embedding.
        warmup_steps: steps until the full rate.
        qk_norm: whether queries and keys are normalised.
        learning_rate: the rate at the peak.
        schedule: "cosine" and "wsd" fall to a tenth of the peak, "wsd" in the last fifth of the run.
        weight_decay: the weight decay of AdamW.
        dropout: the dropout after the embedding and after every branch.
        steps: the number of steps, each with 16 windows of 64 tokens.
    """

    tied: bool = True
    warmup_steps: int = 10
    qk_norm: bool = False
    learning_rate: float = 5e-3
    schedule: ScheduleName = "cosine"
    weight_decay: float = 0.1
    dropout: float = 0.0
    steps: int = 200

    def training_config(self, seed: int) -> TrainingConfig:
        """Return the settings of the trainer."""
        return TrainingConfig(
            self.steps,
            batch=16,
            seq_len=WINDOW,
            seed=seed,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            warmup_steps=self.warmup_steps,
            decay_steps=self.steps // 5 if self.schedule == "wsd" else 0,
            min_lr_ratio=0.0 if self.schedule == "constant" else 0.1,
            weight_decay=self.weight_decay,
            evaluate_every=max(1, self.steps // 4),
        )

    def model(self, vocab_size: int, seed: int) -> Transformer:
        """Return a model whose weights are drawn with this seed."""
        torch.manual_seed(seed)
        qk_norm = QKNormConfig() if self.qk_norm else None
        config = llama_like(
            2,
            64,
            4,
            192,
            vocab_size=vocab_size,
            context=WINDOW,
            tied=self.tied,
            qk_norm=qk_norm,
            embedding=EmbeddingConfig(dropout=self.dropout),
            block={"dropout": self.dropout},
        )
        model = Transformer(config)
        initialize(model)
        return model


def documentation() -> tuple[int, Tokens, Tokens]:
    """Return the vocabulary size, the training text and the validation text: Python's help texts in 512 byte-pair
    tokens."""
    return 512, *help_texts()


def run_recipe(recipe: Recipe, vocab_size: int, training: Tokens, validation: Tokens, seed: int = 0) -> list[Record]:
    """Train a new model by a recipe; measure the validation loss four times in the run.

    The seed is that of the weights, the order of the text and dropout. Returns the metrics of every step, as the
    trainer records them. Raises ValueError if the text is shorter than a window, or a setting is out of range.
    """
    records: list[Record] = []
    model = recipe.model(vocab_size, seed)
    with TemporaryDirectory() as folder:
        config = recipe.training_config(seed)
        Trainer(model, config, training, Path(folder), validation=validation, callbacks=[records.append]).run()
    return records
