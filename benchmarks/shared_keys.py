"""Train the small models with shared keys of notebook 17 again: 9 runs, about eight minutes of one core."""

from __future__ import annotations

import tempfile
from itertools import chain
from pathlib import Path

import torch

from lmcourse.accounting.flops import training_flops
from lmcourse.chapters.inference.shared_keys import HEADS, WINDOW, config_of
from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.settings import new_run
from lmcourse.training.command.training_data import tokenize_corpus
from lmcourse.training.evaluation import evaluate
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.trainer import Trainer

BATCH, STEPS = 8, 1200
"""Windows of a batch, and steps of a run with a key head for each query head."""


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
