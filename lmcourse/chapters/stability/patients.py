"""Tiny transformers that train badly: four patients, their treatments, and the records of a run.

`experiments/patients.py` measured many of these runs; `stored.py` reads its results.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
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
from lmcourse.nn.qk_norm import QKNormConfig

Scores = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Clip = Callable[[list[Tensor], float], tuple[list[Tensor], Any]]

VOCAB_SIZE = 128
WINDOW, BATCH, WIDTH, HEADS = 32, 8, 64, 2
GUESSING = math.log(VOCAB_SIZE)
"""The loss of random guessing, in nats per byte."""
HOPELESS = 20 * GUESSING
"""A run whose loss is above this is stopped."""

PATIENTS: dict[str, dict[str, Any]] = {
    "A": {"optimizer": "adamw", "rate": 0.03, "steps": 150},
    "B": {"optimizer": "sgd", "rate": 0.5, "steps": 80},
}
MEDICINES: dict[str, dict[str, Any]] = {
    "clipping": {"clip": 0.3},
    "z-loss": {"z_factor": 0.01},
    "soft cap": {"soft_cap": 50.0},
    "QK-clip": {"qk_clip": 30.0},
    "QK-norm": {"qk_norm": QKNormConfig()},
    "decay": {"decay": 1.0},
    "warm-up": {"warmup": 150},
}
"""Treatments that do not change the learning rate or the placement of the norms."""
RATES = {"rate × 10": 10.0, "rate × 3": 3.0, "rate ÷ 3": 1 / 3, "rate ÷ 10": 0.1}
CHANGES = (*RATES, "clipping", "QK-clip", "decay", "z-loss")
"""The treatments that can begin while a run is going on."""
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
        settings |= {"rate": settings["rate"] * RATES[name]} if name in RATES else (MEDICINES | OTHERS)[name]
    return settings


@dataclass
class Run:
    """The records of a run by step, and its model: losses in nats per byte (NaN if an update was rejected), norms of
    the gradient before clipping, the largest attention scores before a cap, and the means of |log Z| of the output."""

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    log_zs: list[float] = field(default_factory=list)
    model: Any = None

    @property
    def end(self) -> float:
        """The mean of the last ten losses; NaN if one of them is."""
        return fmean(self.losses[-10:])

    @property
    def signs(self) -> dict[str, Any]:
        """Its numbers by step as a doctor sees them, "loss", "norm", "score" and "log_z"; and the loss of guessing."""
        numbers = zip(
            ("loss", "norm", "score", "log_z"), (self.losses, self.norms, self.scores, self.log_zs), strict=True
        )
        return {name: part[: len(self.norms)] for name, part in numbers} | {"guessing": GUESSING}

    @property
    def exploded(self) -> bool:
        """True if the last loss is NaN or not below `HOPELESS`."""
        return not self.losses[-1] < HOPELESS


@cache
def stories() -> Int[Tensor, " bytes"]:
    """Return the text: 300 short stories, byte by byte."""
    grammar, source = story_grammar(), random.Random(0)
    return torch.tensor(list("".join(grammar.generate(source) for _ in range(300)).encode()))


def clip_gradients(gradients: list[Tensor], max_norm: float) -> tuple[list[Tensor], float]:
    """Return gradients whose norm, all together, is at most `max_norm`, and the norm they had."""
    norm = torch.nn.utils.get_total_norm(gradients).item()
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradient is {norm}")
    return gradients if norm <= max_norm else [max_norm / norm * gradient for gradient in gradients], norm


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
    qk_clip: float | None = None,
    bad_step: int | None = None,
    change: tuple[int, str] | None = None,
    clip_with: Clip = clip_gradients,
    scores_with: Scores | None = None,
    grown: float = 1.0,
    **architecture: Any,
) -> Run:
    """Train a tiny LLaMA of two layers until all steps are done or the loss explodes.

    Args:
        seed: the seed of the first weights and of the order of the text.
        optimizer: "adamw", or "sgd" with a momentum of 0.9.
        warmup: steps over which the rate rises to its full size.
        clip: the largest norm of the gradient.
        z_factor: α of the z-loss.
        qk_clip: the largest score of a head after whose step its W_q and W_k stay as they are (Kimi K2, 2025).
        bad_step: a step that reads random bytes.
        change: a number of steps, and one of `CHANGES` that begins after them.
        clip_with: a function from gradients and the largest norm to clipped gradients and the norm before.
        scores_with: a function from q, k and their scales to attention scores, in place of the scaled product.
        grown: a factor on the first W_q and W_k.
        architecture: changes of the model: `soft_cap`, `qk_norm`, `block` and others.
    """
    model = new_model(seed, scores_with, **architecture)
    for layer in layers(model):
        layer.qkv.weight.data[: 2 * WIDTH] *= grown
    run = Run(model=model)
    updates, parameters = make_optimizer(model, optimizer), list(model.parameters())
    now: dict[str, Any] = {"rate": rate, "clip": clip, "z_factor": z_factor, "decay": decay, "qk_clip": qk_clip}
    text = Loader(stories(), batch=BATCH, seq_len=WINDOW, seed=seed, prefetch=0)
    with text as batches, watch(model, run) as largest:
        for step in range(steps):
            if change and step == change[0]:
                now |= {"rate": rate * RATES[change[1]]} if change[1] in RATES else MEDICINES[change[1]]
            for group in updates.param_groups:
                group |= {"lr": now["rate"] * min(1, (step + 1) / (warmup + 1)), "weight_decay": now["decay"]}
            read = next(batches)
            if step == bad_step:
                read = noise(read)
            loss = next_token_loss(model(read.inputs), read.targets, z_loss=now["z_factor"])
            run.losses.append(loss.item())
            try:
                gradients, norm = clip_with(list(torch.autograd.grad(loss, parameters)), now["clip"] or math.inf)
            except ValueError:
                run.losses[-1] = math.nan
                break
            for p, gradient in zip(parameters, gradients, strict=True):
                p.grad = gradient
            updates.step()
            run.norms.append(float(norm))
            if run.losses[-1] > HOPELESS:
                break
            if now["qk_clip"]:
                shrink_heads(model, largest, now["qk_clip"])
    return run


def layers(model: Any) -> list[Any]:
    """Return the attention layers of a model."""
    return [block.attention.layer for block in model.blocks]


def new_model(seed: int, scores_with: Scores | None = None, **architecture: Any) -> Transformer:
    """Return a new model; with `scores_with`, learned scales for queries and keys are among its parameters."""
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, WIDTH, HEADS, 128, vocab_size=VOCAB_SIZE, context=WINDOW, **architecture))
    initialize(model)
    for layer in layers(model) if scores_with else ():
        layer.gamma_q, layer.gamma_k = (nn.Parameter(torch.ones(layer.d_head)) for _ in range(2))
        layer.found, layer.attend_fused = [], partial(_attend, layer, scores_with)
    return model


def _attend(layer: Any, scores_with: Any, q: Tensor, k: Tensor, v: Tensor, positions: Tensor, context: Any) -> Tensor:
    """Attend with scores of another function; called where a layer calls its fused kernel."""
    scores: Tensor = scores_with(q, k, layer.gamma_q, layer.gamma_k)
    layer.found.append(scores.detach().abs().amax((0, 2, 3)))
    visible = context.mask(layer.pattern, positions)[0][:, None]
    return scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1) @ v


def make_optimizer(model: nn.Module, kind: str) -> torch.optim.Optimizer:
    """Return SGD with momentum, or AdamW."""
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=0.9)
    return torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), fused=True)


@contextmanager
def watch(model: Transformer, run: Run) -> Iterator[list[Tensor]]:
    """Record the largest attention score (before a cap) and the mean |log Z| at every step.

    Yield a list that has, after each step, the largest score of every head, a tensor for each layer.
    """

    def see_scores(_: nn.Module, __: object, placed: tuple[Tensor, Tensor]) -> None:
        q, k = (part.detach() for part in placed)
        found.append((q @ k.mT).abs().amax((0, 2, 3)) / q.shape[-1] ** 0.5)

    def see_logits(_: nn.Module, __: object, logits: Tensor) -> None:
        run.log_zs.append(logits.detach().logsumexp(-1).abs().mean().item())
        run.scores.append(max(heads.max().item() for heads in found))
        largest[:] = found
        found.clear()

    found: list[Tensor] = []
    largest: list[Tensor] = []
    hooks = [model.head.register_forward_hook(see_logits)]
    for layer in layers(model):
        if isinstance(layer.attend_fused, partial):
            layer.found = found
        else:
            hooks.append(layer.qk_transform.register_forward_hook(see_scores))
    yield largest
    for hook in hooks:
        hook.remove()


@torch.no_grad()
def shrink_heads(model: Transformer, largest: list[Tensor], limit: float) -> None:
    """Multiply W_q and W_k of each head whose largest score is above the limit, so that this score returns to it."""
    for layer, scores in zip(layers(model), largest, strict=True):
        heads = layer.qkv.weight[: 2 * WIDTH].view(2, HEADS, -1)
        heads *= (limit / scores.clamp(min=limit)).sqrt()[:, None]


def noise(batch: Batch) -> Batch:
    """Return a batch of random bytes with the shape of this one."""
    source = torch.Generator().manual_seed(0)
    rows = torch.randint(VOCAB_SIZE, (len(batch.inputs), batch.inputs.shape[1] + 1), generator=source)
    return Batch(rows[:, :-1], rows[:, 1:])


def texts(count: int) -> tuple[Tensor, Tensor]:
    """Return the first windows of the text, and the bytes to predict."""
    rows = stories()[: count * WINDOW + 1]
    return rows[:-1].view(count, WINDOW), rows[1:].view(count, WINDOW)


@torch.no_grad()
def peaks(model: Transformer) -> list[tuple[float, float]]:
    """Return for each layer the fraction of rows of attention with a weight above 0.99, and a row's mean entropy in
    nats. The first token of a text is left out: it sees itself alone."""
    placed: list[tuple[Tensor, Tensor]] = []
    hooks = [layer.qk_transform.register_forward_hook(lambda _, __, qk: placed.append(qk)) for layer in layers(model)]
    model(texts(64)[0])
    for hook in hooks:
        hook.remove()
    hidden, found = torch.ones(WINDOW, WINDOW, dtype=torch.bool).triu(1), []
    for q, k in placed:
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf).softmax(-1)[:, :, 1:]
        entropy = -torch.special.xlogy(weights, weights).sum(-1).mean()
        found.append(((weights.amax(-1) > 0.99).float().mean().item(), entropy.item()))
    return found


def query_gradient(factor: float, *treatments: str) -> float:
    """Return the norm of the gradient of W_q, multiplied by `factor`, in block 0 of a new model."""
    model = new_model(0, **{name: value for treatment in treatments for name, value in MEDICINES[treatment].items()})
    weight = layers(model)[0].qkv.weight
    weight.data[:WIDTH] *= factor
    inputs, targets = texts(8)
    (gradient,) = torch.autograd.grad(next_token_loss(model(inputs), targets), weight)
    return float(gradient[:WIDTH].norm())


def left_out(run: Run) -> tuple[float, float]:
    """Return the loss of a model on 64 windows with and without its norms on queries and keys."""
    inputs, targets = texts(64)
    with torch.no_grad():
        kept = next_token_loss(run.model(inputs), targets).item()
        for layer in layers(run.model):
            layer.qk_transform.norm_before_rotary = False  # queries and keys bypass their norms
        return kept, next_token_loss(run.model(inputs), targets).item()
