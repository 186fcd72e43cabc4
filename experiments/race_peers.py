"""Run other people's training scripts for `quality.py` in this process.

nanoGPT takes part if PEERS_NANOGPT names the `model.py` of a clone, and nanochat if PEERS_NANOCHAT names the
`scripts/base_train.py` of a clone (at 92d63d4). Both use their own model, optimizer, schedules, loop and command-line
flags. Neither is compiled: nanoGPT's README recommends this for a CPU, and compiling takes longer than the shortest
race.

nanoGPT: 4 layers of 128, 12 windows of 64 characters, 2,000 steps, the settings in its README for a CPU; for 30 and 60
seconds the model is narrower. Only the seed is changed in its code, and losses are measured when it saves.

nanochat: `scripts.base_train` at a small depth, with learning rates for a small batch. Its tokenizer and text shards
are replaced by this text, with new random windows in every epoch, and its evaluation by ours.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from race import Clock, Curve, Text
from torch import Tensor, nn

from lmcourse.data.loader import Loader

NANOGPT_FLAGS = (
    *("--device=cpu", "--compile=False", "--dtype=float32", "--eval_iters=1", "--log_interval=1000000"),
    *("--block_size=64", "--batch_size=12", "--n_layer=4", "--n_head=4", "--n_embd=128", "--dropout=0.0"),
    # From config/train_shakespeare_char.py, which the README uses with these flags.
    *("--gradient_accumulation_steps=1", "--learning_rate=1e-3", "--min_lr=1e-4", "--beta2=0.99", "--warmup_iters=100"),
    *("--dataset=text", "--out_dir=out", "--always_save_checkpoint=True"),
)

NANOCHAT_FLAGS = (
    *("--device-type=cpu", "--max-seq-len=64", "--window-pattern=L", "--head-dim=32"),
    *("--core-metric-every=-1", "--sample-every=-1"),
)


class Logits(nn.Module):
    """Makes nanoGPT's model return all logits; without targets it computes only the last."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.model(tokens, tokens)[0]
        return logits


def race_nanogpt(clone: Path, flags: tuple[str, ...], steps: int, text: Text, seed: int, points: int) -> Curve:
    """Run nanoGPT's train.py; its learning rate falls over the whole race."""
    source = (clone / "train.py").read_text(encoding="utf-8")
    source, found = re.subn(r"torch\.manual_seed\(1337 ", f"torch.manual_seed({1337 + seed} ", source)
    assert found == 1
    lengths = (f"--max_iters={steps}", f"--lr_decay_iters={steps}", f"--eval_interval={steps // points}")
    curve: Curve = []
    names: dict[str, Any] = {"__name__": "__main__"}

    def save(checkpoint: Any, path: Any) -> None:
        curve.append(clock.outside(lambda: text.loss(Logits(names["raw_model"]))))

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        data = Path("data/text")
        data.mkdir(parents=True)
        for name, part in (("train", text.training), ("val", text.validation)):
            part.numpy().astype(np.uint16).tofile(data / f"{name}.bin")
        (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": text.vocab_size}))
        Path("configurator.py").write_text((clone / "configurator.py").read_text(encoding="utf-8"), encoding="utf-8")
        arguments = ["train.py", *NANOGPT_FLAGS, *lengths, *flags]
        with (
            mock.patch.object(sys, "argv", arguments),
            mock.patch.object(torch, "save", save),
            on_path(clone),
            redirect_stdout(io.StringIO()),
        ):
            clock = Clock()
            exec(compile(source, "train.py", "exec"), names)  # deliberately runs their own code
    return curve


def race_nanochat(clone: Path, flags: tuple[str, ...], steps: int, text: Text, seed: int, points: int) -> Curve:
    """Run nanochat's scripts/base_train.py; its phases follow from the number of steps."""
    curve: Curve = []
    clock = Clock()

    def look(model: nn.Module, *_: Any) -> float:
        if not curve:
            clock.restart()  # the first evaluation is before the first step
        curve.append(clock.outside(lambda: text.loss(model)))
        return 0.0

    def batches(tokenizer: Any, batch: int, seq_len: int, split: str, **_: Any) -> Iterator[tuple[Tensor, ...]]:
        with Loader(text.training, batch, seq_len, seed=seed, prefetch=0) as loader:
            for part in loader:
                yield part.inputs, part.targets, dict.fromkeys(("epoch", "pq_idx", "rg_idx"), 0)

    replaced = {
        "wandb": SimpleNamespace(),
        "nanochat.tokenizer": SimpleNamespace(
            get_tokenizer=lambda: SimpleNamespace(get_vocab_size=lambda: text.vocab_size),
            get_token_bytes=lambda device: None,
        ),
        "nanochat.dataloader": SimpleNamespace(
            tokenizing_distributed_data_loader_bos_bestfit=batches,
            tokenizing_distributed_data_loader_with_state_bos_bestfit=batches,
        ),
        "nanochat.checkpoint_manager": SimpleNamespace(save_checkpoint=lambda *_, **__: None, load_checkpoint=None),
        "nanochat.engine": SimpleNamespace(Engine=None),
        "nanochat.loss_eval": SimpleNamespace(evaluate_bpb=look),
        "scripts.base_eval": SimpleNamespace(evaluate_core=None),
    }
    lengths = (f"--num-iterations={steps}", f"--eval-every={steps // points}", "--eval-tokens=0")
    seed_all = torch.manual_seed
    source = (clone / "scripts/base_train.py").read_text(encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, NANOCHAT_BASE_DIR=folder),
        mock.patch.dict(sys.modules, replaced),
        mock.patch.object(sys, "argv", ["base_train.py", *NANOCHAT_FLAGS, *lengths, *flags]),
        mock.patch.object(torch, "compile", uncompiled),
        mock.patch.object(torch, "manual_seed", lambda own: seed_all(own + seed)),
        on_path(clone),
        redirect_stdout(io.StringIO()),
    ):
        exec(compile(source, "base_train.py", "exec"), {"__name__": "__main__"})  # deliberately runs their own code
    gc.unfreeze()  # the script switched the garbage collector off
    gc.enable()
    return curve[1:]


def uncompiled(model: Any = None, **_: Any) -> Any:
    """Replace torch.compile, as a function and as a decorator."""
    return (lambda function: function) if model is None else model


@contextmanager
def on_path(folder: Path) -> Iterator[None]:
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):
        yield


@dataclass(frozen=True)
class Peer:
    """A training script of another project: its variable, the place of the clone relative to it, and its settings."""

    race: Callable[[Path, tuple[str, ...], int, Text, int, int], Curve]
    variable: str
    above: int
    steps: int
    flags: tuple[str, ...] = ()

    def clone(self) -> Path | None:
        """Return the path of the clone, if the variable is set."""
        named = os.environ.get(self.variable)
        return Path(named).resolve().parents[self.above] if named else None

    def curve(self, text: Text, seed: int, points: int) -> Curve:
        clone = self.clone()
        assert clone is not None
        return self.race(clone, self.flags, self.steps, text, seed, points)


def nanogpt(steps: int, *flags: str) -> Peer:
    return Peer(race_nanogpt, "PEERS_NANOGPT", 0, steps, flags)


def nanochat(steps: int, *flags: str) -> Peer:
    return Peer(race_nanochat, "PEERS_NANOCHAT", 1, steps, flags)


SMALL = ("--n_embd=64", "--learning_rate=3e-3", "--min_lr=3e-4")
"""A narrower model than the README's with a suitable rate, for races that are too short for 4 layers of 128."""
TINY_BATCH = ("--device-batch-size=12", "--total-batch-size=768")
UNSCALED = ("--matrix-lr=0.25", "--unembedding-lr=0.1", "--weight-decay=0.02")
"""Learning rates close to nanochat's rates for its reference batch of half a million tokens. For a batch of 768 it
divides them by 26 and reaches a loss of 1.73 in 25 seconds; with these rates it reaches 1.35."""
PEERS = {
    "nanogpt": nanogpt(2000),
    "nanogpt-30": nanogpt(1450, *SMALL, "--n_layer=3"),
    "nanogpt-60": nanogpt(2200, *SMALL),
    "nanochat-30": nanochat(780, *TINY_BATCH, *UNSCALED, "--depth=3", "--aspect-ratio=20"),
    "nanochat-60": nanochat(1150, *TINY_BATCH, *UNSCALED, "--depth=4", "--aspect-ratio=16"),
    "nanochat-150": nanochat(1700, *TINY_BATCH, *UNSCALED, "--depth=4", "--aspect-ratio=24"),
}
"""For each name, the number of steps and the differences. If a name ends in seconds, the steps take this time on our
machine, and the size is that of our recipe for the same time."""
