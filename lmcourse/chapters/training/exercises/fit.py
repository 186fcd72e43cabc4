"""The exercise on a whole run, made of earlier answers."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

from lmcourse.chapters.training.exercises.accumulate import accumulate as _accumulate
from lmcourse.chapters.training.strangers import Kept as Snapshot
from lmcourse.chapters.training.strangers import train
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

# In a notebook, this and `Snapshot` are the learner's own.
accumulate = _accumulate.course_answer

BEGIN = """\
import torch
from dataclasses import replace
from lmcourse.training.small_model import PowerCutError, ragged_loader, small_model  # in the notebook
from lmcourse.training.small_model import small_loader
from lmcourse.training.run_settings import Settings  # in the notebook
settings = Settings({settings})
model = small_model({seed}, {dropout})
"""
RUN = BEGIN + "fit(model, small_loader({batch}), settings)\n"
RAGGED = RUN.replace("small_loader({batch})", "ragged_loader({batch})")
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
[type(loss).__name__ for loss in losses]
"""
)
HELD = (
    BEGIN
    + """\
norms = []
def report(step, loss):
    norms.append([0.0 if p.grad is None else p.grad.norm().item() for p in model.parameters()])
losses = fit(model, small_loader({batch}), replace(settings, report=report))
norms
"""
)
TWO_RATES = """\
def optimizer(model):
    groups = [{{"params": model[0].parameters(), "lr": 0.5}}, {{"params": model[1:].parameters()}}]
    return torch.optim.SGD(groups, lr=0.1, momentum=0.9)
settings = replace(settings, optimizer=optimizer)
"""
OWN_FACTOR = "settings = replace(settings, factor=lambda step: (step + 1) / 10)\n"


def _own(lines: str, given: str = TWO_RATES) -> str:
    """Put lines after the settings."""
    return lines.replace("Settings({settings})\n", "Settings({settings})\n" + given)


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
        _ask("micro-batches", RAGGED + LOOK, steps=2, micro_batches=2, batch=3, limit=0.2, seed=4),
        _ask("weight decay", RUN + LOOK, weight_decay=3.0, seed=5),
        _ask("no weight decay", RUN + LOOK, weight_decay=0.0, seed=6),
        _ask("a limit that binds", steps=5, limit=0.05, seed=7),
        _ask("snapshots", RUN + KEPT, steps=7, every=2, seed=8),
        _ask("snapshots", BEGIN + RESUMED, steps=7, every=2, which=1, decay=4, dropout=0.25, seed=9),
        _ask("a run that was over", BEGIN + RESUMED, steps=4, every=2, which=1, seed=10),
        _ask("the power fails twice as often", BEGIN + POWER_CUT, steps=5, every=1, micro_batches=2, fails=5, seed=11),
        _ask("an optimizer with two rates", _own(RUN), steps=5, decay=3, seed=12),
        _ask("other runs", steps=4, warmup=1, decay=2, limit=0.3, seed=seeds[0]),
        _ask("other runs", RUN + LOOK, steps=3, micro_batches=2, weight_decay=2.0, seed=seeds[1]),
        _ask("other runs", BEGIN + RESUMED, steps=5, every=3, which=0, warmup=4, seed=seeds[2]),
    ]


fit = Exercise(
    "fit",
    points=4,
    minutes=14,
    difficulty=3,
    reference=train,
    cases=[
        _ask("four updates", RUN + LOOK),
        _ask("two micro-batches of two", micro_batches=2),
        _ask("one batch of four instead", batch=4),
        _ask("micro-batches with different numbers of targets", RAGGED + LOOK, steps=2, micro_batches=3, batch=1),
        _ask("warm-up and decay", steps=6, warmup=2, decay=2),
        _ask("a strong weight decay", RUN + LOOK, weight_decay=5.0),
        _ask("an optimizer with two rates", _own(RUN), warmup=3),
        _ask("a factor of the caller", _own(RUN, OWN_FACTOR)),
        _ask("a limit that binds", limit=0.1, micro_batches=2),
        _ask("a snapshot every two updates", RUN + KEPT, steps=5, every=2),
        _ask("stopped and resumed, with dropout", BEGIN + RESUMED, steps=5, every=2, which=0, decay=3, dropout=0.25),
        _ask("two rates, stopped and resumed", _own(BEGIN + RESUMED), steps=5, every=2, which=0, warmup=4),
        _ask("the power fails", BEGIN + POWER_CUT, steps=5, every=2, fails=3, micro_batches=1),
        _ask("what is reported, and when", HEARD, steps=3, every=2, micro_batches=2),
        _ask("the gradient that `report` sees", HELD, steps=3, limit=0.1),
    ],
    hidden_cases=_hidden,
    hints=[
        "Before the loop: the optimizer, the first rate of each of its groups, `run`, and a start if there is one. In "
        "the loop, while run.step < settings.steps: rates, batches, gradients, update.",
        "accumulate wants pairs: (batch.inputs, batch.targets). It returns the gradients; put each into p.grad before "
        "you clip.",
        "A snapshot fills an optimizer, its rates included, and does not create one. So create it and read the first "
        "rates before you restore. Take a snapshot after you increase run.step.",
    ],
    may_use_package=True,  # the scripts train with the package
    uses=["accumulate", "Snapshot"],
    tolerance=Tolerance(1e-6, 1e-6),  # torch's clipping divides by the norm + 1e-6; one case checks that bits are equal
    seconds=30.0,  # the first optimizer of a process makes torch import its compiler
)


@fit.variant
def in_a_for_loop(model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
    optimizer = settings.optimizer(model)
    rates = [group["lr"] for group in optimizer.param_groups]
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
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * settings.factor(step)
        optimizer.step()
        losses.append(float(loss))
        settings.report(step + 1, losses[-1])
        run.step = step + 1
        if run.step % settings.every == 0:
            settings.snapshots.append(Snapshot(run))
    return losses


@fit.variant
def with_backward(model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
    optimizer = settings.optimizer(model)
    rates = [group["lr"] for group in optimizer.param_groups]
    run = SimpleNamespace(model=model, optimizer=optimizer, loader=loader, step=0)
    if start is not None:
        start.restore(run)
    losses: list[float] = []
    while run.step < settings.steps:
        optimizer.zero_grad()
        mean = 0.0
        batches = [next(loader) for _ in range(settings.micro_batches)]
        count = sum(int((batch.targets != -100).sum()) for batch in batches)
        for batch in batches:
            own = int((batch.targets != -100).sum())
            loss = F.cross_entropy(model(batch.inputs).transpose(1, 2), batch.targets) * (own / count)
            loss.backward()  # type: ignore[no-untyped-call]
            mean += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)
        for i, group in enumerate(optimizer.param_groups):
            group["lr"] = settings.factor(run.step) * rates[i]
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
        "settings.optimizer(model) → torch.optim.AdamW(model.parameters(), settings.rate)": "You make an AdamW of "
        "your own. It decays everything, with its default of 0.01, which is not 0: settings.optimizer makes the "
        "optimizer.",
        "settings.optimizer(model) → torch.optim.AdamW(model.parameters(), settings.rate, "
        "weight_decay=settings.weight_decay)": "You make an AdamW of your own, in which everything decays, norms and "
        "biases too. settings.optimizer makes the optimizer, with its groups.",
        "settings.optimizer(model) → torch.optim.Adam(model.parameters(), settings.rate)": "You make an Adam of your "
        "own. settings.optimizer makes the optimizer.",
        " * settings.factor(step) → ": "The rates never change. Multiply each group's first rate by "
        "settings.factor(step) before every update.",
        "settings.factor(step) → settings.factor(step + 1)": "Your rate is one update ahead. The first update should "
        "have the factor of step 0.",
        'group["lr"] = rate * settings → group["lr"] *= settings': "You multiply the last rate by the factor. Multiply "
        "the first rate of the group by it.",
        "= rate * settings.factor → = settings.rate * settings.factor": "You give every group the rate settings.rate. "
        "Each group has a first rate of its own, which its optimizer was made with.",
        '    rates = [group["lr"] for group in optimizer.param_groups]\n →  ;; start.restore(run)\n → '
        'start.restore(run)\n    rates = [group["lr"] for group in optimizer.param_groups]\n': "You read the first "
        "rates after `restore`, which has put the last rates of the kept run there. Read them before.",
        "settings.factor(step) → settings.factor(len(losses))": "A resumed run starts its schedule again. The factor "
        "depends on run.step, which the snapshot restores.",
        " for _ in range(settings.micro_batches)] → ]": "You read one batch for an update. An update reads "
        "settings.micro_batches of them.",
        "clip_grad_norm_ → clip_grad_value_": "You clip each entry separately, which turns the gradient. Scale it down "
        "as a whole: clip_grad_norm_.",
        "optimizer.step()\n → optimizer.step()\n        optimizer.zero_grad()\n": "You clear the gradients before "
        "settings.report, which may look at them. Clear them after the report.",
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)\n →  ;; optimizer.step()\n → "
        "optimizer.step()\n        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)\n": "You clip "
        "after `optimizer.step()`, when the weights have moved already. Clip before it.",
        "torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit) → "
        "[torch.nn.utils.clip_grad_norm_([p], settings.limit) for p in model.parameters()]": "You clip each parameter "
        "separately. The norm of all gradients together is at most settings.limit.",
        "parameters(), settings.limit → parameters(), 1.0": "You always clip at 1.0. Use settings.limit.",
        "append(Snapshot(run)) → append(run)": "You append the run itself, which changes. Append a Snapshot of it.",
        '        for group, rate in zip(optimizer.param_groups, rates, strict=True):\n            group["lr"] = rate * '
        "settings.factor(step)\n →  ;; optimizer.step()\n → optimizer.step()\n        for group, rate in "
        'zip(optimizer.param_groups, rates):\n            group["lr"] = rate * settings.factor(step)\n ||         for '
        'group, rate in zip(optimizer.param_groups, rates, strict=True):\n            group["lr"] = rate * '
        "settings.factor(step)\n →  ;; optimizer.step()\n → optimizer.step()\n        for group, rate in "
        'zip(optimizer.param_groups, rates):\n            group["lr"] = rate * settings.factor(step + '
        "1)\n": "You set the rates after the update, so the first one has the whole rate. Set them before it.",
        "settings.factor(step) → min(1, (step + 1) / (settings.warmup or 1), (settings.steps - step) / (settings.decay "
        "or 1))": "You compute the factor yourself. A caller may pass another one: use settings.factor(step).",
        "settings.snapshots.append(Snapshot(run)) → settings.snapshots = [Snapshot(run)]": "You replace the list "
        "settings.snapshots. Append to it.",
        "in batches] → in batches[-1:]]": "You use the last micro-batch of an update only.",
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)\n → ": "You never clip. Before the "
        "step, the norm of all gradients together is at most settings.limit.",
        "start.restore(run) → run.step = start.step": "You take only the step from the snapshot. `restore` also brings "
        "back model, optimizer, loader and torch's generator.",
        "range(run.step, settings.steps) → range(run.step, settings.steps + 1)": "You do one update too many. After "
        "the last one, `run.step` equals settings.steps.",
        "start.restore(run) → pass": "You ignore `start`: a run that is resumed begins where the snapshot was made.",
        "start.restore(run) → start.restore(run)\n        run.step = 0": "The step is not restored in your run, so a "
        "resumed run does all updates again: count with run.step.",
        "start.restore(run) → start.restore(run)\n        run.optimizer = optimizer = settings.optimizer(model)": "The "
        "optimizer's moments are lost when a run is resumed. Make the optimizer before you restore the snapshot, and "
        "keep that one.",
        "range(run.step, settings.steps) → range(run.step, run.step + settings.steps)": "Your resumed run does another "
        "settings.steps updates. settings.steps counts the updates of the whole run.",
        "        run.step = step + 1\n        if run.step % → \n        if (step + 1) % ;; "
        "settings.snapshots.append(Snapshot(run)) → settings.snapshots.append(Snapshot(run))\n        run.step = step "
        "+ 1": "You take the snapshot before you increase run.step, so the resumed run does one update twice.",
        "report(step + 1, → report(run.step, ;;         run.step = step + 1\n →  ;; append(Snapshot(run)) → "
        "append(Snapshot(run))\n        run.step = step + 1": "You count an update only after its report and its "
        "snapshot. Increase run.step before both: the first update is step 1.",
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
        "float(loss) → torch.as_tensor(loss)": "Your losses are tensors. Return a list of Python floats: "
        "`float(loss)`.",
        "report(step + 1, → report(step,": "You report the first update as step 0. It is step 1.",
        "in zip(optimizer.param_groups, rates, strict=True) → in zip(optimizer.param_groups[:1], rates)": "You set the "
        "rate of the first group only. Every group of the optimizer has its own `lr`.",
        "losses = [] → losses = []\n    if run.step == 0:\n        settings.snapshots.append(Snapshot(run))": "You "
        "take a snapshot before the first update as well. The first one comes after `every` updates.",
    },
)


fit.slips(
    with_backward,
    {
        "(own / count) → (1 / len(batches))": "You average the means of the micro-batches. The loss of an update is "
        "the mean over all targets that count: `accumulate` computes it.",
        " * (own / count) → ": "You add up the means of the micro-batches. The loss of an update is the mean over all "
        "targets that count: `accumulate` takes all batches at once.",
        " * (own / count) →  ;; mean += loss.item() → mean += loss.item() / len(batches)": "You add up the gradients "
        "of the micro-batches' means. The loss of an update is the mean over all targets that count: `accumulate` "
        "takes all batches at once.",
        "mean += loss.item() → mean = loss.item() * count / own": "You report the loss of the last "
        "micro-batch. The loss of an update is the mean over all its targets.",
        "mean += loss.item() → mean = loss.item()": "You report the last micro-batch's part of the loss alone. Add up "
        "the parts.",
        "        optimizer.zero_grad()\n → ": "Gradients of earlier updates are still in `.grad`: you add to them. "
        "Replace them.",
        "            mean += → "
        "            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.limit)\n            mean +=": "You "
        "clip after every micro-batch, when `.grad` holds a part of the sum. Clip once, after the last one.",
        "loss.backward() → parts = torch.autograd.grad(loss * count / own, list(model.parameters()), "
        "retain_graph=True)\n            norm = torch.stack([part.norm() for part in parts]).norm()\n            (loss "
        "* (settings.limit / norm).clamp(max=1)).backward()": "You clip the gradient of each micro-batch, and then "
        "average. Average first, then clip the update's gradient.",
        "for batch in batches:\n            own → for batch in batches:\n            optimizer.step()\n            "
        "optimizer.zero_grad()\n            own ;; * (own / count) →  ;; mean += loss.item() → mean += loss.item() * "
        "own / count": "You update the weights after every micro-batch. One update uses all of them.",
    },
)
