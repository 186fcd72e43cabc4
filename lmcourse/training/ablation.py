"""Ablation: short runs of the smallest model that differ in one choice, so that each choice gets its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from lmcourse.data.loader import Tokens
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.embedding import EmbeddingConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.training.config import ScheduleName, TrainingConfig
from lmcourse.training.metrics import Record
from lmcourse.training.trainer import Callback, Trainer


@dataclass(frozen=True)
class Recipe:
    """What a short run may differ in; the rest is that of `nano`: two blocks, d = 64, four heads.

    Attributes:
        tied: whether the head is the embedding.
        warmup_steps: steps until the full rate.
        qk_norm: whether queries and keys are normalised.
        learning_rate: at the peak.
        schedule: "cosine" and "wsd" fall to a tenth of the peak, the latter in the last fifth of the run.
        weight_decay: AdamW's.
        dropout: in the embedding and behind every branch.
        steps: of the run, each of 16 windows of 64 tokens.
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
        """The settings of the trainer."""
        return TrainingConfig(
            self.steps,
            batch=16,
            seq_len=64,
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
        """A model with weights of this seed."""
        torch.manual_seed(seed)
        qk_norm = QKNormConfig() if self.qk_norm else None
        config = llama_like(
            2,
            64,
            4,
            192,
            vocab_size=vocab_size,
            context=64,
            tied=self.tied,
            qk_norm=qk_norm,
            embedding=EmbeddingConfig(dropout=self.dropout),
            block={"dropout": self.dropout},
        )
        model = Transformer(config)
        initialize(model)
        return model


def run_recipe(
    recipe: Recipe,
    vocab_size: int,
    training: Tokens,
    validation: Tokens,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> list[Record]:
    """Train a new model by a recipe; four times in a run the validation loss is measured.

    Args:
        recipe: the run's choices.
        vocab_size: of the text's tokens.
        training: the text to learn.
        validation: the text to evaluate on.
        seed: of weights, order of the text and dropout.
        callbacks: called after every step.

    Returns:
        the metrics of every step, as the trainer tells them.

    Raises:
        ValueError: the text is shorter than a window, or a setting is out of range.
    """
    records: list[Record] = []
    model = recipe.model(vocab_size, seed)
    with TemporaryDirectory() as folder:
        listeners = [records.append, *callbacks]
        config = recipe.training_config(seed)
        Trainer(model, config, training, Path(folder), validation=validation, callbacks=listeners).run()
    return records
