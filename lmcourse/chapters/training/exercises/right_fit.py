"""Right answers to the exercise on a whole run, in other styles than the printed one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

from lmcourse.chapters.training.exercises.accumulate import accumulate as _accumulate
from lmcourse.chapters.training.exercises.groups import decay_groups as _decay_groups
from lmcourse.chapters.training.exercises.schedule import wsd_factor as _wsd_factor
from lmcourse.chapters.training.exercises.snapshot import Snapshot as _Snapshot

# In a notebook, these are the learner's own functions.
accumulate, decay_groups = _accumulate.reference, _decay_groups.reference
wsd_factor, Snapshot = _wsd_factor.reference, _Snapshot.reference


def in_a_for_loop(model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
    named = dict(model.named_parameters())
    decaying, others = decay_groups({name: [*p.shape] for name, p in named.items()}, settings.norms)
    groups = [
        {"params": [named[name] for name in decaying], "weight_decay": settings.weight_decay},
        {"params": [named[name] for name in others], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, settings.rate)
    run = SimpleNamespace(model=model, optimizer=optimizer, loader=loader, step=0)
    if start:
        start.restore(run)
    losses = []
    for step in range(run.step, settings.steps):
        batches = [next(loader) for _ in range(settings.micro_batches)]
        pairs = [(batch.inputs, batch.targets) for batch in batches]
        loss, gradients = accumulate(model, pairs)
        for p, gradient in zip(model.parameters(), gradients, strict=True):
            p.grad = gradient
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)
        rate = settings.rate * wsd_factor(step, settings.steps, settings.warmup, settings.decay)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        losses.append(float(loss))
        settings.report(step + 1, losses[-1])
        run.step = step + 1
        if run.step % settings.every == 0:
            settings.snapshots.append(Snapshot(run))
    return losses


def with_backward(model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
    matrices = [p for name, p in model.named_parameters() if p.dim() >= 2 and name not in settings.norms]
    small = [p for name, p in model.named_parameters() if p.dim() < 2 or name in settings.norms]
    optimizer = torch.optim.AdamW([{"params": small}], lr=settings.rate, weight_decay=0.0)
    optimizer.add_param_group({"params": matrices, "weight_decay": settings.weight_decay})
    run = SimpleNamespace(model=model, optimizer=optimizer, loader=loader, step=0)
    if start is not None:
        start.restore(run)
    losses: list[float] = []
    while run.step < settings.steps:
        factor = wsd_factor(run.step, settings.steps, settings.warmup, settings.decay)
        optimizer.zero_grad()
        mean = 0.0
        for _ in range(settings.micro_batches):
            batch = next(loader)
            logits = model(batch.inputs)
            loss = F.cross_entropy(logits.transpose(1, 2), batch.targets) / settings.micro_batches
            loss.backward()
            mean += loss.item()
        torch.nn.utils.clip_grad_norm_([*matrices, *small], settings.limit)
        optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = factor * settings.rate
        optimizer.step()
        run.step += 1
        settings.report(run.step, mean)
        losses.append(mean)
        if not run.step % settings.every:
            settings.snapshots += [Snapshot(run)]
    return losses


RIGHT_RUNS = (in_a_for_loop, with_backward)
