"""Losses of small models whose heads share keys, and the code that trained them.

`python -m lmcourse.chapters.inference.shared_keys` trains them again: 9 runs, about eight minutes of one core.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch

from lmcourse.accounting.flops import training_flops
from lmcourse.models.config import TransformerConfig
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.training.command.settings import new_run
from lmcourse.training.command.training_data import tokenize_corpus
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.trainer import Trainer

HEADS, WINDOW, BATCH, STEPS = 8, 128, 8, 1200
"""Query heads, tokens of a window, windows of a batch, and steps of a run with a key head for each query head."""

LOSSES = {8: (1.2446, 1.2376, 1.2376), 2: (1.2411, 1.2563, 1.2555), 1: (1.2437, 1.2681, 1.2465)}
"""Key heads → the losses of three seeds, in nats per character of held-out help texts of Python 3.11."""


def config_of(key_heads: int, vocab_size: int = 256) -> TransformerConfig:
    """Return `nano` with eight query heads of 8 features, and this many key heads."""
    nano = find_model("nano").decoder
    layers = tuple(
        replace(layer, attention=replace(layer.attention, heads=HEADS, kv_heads=key_heads)) for layer in nano.layers
    )
    return nano.with_(layers=layers, vocab_size=vocab_size, context=WINDOW)


def train_all() -> None:
    """Train three seeds of 8, 2 and 1 key heads, all with the FLOPs of the first; print the losses."""
    torch.set_num_threads(1)
    given = {
        "tokenizer": "characters",
        "seq_len": WINDOW,
        "batch": BATCH,
        "precision": "fp32",
        "checkpoint_every": None,
    }
    corpus = tokenize_corpus(new_run(given, "speedrun"))
    assert corpus.validation is not None
    text, held_out = (torch.tensor([*chain(*part)]) for part in (corpus.training, corpus.validation))
    vocabulary = corpus.tokenizer.vocab_size
    budget = STEPS * training_flops(config_of(HEADS, vocabulary), BATCH, WINDOW).model.total
    for key_heads in (HEADS, 2, 1):
        config = config_of(key_heads, vocabulary)
        steps = budget // training_flops(config, BATCH, WINDOW).model.total
        for seed in range(3):
            run = new_run({**given, "steps": steps, "seed": seed}, "speedrun")
            torch.manual_seed(seed)
            model = Transformer(run.model.apply(config))
            initialize(model, zero_outputs=run.model.zero_outputs)
            with tempfile.TemporaryDirectory() as folder:
                Trainer(model, run.training, text, Path(folder)).run()
            loss = evaluate(model, held_out, 64, WINDOW, MixedPrecision("fp32", torch.device("cpu")))
            print(f"{key_heads} key heads, seed {seed}: {steps} steps, {loss:.4f}", flush=True)


if __name__ == "__main__":
    train_all()
