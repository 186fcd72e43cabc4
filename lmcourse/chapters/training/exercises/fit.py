"""The exercise on a whole run, made of earlier answers."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.training.exercises.right_fit import RIGHT_RUNS, in_a_for_loop, with_backward
from lmcourse.chapters.training.exercises.snapshot import Kept
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.training.schedules import WarmupStableDecay

BEGIN = """\
from dataclasses import replace
from lmcourse.chapters.training.small_run import *
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


class Fitted:
    """A right answer with a method for each part: wrong answers replace one part. The micro-batches of an update are
    read as one batch."""

    optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW

    def __call__(self, model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
        optimizer = self.optimizer(self.groups(model, settings), lr=settings.rate)  # type: ignore[call-arg]
        run = SimpleNamespace(model=model, optimizer=optimizer, loader=loader, step=0)
        if start is not None:
            self.resume(start, run)
        losses: list[float] = []
        for _ in range(self.updates(run, settings)):
            for group in optimizer.param_groups:
                group["lr"] = self.rate(run, settings, group["lr"], len(losses))
            loss = self.gradient(run, self.batches(loader, settings))
            self.clip(model, settings)
            optimizer.step()
            losses.append(loss)
            settings.report(run.step + 1, loss)
            self.finish(run, settings)
        self.end(run, settings)
        return losses

    def groups(self, model: Any, settings: Any) -> list[dict[str, Any]]:
        """Return the parameters with weight decay, and the others."""
        named = dict(model.named_parameters())
        decay = [p for name, p in named.items() if p.ndim > 1 and name not in settings.norms]
        rest = [p for p in named.values() if all(p is not other for other in decay)]
        return [{"params": decay, "weight_decay": settings.weight_decay}, {"params": rest, "weight_decay": 0.0}]

    def resume(self, start: Any, run: Any) -> None:
        """Restore the snapshot into a new run."""
        start.restore(run)

    def updates(self, run: Any, settings: Any) -> int:
        """Return the number of updates that are left."""
        return int(settings.steps - run.step)

    def rate(self, run: Any, settings: Any, before: float, done: int) -> float:
        """Return the learning rate of this update."""
        return self.factor(run.step, settings) * settings.rate

    def factor(self, step: int, settings: Any) -> float:
        """Return the factor of the peak rate at a step."""
        return WarmupStableDecay(settings.steps, settings.warmup, settings.decay, min_lr_ratio=0.0)(step)

    def batches(self, loader: Any, settings: Any) -> list[Any]:
        """Return the micro-batches of an update."""
        return [next(loader) for _ in range(settings.micro_batches)]

    def gradient(self, run: Any, batches: list[Any]) -> float:
        """Put the gradient into `.grad`; return the loss."""
        run.optimizer.zero_grad()
        loss = _loss(run.model, batches)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def clip(self, model: Any, settings: Any) -> None:
        """Limit the norm of the gradient."""
        nn.utils.clip_grad_norm_(model.parameters(), settings.limit)

    def finish(self, run: Any, settings: Any) -> None:
        """Count the update, and make a snapshot if one is due."""
        run.step += 1
        if run.step % settings.every == 0:
            settings.snapshots.append(Kept(run))

    def end(self, run: Any, settings: Any) -> None:
        """Run after the last update; here nothing is left to do."""


def _loss(model: Any, batches: list[Any]) -> Tensor:
    """Return the mean loss of batches of equal size, computed as one."""
    inputs, targets = (torch.cat([getattr(each, part) for each in batches]) for part in ("inputs", "targets"))
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def _reference(model: Any, loader: Any, settings: Any, start: Any = None) -> list[float]:
    return Fitted()(model, loader, settings, start)


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

for right_answer in RIGHT_RUNS:
    fit.variant(right_answer)


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
