"""What is done on a pretended GPU; `start` runs it in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from lmcourse.data.batch import Batch
from lmcourse.inference.beam import beam_search
from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.course import modern
from lmcourse.models.zoo.styles import llama_like, window
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.training.command.resolve_settings import new_run
from lmcourse.training.config import TrainingConfig
from lmcourse.training.distributed_context import SINGLE_PROCESS
from lmcourse.training.evaluation import evaluate
from lmcourse.training.make_optimizer import make_optimizer
from lmcourse.training.precision import MixedPrecision, Precision
from lmcourse.training.step import training_step
from tests.pretended_gpu.device import Watch, pretended_gpu

SIZES: dict[str, Any] = {"vocab_size": 256, "context": 64}
STEPS = 3


def grouped() -> Transformer:
    """Grouped queries, QK-norm, every other layer with a window."""
    config = llama_like(2, 32, 4, 96, kv_heads=2, qk_norm=QKNormConfig(), layer_pattern=window(8, 2), **SIZES)
    return Transformer(config).cuda()


def plain() -> Transformer:
    return Transformer(modern(2, 32, 4, 64)).cuda()


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


def write(model: Transformer, tokens: int, **how: Any) -> None:
    found = generate(model, [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]], tokens, **how)
    assert len(found[0]) == tokens


def default_precision() -> None:
    """What `lmcourse train` takes if nothing is said."""
    assert new_run({}).training.precision == "bf16"
    assert new_run({"precision": "fp32"}).training.precision == "fp32"


def mixed_devices() -> None:
    """A mistake: tokens that were left in main memory."""
    plain()(torch.zeros(1, 8, dtype=torch.long))


WORK: dict[str, Callable[[], object]] = {
    **{f"steps in {form}": lambda form=form: steps(plain(), form) for form in ("fp32", "bf16", "fp16")},
    "steps of grouped queries with windows": lambda: steps(grouped(), "bf16"),
    "steps of muon": lambda: steps(plain(), "bf16", "muon"),
    "evaluation of 1 batch": lambda: validate(1),
    "evaluation of 6 batches": lambda: validate(6),
    "3 tokens": lambda: write(plain(), 3),
    "13 tokens": lambda: write(plain(), 13),
    "13 tokens with a window": lambda: write(grouped(), 13),
    "13 tokens drawn": lambda: write(plain(), 13, sampler=Sampling(temperature=0.7, top_p=0.9)),
    "a beam": lambda: beam_search(plain(), [1, 2, 3], 5, beams=3),
    "the default": default_precision,
    "tokens left behind": mixed_devices,
}


def do(work: Callable[[], object], watch: Watch) -> dict[str, Any]:
    """Do it; what there was to see, and the first line of an error."""
    watch.clear()
    error = None
    try:
        work()
    except Exception as found:
        error = f"{type(found).__name__}: {found}".splitlines()[0]
    return {
        "waits": sum(watch.waits.values()),
        "where": dict(watch.waits),
        "dtypes": dict(watch.dtypes),
        "error": error,
    }


def main() -> None:
    """Print a JSON object: of each piece of work the waits and where they were, the dtypes of products, the error."""
    with pretended_gpu() as watch:
        print(json.dumps({name: do(work, watch) for name, work in WORK.items()}))
