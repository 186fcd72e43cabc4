"""Tiny transformers that train badly: four patients, their treatments, and the records of a run.

`benchmarks/patients.py` measured many of these runs; `stored.py` reads its results.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from lmcourse.data.batch import Batch
from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.attention import QKTransform
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import NotFiniteError, training_step

VOCAB_SIZE = 128
WINDOW, BATCH = 32, 8
GUESSING = math.log(VOCAB_SIZE)
"""The loss of random guessing, in nats per byte."""
HOPELESS = 20 * GUESSING
"""A run whose loss is above this is stopped."""

PATIENTS: dict[str, dict[str, Any]] = {
    "A": {"optimizer": "adamw", "rate": 0.03, "steps": 150},
    "B": {"optimizer": "sgd", "rate": 0.5, "steps": 80},
    "X": {"optimizer": "adamw", "rate": 0.05, "steps": 150},
    "Y": {"optimizer": "sgd", "rate": 0.3, "steps": 100},
}
MEDICINES: dict[str, dict[str, Any]] = {
    "clipping": {"clip": 0.3},
    "z-loss": {"z_factor": 0.01},
    "soft cap": {"soft_cap": 50.0},
    "QK-norm": {"qk_norm": QKNormConfig()},
    "decay": {"decay": 1.0},
    "warm-up": {"warmup": 150},
}
"""Treatments that do not change the learning rate or the placement of the norms."""
OTHERS: dict[str, dict[str, Any]] = {
    "post-norm": {"block": {"placement": "post"}},
    "double norm": {"block": {"placement": "double"}},
    "biases": {"bias": True, "out_bias": True, "feed_forward": {"bias": True}},
}


def treat(patient: str, *treatments: str) -> dict[str, Any]:
    """Return the settings of a patient with treatments: `train(0, **treat("A", "QK-norm", "decay"))`.

    KeyError for a patient or a treatment that does not exist.
    """
    settings = dict(PATIENTS[patient])
    for name in treatments:
        settings |= {"rate": settings["rate"] / 10} if name == "rate ÷ 10" else (MEDICINES | OTHERS)[name]
    return settings


@dataclass
class Run:
    """The records of a run, with a number for each step, and its model.

    Attributes:
        losses: nats per byte; NaN at the end if an update was rejected.
        norms: the norm of the gradient, before clipping.
        scores: the largest attention score, before a cap.
        log_zs: the mean of |log Z| of the output.
        model: the model at the end of the run.
    """

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    log_zs: list[float] = field(default_factory=list)
    model: nn.Module = field(default_factory=nn.Module)

    @property
    def end(self) -> float:
        """The mean of the last ten losses; NaN if one of them is."""
        return fmean(self.losses[-10:])

    @property
    def exploded(self) -> bool:
        """True if the last loss is NaN or not below `HOPELESS`."""
        return not self.losses[-1] < HOPELESS


@cache
def stories() -> Int[Tensor, " bytes"]:
    """Return the text: 300 short stories, byte by byte."""
    grammar, source = story_grammar(), random.Random(0)
    return torch.tensor(list("".join(grammar.generate(source) for _ in range(300)).encode()))


def train(
    seed: int,
    optimizer: str,
    rate: float,
    *,
    steps: int = 100,
    warmup: int = 0,
    clip: float | None = None,
    z_factor: float = 0.0,
    decay: float = 0.0,
    bad_step: int | None = None,
    **architecture: Any,
) -> Run:
    """Train a tiny LLaMA of two layers until all steps are done or the loss explodes.

    Args:
        seed: the seed of the first weights and of the order of the text.
        optimizer: "adamw", or "sgd" with a momentum of 0.9.
        rate: the learning rate.
        steps: updates.
        warmup: steps over which the rate rises to its full size.
        clip: the largest norm of the gradient.
        z_factor: α of the z-loss.
        decay: the weight decay.
        bad_step: a step that reads random bytes.
        architecture: changes of the model: `soft_cap`, `qk_norm`, `block` and others.
    """
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, 64, 2, 128, vocab_size=VOCAB_SIZE, context=WINDOW, **architecture))
    initialize(model)
    run = Run(model=model)
    watch(model, run)
    updates, precision = make_optimizer(model, optimizer, rate, decay), MixedPrecision("fp32", torch.device("cpu"))
    with Loader(stories(), batch=BATCH, seq_len=WINDOW, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            for group in updates.param_groups:
                group["lr"] = rate * min(1, (step + 1) / (warmup + 1))
            read = next(batches)
            if step == bad_step:
                read = noise(read)
            try:
                result = training_step(model, [read], updates, precision, grad_clip=clip, z_loss=z_factor)
            except NotFiniteError:
                run.losses.append(math.nan)
                break
            run.losses.append(result.loss)
            run.norms.append(result.gradient_norm)
            if result.loss > HOPELESS:
                break
    return run


def make_optimizer(model: nn.Module, kind: str, rate: float, decay: float) -> torch.optim.Optimizer:
    """Return SGD with momentum, or AdamW."""
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=decay)
    return torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=decay, fused=True)


def watch(model: Transformer, run: Run) -> None:
    """Record the largest attention score (before a cap) and the mean |log Z| at every step."""

    def see_scores(_: nn.Module, __: object, placed: tuple[Tensor, Tensor]) -> None:
        q, k = (part.detach() for part in placed)
        found.append((q @ k.mT).abs().max().item() / q.shape[-1] ** 0.5)

    def see_logits(_: nn.Module, __: object, logits: Tensor) -> None:
        run.log_zs.append(logits.detach().logsumexp(-1).abs().mean().item())
        run.scores.append(max(found))
        found.clear()

    found: list[float] = []
    for module in model.modules():
        if isinstance(module, QKTransform):
            module.register_forward_hook(see_scores)
    model.head.register_forward_hook(see_logits)


def noise(batch: Batch) -> Batch:
    """Return a batch of random bytes with the shape of this one."""
    source = torch.Generator().manual_seed(0)
    rows = torch.randint(VOCAB_SIZE, (len(batch.inputs), batch.inputs.shape[1] + 1), generator=source)
    return Batch(rows[:, :-1], rows[:, 1:])


def left_out(run: Run) -> tuple[float, float]:
    """Return the loss of a model on 64 windows with and without its norms on queries and keys. The model is not
    changed."""
    rows = stories()[: 64 * WINDOW + 1]
    inputs, targets = rows[:-1].view(64, WINDOW), rows[1:].view(64, WINDOW)
    with torch.no_grad():
        kept = next_token_loss(run.model(inputs), targets).item()
        for module in run.model.modules():
            if isinstance(module, QKTransform):
                module.norm_before_rotary = False  # queries and keys bypass their norms
        return kept, next_token_loss(run.model(inputs), targets).item()
