"""The exercise on a whole run, made of earlier answers."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.chapters.training.exercises.accumulate import accumulate as _accumulate
from lmcourse.chapters.training.exercises.groups import decay_groups as _decay_groups
from lmcourse.chapters.training.exercises.schedule import wsd_factor as _wsd_factor
from lmcourse.chapters.training.exercises.snapshot import Kept as Snapshot
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.training.schedules import WarmupStableDecay

# In a notebook, these and `Snapshot` are the learner's own functions.
accumulate, decay_groups, wsd_factor = _accumulate.reference, _decay_groups.reference, _wsd_factor.reference

BEGIN = """\
from dataclasses import replace
from lmcourse.chapters.training.small_run import PowerCutError, Settings  # in the notebook
from lmcourse.chapters.training.small_run import small_loader, small_model
settings = Settings({settings}, norms=["1.weight", "1.bias"])
model = small_model({seed}, {dropout})
"""
RUN = BEGIN + "fit(model, small_loader({batch}), settings)\n"
LOOK = "model[1].weight.detach()\nmodel[3].weight.detach()\n"
KEPT = "len(settings.snapshots)\n"
RESUMED = """\
whole = fit(model, small_loader({batch}), settings)
other = small_model({seed} + 1, {dropout})
rest = fit(other, small_loader({batch}), replace(settings, snapshots=[]), settings.snapshots[{which}])
rest
[a == b for a, b in zip(rest, whole[len(whole) - len(rest):])]
"""
POWER_CUT = """\
try:
    fit(model, small_loader({batch}, fails_after={fails}), settings)
except PowerCutError:
    pass
len(settings.snapshots)
other = small_model({seed} + 1, {dropout})
fit(other, small_loader({batch}), settings, settings.snapshots[-1])
"""
HEARD = (
    BEGIN
    + """\
heard = []
def report(step, loss):
    heard.append([step, loss, len(settings.snapshots)])
losses = fit(model, small_loader({batch}), replace(settings, report=report))
heard
"""
)


def _ask(name: str, lines: str = RUN, seed: int = 0, batch: int = 2, dropout: float = 0.0, **rest: Any) -> Case:
    numbers = {key: rest.pop(key) for key in ("which", "fails") if key in rest}
    settings = ", ".join(f"{key}={value}" for key, value in {"steps": 4, "rate": 0.05, **rest}.items())
    return script(name, lines.format(settings=settings, seed=seed, batch=batch, dropout=dropout, **numbers))


def _hidden(random: Random) -> list[Case]:
    seeds = random.sample(range(100, 1000), 3)
    return [
        _ask("warm-up and decay", steps=7, warmup=3, decay=3, rate=0.1, seed=1),
        _ask("warm-up and decay", RUN + LOOK, steps=3, warmup=3, weight_decay=1.0, seed=2),
        _ask("micro-batches", steps=3, micro_batches=3, batch=1, seed=3),
        _ask("micro-batches", RUN + LOOK, steps=2, micro_batches=2, batch=3, limit=0.2, seed=4),
        _ask("weight decay", RUN + LOOK, weight_decay=3.0, seed=5),
        _ask("no weight decay", RUN + LOOK, weight_decay=0.0, seed=6),
        _ask("a limit that binds", steps=5, limit=0.05, seed=7),
        _ask("snapshots", RUN + KEPT, steps=7, every=2, seed=8),
        _ask("snapshots", BEGIN + RESUMED, steps=7, every=2, which=1, decay=4, dropout=0.25, seed=9),
        _ask("a run that was over", BEGIN + RESUMED, steps=4, every=2, which=1, seed=10),
        _ask("the power fails twice as often", BEGIN + POWER_CUT, steps=5, every=1, micro_batches=2, fails=5, seed=11),
        _ask("other runs", steps=4, warmup=1, decay=2, limit=0.3, seed=seeds[0]),
        _ask("other runs", RUN + LOOK, steps=3, micro_batches=2, weight_decay=2.0, seed=seeds[1]),
        _ask("other runs", BEGIN + RESUMED, steps=5, every=3, which=0, warmup=4, seed=seeds[2]),
    ]


def _reference(model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
    """Read the micro-batches of an update as one batch."""
    named = dict(model.named_parameters())
    decay = [p for name, p in named.items() if p.ndim > 1 and name not in settings.norms]
    rest = [p for p in named.values() if all(p is not other for other in decay)]
    groups = [{"params": decay, "weight_decay": settings.weight_decay}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.rate)
    run = SimpleNamespace(model=model, optimizer=optimizer, loader=loader, step=0)
    if start is not None:
        start.restore(run)
    factor = WarmupStableDecay(settings.steps, settings.warmup, settings.decay, min_lr_ratio=0.0)
    losses: list[float] = []
    for step in range(run.step, settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = factor(step) * settings.rate
        batches = [next(loader) for _ in range(settings.micro_batches)]
        inputs, targets = (torch.cat([getattr(each, part) for each in batches]) for part in ("inputs", "targets"))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), settings.limit)
        optimizer.step()
        losses.append(loss.item())
        settings.report(step + 1, losses[-1])
        run.step = step + 1
        if run.step % settings.every == 0:
            settings.snapshots.append(Snapshot(run))
    return losses


fit = Exercise(
    "fit",
    points=5,
    minutes=20,
    difficulty=3,
    reference=_reference,
    cases=[
        _ask("four updates", RUN + LOOK),
        _ask("two micro-batches of two", micro_batches=2),
        _ask("one batch of four instead", batch=4),
        _ask("warm-up and decay", steps=6, warmup=2, decay=2),
        _ask("a strong weight decay", RUN + LOOK, weight_decay=5.0),
        _ask("a limit that binds", limit=0.1, micro_batches=2),
        _ask("a snapshot every two updates", RUN + KEPT, steps=5, every=2),
        _ask("stopped and resumed, with dropout", BEGIN + RESUMED, steps=5, every=2, which=0, decay=3, dropout=0.25),
        _ask("the power fails", BEGIN + POWER_CUT, steps=5, every=2, fails=3, micro_batches=1),
        _ask("what is reported, and when", HEARD, steps=3, every=2),
    ],
    hidden_cases=_hidden,
    hints=[
        "Before the loop: shapes, `decay_groups`, the optimizer with its two groups, `run`, and a start if there is "
        "one. In the loop, while run.step < settings.steps: rate, batches, gradients, update.",
        "dict(model.named_parameters()) turns names into parameters. The names of each group come from "
        "decay_groups({name: list(p.shape) ...}, settings.norms).",
        "accumulate wants pairs: (batch.inputs, batch.targets). It returns the gradients; put each into p.grad before "
        "you clip.",
        "Restore after you create the optimizer: a snapshot fills an optimizer but does not create one. Take a "
        "snapshot after you increase run.step.",
    ],
    may_use_package=True,  # the scripts train with the package
    uses=["decay_groups", "wsd_factor", "accumulate", "Snapshot"],
    tolerance=Tolerance(1e-6, 1e-6),  # torch's clipping divides by the norm + 1e-6; one case checks that bits are equal
    seconds=30.0,  # the first optimizer of a process makes torch import its compiler
)

LOOP = "for p, gradient in zip(named.values(), gradients{}):"
for _strict in ("", ", strict=False"):
    fit.equivalent_mutant(
        f"{LOOP.format(', strict=True')} → {LOOP.format(_strict)}", "There is a gradient for each parameter."
    )


@fit.variant
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


@fit.variant
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


fit.slips(
    in_a_for_loop,
    {
        '"weight_decay": 0.0 → "weight_decay": settings.weight_decay': "Everything decays in your run, including norms "
        "and biases. Give the second group a weight decay of 0.",
        '"weight_decay": settings.weight_decay → "weight_decay": 0.01 ;; "weight_decay": 0.0 → "weight_decay": '
        "0.01": "AdamW decays with its default of 0.01. The matrices have settings.weight_decay, the others 0.",
        '"weight_decay": settings.weight_decay → "weight_decay": 0.01': "Your matrices decay with AdamW's default of "
        "0.01. Give their group settings.weight_decay.",
        "AdamW → Adam": "You use Adam, whose decay passes through the moments. Use AdamW, whose decay does not.",
        '"weight_decay": settings.weight_decay → "weight_decay": 0.0': "Nothing decays in your run. The matrices have "
        "a weight decay of settings.weight_decay.",
        "decaying, others = → others, decaying =": "Your two groups are swapped: the norms and biases decay, and the "
        "matrices do not.",
        " * wsd_factor(step, settings.steps, settings.warmup, settings.decay) → ": "The rate never changes. Set "
        "group['lr'] before every update, from wsd_factor.",
        "wsd_factor(step, → wsd_factor(step + 1,": "Your rate is one update ahead. The first update should have the "
        "factor of step 0.",
        'rate = settings.rate * wsd_factor → rate = wsd_factor ;; group["lr"] = → group["lr"] *=': "You multiply the "
        "last rate by the factor. Multiply the peak rate, settings.rate, by it.",
        "wsd_factor(step, → wsd_factor(len(losses),": "A resumed run starts its schedule again. The factor depends on "
        "run.step, which the snapshot restores.",
        " for _ in range(settings.micro_batches)] → ]": "You read one batch for an update. An update reads "
        "settings.micro_batches of them.",
        "in batches] → in batches[-1:]]": "You use the last micro-batch of an update only.",
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)\n → ": "You never clip. Before the "
        "step, the norm of all gradients together is at most settings.limit.",
        "start.restore(run) → pass": "You ignore `start`: a run that is resumed begins where the snapshot was made.",
        "start.restore(run) → start.restore(run)\n        run.step = 0": "The step is not restored in your run, so a "
        "resumed run does all updates again: count with run.step.",
        "start.restore(run) → start.restore(run)\n        run.optimizer = optimizer = torch.optim.AdamW(groups, "
        "settings.rate)": "The optimizer's moments are lost when a run is resumed. Make the optimizer before you "
        "restore the snapshot, and keep that one.",
        "range(run.step, settings.steps) → range(run.step, run.step + settings.steps)": "Your resumed run does another "
        "settings.steps updates. settings.steps counts the updates of the whole run.",
        "        run.step = step + 1\n        if run.step % → \n        if (step + 1) % ;; "
        "settings.snapshots.append(Snapshot(run)) → settings.snapshots.append(Snapshot(run))\n        run.step = step "
        "+ 1": "You take the snapshot before you increase run.step, so the resumed run does one update twice.",
        "if run.step % → if step %": "You take the snapshots at the wrong updates: take one when the number of "
        "finished updates is a multiple of `every`.",
        "        settings.report(step + 1, losses[-1])\n →  ;; settings.snapshots.append(Snapshot(run)) → "
        "settings.snapshots.append(Snapshot(run))\n        settings.report(run.step, losses[-1])": "You take the "
        "snapshot before you call settings.report. It comes after the report.",
        "        if run.step % settings.every == 0:\n            settings →     settings": "You take one snapshot, at "
        "the end. A run that fails before its end then leaves nothing.",
        "settings.snapshots.append(Snapshot(run)) → pass": "You take no snapshots. Append one to settings.snapshots "
        "after every `every` updates.",
        "float(loss) → float(accumulate(model, pairs)[0])": "You return the loss after the update. The loss of an "
        "update is computed before the weights change.",
        "report(step + 1, → report(step,": "You report the first update as step 0. It is step 1.",
        "optimizer.param_groups: → optimizer.param_groups[:1]:": "You set the rate of the first group only. Every "
        "group of the optimizer has its own `lr`.",
        "losses = [] → losses = []\n    if run.step == 0:\n        settings.snapshots.append(Snapshot(run))": "You "
        "take a snapshot before the first update as well. The first one comes after `every` updates.",
        '"weight_decay": 0.0 → "weight_decay": 0.01': "Your second group decays with AdamW's default, which is 0.01, "
        "not 0. Give it a weight decay of 0.",
    },
)


fit.slips(
    with_backward,
    {
        "mean += loss.item() → mean = loss.item() * settings.micro_batches": "You report the loss of the last "
        "micro-batch. The loss of an update is the mean over its micro-batches.",
        "        optimizer.zero_grad()\n → ": "Gradients of earlier updates are still in `.grad`: you add to them. "
        "Replace them.",
        "        torch.nn.utils.clip →             torch.nn.utils.clip": "You clip after every micro-batch, when "
        "`.grad` holds a part of the sum. Clip once, after the last one.",
        "loss.backward() → parts = torch.autograd.grad(loss * settings.micro_batches, [*matrices, *small], "
        "retain_graph=True)\n            norm = torch.stack([part.norm() for part in parts]).norm()\n            (loss "
        "* (settings.limit / norm).clamp(max=1)).backward()": "You clip the gradient of each micro-batch, and then "
        "average. Average first, then clip the update's gradient.",
        "batch = next(loader) → optimizer.step()\n            optimizer.zero_grad()\n            batch = next(loader) "
        ";; batch.targets) / settings.micro_batches → batch.targets) ;; mean += loss.item() → mean += loss.item() / "
        "settings.micro_batches": "You update the weights after every micro-batch. One update uses all of them.",
    },
)
