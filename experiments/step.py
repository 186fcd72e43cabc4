"""Compare the trainer's step with a minimal loop for nanoGPT's model: same shape, batch, AdamW and clipping.

    PEERS_NANOGPT=…/nanoGPT/model.py python experiments/step.py

Both are 4 layers of 128 without biases and 12 windows of 64 tokens, nanoGPT's recipe for a CPU. Ours is everything that
`Trainer` does in a step: the next windows, the schedule, loss, gradients, clipping, reading loss and norm, the update,
a line in metrics.jsonl. Theirs is the minimum: prepared windows, loss, gradients, clipping, the update, reading the
loss. Both are timed alternately in CPU seconds on one thread, so that other load slows both; the ratio is the median
over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from interleaved import Workload, time_workload
from peers import module_at
from torch import nn

from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like
from lmcourse.nn.norm import NormConfig
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import TrainingConfig

VOCAB_SIZE, BATCH, WINDOW, LAYERS, WIDTH, HEADS = 103, 12, 64, 4, 128, 4


def ours(folder: Path, steps: int) -> Callable[[], None]:
    """Return a function that runs this many steps of our trainer."""
    sizes: dict[str, Any] = {"vocab_size": VOCAB_SIZE, "context": WINDOW, "norm": NormConfig("layer")}
    feed_forward = {"activation": "gelu", "bias": False}
    config = gpt_like(LAYERS, WIDTH, HEADS, feed_forward=feed_forward, bias=False, out_bias=False, **sizes)
    model = Transformer(config)
    initialize(model)
    tokens = torch.randint(VOCAB_SIZE, (200_000,))
    trainer = Trainer(model, TrainingConfig(10**6, BATCH, WINDOW, betas=(0.9, 0.99), warmup_steps=100), tokens, folder)
    trainer.model.train()
    trainer._metrics_logger.__enter__()

    def run() -> None:
        for _ in range(steps):
            trainer._finish(trainer._advance(), last=False)

    return run


def theirs(steps: int) -> Callable[[], None]:
    """Return a function that runs this many steps of the minimal loop."""
    nanogpt = module_at("PEERS_NANOGPT")
    if nanogpt is None:
        raise SystemExit("this needs PEERS_NANOGPT, the model.py of a clone")
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "block_size": WINDOW, "vocab_size": VOCAB_SIZE}
    model = nanogpt.GPT(nanogpt.GPTConfig(**sizes, dropout=0.0, bias=False))
    optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.99), "cpu")
    batches = torch.randint(VOCAB_SIZE, (8, 2, BATCH, WINDOW))

    def run() -> None:
        for number in range(steps):
            x, y = batches[number % len(batches)]
            loss = model(x, y)[1]
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            loss.item()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=8, help="of each in a round")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        work = {"ours": ours(Path(folder), arguments.steps), "nanoGPT": theirs(arguments.steps)}
        tokens = arguments.steps * BATCH * WINDOW
        times = time_workload(Workload("train", tokens, work), arguments.rounds, time.process_time)
    for name, seconds in times.items():
        print(f"{name:8} {1e3 * statistics.median(seconds) / arguments.steps:6.1f} ms a step")
    ratios = [mine / other for mine, other in zip(times["ours"], times["nanoGPT"], strict=True)]
    print(f"ours / nanoGPT: {statistics.median(ratios):.3f}, rounds from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
