"""The story models of notebook 23: four that were trained, stored with the course, and one that never was."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open

from lmcourse.chapters.inside.words import LENGTH, vocabulary
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.training.run_settings import Settings

STORED = Path(__file__).with_suffix(".safetensors")
SEEDS = (0, 1, 2, 3)


def new_model(seed: int) -> Transformer:
    """Return a model of two blocks before its training: four heads and 128 units in each, 64 features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(llama_like(2, 64, 4, 128, vocab_size=len(vocabulary()), context=LENGTH))


def story_settings(steps: int = 400) -> Settings:
    """Return the settings with which the stored models were trained, on the rows of `StoryRows(seed)`."""
    return Settings(steps, rate=0.01, warmup=20, decay=steps // 2, weight_decay=0.05)


def story_model(seed: int) -> Transformer:
    """Return the trained model of this seed, from 0 to 3; its weights are stored in 16 bits.

    Raises ValueError for another seed.
    """
    if seed not in SEEDS:
        raise ValueError(f"there are models of the seeds 0 to {SEEDS[-1]}, not of {seed}")
    model = new_model(seed)
    with safe_open(STORED, framework="pt") as stored:
        model.load_state_dict({name: stored.get_tensor(f"{seed}.{name}").float() for name in model.state_dict()})
    return model.eval().requires_grad_(requires_grad=False)
