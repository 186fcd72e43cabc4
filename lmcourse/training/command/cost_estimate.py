"""Estimate the cost of a training run by arithmetic: nothing is built, trained or written.

Two things are really done: the corpus is tokenized in memory, because it determines the size of the vocabulary and of
an epoch; and if there is no data sheet for the device, the speed of a matrix product is measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import muon_flops, training_flops
from lmcourse.accounting.machine import title_and_memory
from lmcourse.accounting.memory import training_memory
from lmcourse.accounting.parallel import Layout
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.base.device import best_device
from lmcourse.base.errors import CourseError
from lmcourse.models.config import TransformerConfig
from lmcourse.training.command.run_config import RunConfig
from lmcourse.training.command.training_data import check_lengths, tokenize_corpus
from lmcourse.training.mfu_meter import Peak, find_peak
from lmcourse.training.precision import Precision
from lmcourse.training.training_config import TrainingConfig

ASSUMED_MFU = {"cpu": 0.3, "mps": 0.3, "cuda": 0.4}
"""Assumed fraction of the peak that a run reaches. Small models reach less, especially on a GPU."""

RECIPES = {
    ("adamw", "fp32"): "fp32",
    ("adamw", "bf16"): "autocast",
    ("adamw", "fp16"): "autocast",
    ("muon", "fp32"): "muon",
    ("muon", "bf16"): "muon-autocast",
    ("muon", "fp16"): "muon-autocast",
}
"""The memory recipe in `lmcourse.accounting.recipes` for each optimizer and precision."""


@dataclass(frozen=True)
class CostEstimate:
    """Estimated cost of a training run.

    Attributes:
        vocab_size: the number of tokens in the tokenizer's vocabulary.
        corpus_tokens: the number of tokens in the training part of the corpus.
        steps, tokens: the number of steps and of tokens that they read; a budget of tokens may reduce both.
        parameters: the number of parameters by part.
        flops_per_step: FLOPs of all processes together, including recomputed activations.
        memory: memory of a step on each device, in bytes.
        devices: the number of devices; all processes on a CPU share one device.
        needed, room: bytes that the processes on one device need in a step, and that it has.
        peak, mfu: peak speed of a device, and the assumed fraction of it.
        seconds: duration of the whole run without evaluations.
    Peak and seconds are None if they are not known.
    """

    vocab_size: int
    corpus_tokens: int
    steps: int
    tokens: int
    parameters: Breakdown[int]
    flops_per_step: int
    memory: Breakdown[int]
    devices: int
    needed: int
    room: int
    peak: Peak | None
    mfu: float
    seconds: float | None

    @property
    def epochs(self) -> float:
        """Passes over the training text."""
        return self.tokens / self.corpus_tokens

    @property
    def fits(self) -> bool:
        """True if a step fits into the memory of this machine."""
        return self.needed <= self.room

    def to_json(self) -> dict[str, Any]:
        """Return plain data: FLOPs and bytes as integers, times in seconds."""
        found = asdict(self) | {"epochs": self.epochs, "fits": self.fits, "flops": self.steps * self.flops_per_step}
        for name in ("parameters", "memory"):
            parts: Breakdown[int] = getattr(self, name)
            found[name] = {**parts.parts, "total": parts.total}
        return found


def estimate_cost(run: RunConfig) -> CostEstimate:
    """Estimate the cost of a run on the best device of this machine, or on one device for each process of the run.

    CourseError is raised if the corpus does not exist, or if the accounting does not cover a run like this.
    """
    parts, training = tokenize_corpus(run), run.training
    corpus_tokens = parts.training.count()
    check_lengths(run, corpus_tokens, None if parts.validation is None else parts.validation.count())
    config = run.model_config(parts.tokenizer.vocab_size)
    steps, device = training.most_steps, best_device()
    mfu, peak = ASSUMED_MFU[device.type], _peak(device, training.precision)
    devices = training.parallel.world_size if device.type == "cuda" else 1
    try:
        flops, memory = _flops_per_step(config, training), _memory(config, training)
    except ValueError as error:
        raise CourseError(str(error)) from None
    return CostEstimate(
        vocab_size=parts.tokenizer.vocab_size,
        corpus_tokens=corpus_tokens,
        steps=steps,
        tokens=steps * training.tokens_per_step,
        parameters=count_parameters(config),
        flops_per_step=flops,
        memory=memory,
        devices=devices,
        needed=memory.total * (training.parallel.world_size // devices),
        room=title_and_memory(device)[1],
        peak=peak,
        mfu=mfu,
        seconds=None if peak is None else steps * flops / (mfu * peak.flops_per_second * devices),
    )


def _peak(device: torch.device, precision: Precision) -> Peak | None:
    try:
        return find_peak(device, precision)
    except ValueError:
        return None


def _flops_per_step(config: TransformerConfig, training: TrainingConfig) -> int:
    windows, again = training.grad_accum_steps * training.batch, training.activation_checkpointing
    step = training_flops(config, windows, training.seq_len, recompute="blocks" if again else "nothing")
    muon = muon_flops(config, training.muon_iterations) if training.optimizer == "muon" else 0
    return step.hardware.total + muon


def _memory(config: TransformerConfig, training: TrainingConfig) -> Breakdown[int]:
    # Further copies of the model (data_parallel) do not change the memory of a device.
    parallel, shared = training.parallel, training.parallel.fsdp
    return training_memory(
        config,
        training.batch // training.parallel.dp_size,
        training.seq_len,
        find_recipe(RECIPES[training.optimizer, training.precision]),
        activation_checkpointing="blocks" if training.activation_checkpointing else "nothing",
        layout=Layout(shared, parallel.tensor_parallel, parallel.pipeline_parallel, zero=3 if shared > 1 else 0),
        z_loss=training.z_loss > 0,
    )
