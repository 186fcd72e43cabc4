"""The stored runs of notebook 13: `python experiments/ladder.py RUN`, where RUN is a folder of `lmcourse train`.

Prints the numbers for `lmcourse/chapters/training/figures/stored_runs.py` in about five minutes on one core.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import torch
from torch import Tensor

from lmcourse.chapters.training.figures.stored_runs import (
    FRESH_BYTES,
    REGULARIZED,
    REPEATED_TOKENS,
    RUNGS,
    SIDE_STEPS,
)
from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Tokens
from lmcourse.training.ablation import Recipe, run_recipe
from lmcourse.training.command.settings import load_run
from lmcourse.training.command.training_data import open_data


def ends(recipe: Recipe, vocab_size: int, training: Tokens, validation: Tokens, seed: int) -> tuple[float, float]:
    """Return the mean training loss of a run's last fifth, and its last validation loss, in nats per token."""
    records = run_recipe(recipe, vocab_size, training, validation, seed)
    late = [record["loss"] for record in records[-recipe.steps // 5 :]]
    return round(sum(late) / len(late), 3), round(records[-1]["validation_loss"], 3)


def stories(size: int, seed: int) -> Tensor:
    """Return this many bytes of stories."""
    source, text = random.Random(seed), ""
    while len(text) < size:
        text += "".join(story_grammar().generate(source) for _ in range(100))
    return torch.tensor(list(text[:size].encode()))


def main(folder: Path) -> None:
    """Run everything, and print each result at once."""
    torch.set_num_threads(1)
    data = open_data(load_run(folder), folder)
    assert data.validation is not None, f"{folder} holds nothing out"
    for name, recipe in {**RUNGS, **SIDE_STEPS}.items():
        docs = (data.tokenizer.vocab_size, data.training, data.validation)
        print(f'    "{name}": {[ends(recipe, *docs, seed)[1] for seed in (0, 1, 2)]},', flush=True)
    texts: dict[str, tuple[int, Tokens, Tokens]] = {
        "once": (128, stories(FRESH_BYTES, seed=0), stories(16_384, seed=1)),
        "fifteen times": (data.tokenizer.vocab_size, data.training[:REPEATED_TOKENS], data.validation),
    }
    for title, text in texts.items():
        for name, recipe in REGULARIZED.items():
            print(f'    ("{title}", "{name}"): {[ends(recipe, *text, seed) for seed in (0, 1)]},', flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
