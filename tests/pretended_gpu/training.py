"""Run training steps and evaluations on a simulated GPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.data.batch import Batch
from lmcourse.training.distributed_context import SINGLE_PROCESS
from lmcourse.training.evaluation import evaluate
from lmcourse.training.param_groups import make_optimizer
from lmcourse.training.precision import MixedPrecision, Precision
from lmcourse.training.step import training_step
from lmcourse.training.training_config import TrainingConfig
from tests.pretended_gpu.models import grouped, plain, windows

STEPS = 3


def steps(model: nn.Module, precision: Precision, optimizer: str = "adamw") -> None:
    config = TrainingConfig(STEPS, 4, 64, optimizer=optimizer, precision=precision)  # type: ignore[arg-type]
    updates = make_optimizer(model, config, SINGLE_PROCESS)
    form = MixedPrecision(precision, torch.device("cuda"))
    tokens = torch.zeros(4, 65, dtype=torch.long, device="cuda")
    for _ in range(STEPS):
        batches = [Batch(tokens[:, :-1], tokens[:, 1:])] * 2
        training_step(model, batches, updates, form, grad_clip=1.0, z_loss=1e-4)
    assert {p.device.type for p in model.parameters()} == {"cuda"}
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def validate(batches: int) -> None:
    evaluate(
        plain(), torch.zeros(4 * 64 * batches, dtype=torch.long), 4, 64, MixedPrecision("bf16", torch.device("cuda"))
    )


def mixed_devices() -> None:
    """Make a deliberate mistake: leave tokens in main memory."""
    plain()(torch.zeros(1, 8, dtype=torch.long))


def unmended() -> None:
    """Run attention with shared fp32 key heads without repeating the keys."""
    q, k = (torch.zeros(1, heads, 16, 8, device="cuda") for heads in (4, 2))
    F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)


WORK = {
    "steps in fp32": lambda: steps(plain(), "fp32"),
    "steps in bf16": lambda: steps(plain(), "bf16"),
    "steps in fp16": lambda: steps(plain(), "fp16"),
    "steps of muon": lambda: steps(plain(), "bf16", "muon"),
    "steps of shared heads in bf16": lambda: steps(grouped(), "bf16"),
    "steps of shared heads in fp32": lambda: steps(grouped(), "fp32"),
    "steps of shared heads with windows": lambda: steps(windows(), "bf16"),
    "evaluation of 1 batch": lambda: validate(1),
    "evaluation of 6 batches": lambda: validate(6),
    "heads shared in fp32, unmended": unmended,
    "tokens left behind": mixed_devices,
}
