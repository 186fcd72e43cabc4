"""The exercise on a snapshot from which a run resumes bit for bit."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import torch

from lmcourse.chapters.training.strangers import Kept
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise

IMPORT = "import torch\nfrom lmcourse.chapters.training.small_run import SmallRun  # in the notebook\n"
GOES_ON = """\
run = SmallRun(seed={seed})
before = run.train({before})
kept = Snapshot(run)
run.train(3)
other = SmallRun(seed={other})
kept.restore(other)
other.train(3)
other.step
"""
ONE_PART = """\
run = SmallRun(seed={seed})
before = run.train(3)
kept = Snapshot(run)
after = run.train(3)
other = SmallRun(seed={other})
kept.restore(other)
"""
"""Script to which each case adds a look at one part of the restored run."""
MOMENTS = "[[*state.values()] for state in other.optimizer.state_dict()['state'].values()]"
TWICE = """\
run = SmallRun(seed={seed})
before = run.train(3)
kept = Snapshot(run)
first, second = SmallRun(seed=1), SmallRun(seed=2)
kept.restore(first)
first.train(3)
trained = second.train(2)
kept.restore(second)
second.train(3)
"""
BOTH = """\
run = SmallRun(seed={seed})
before = run.train(2)
early = Snapshot(run)
between = run.train(2)
late = Snapshot(run)
other = SmallRun(seed=9)
late.restore(other)
other.train(2)
early.restore(other)
other.train(2)
"""
ASIDE = """\
run = SmallRun(seed={seed})
before = run.train(2)
kept = Snapshot(run)
noise = torch.rand(100)
run.train(2)
kept.restore(run)
more = torch.rand(0)
run.train(2)
"""

OBJECTS = """\
run = SmallRun(seed={seed})
before = run.train(2)
kept = Snapshot(run)
other = SmallRun(seed={other})
parts = [other.model, other.optimizer, other.loader]
kept.restore(other)
[now is part for now, part in zip([other.model, other.optimizer, other.loader], parts)]
"""
"""Script that looks whether a restored run still has its own objects."""


def _ask(name: str, lines: str, optimizer: str = "", **numbers: int) -> Case:
    text = lines.format(**{"seed": 0, "other": 1, "before": 3, **numbers})
    if optimizer:
        text = text.replace("SmallRun(", f"SmallRun(optimizer={optimizer}, rate=0.5, ")
    return script(name, IMPORT + text)


def _hidden(random: Random) -> list[Case]:
    seeds = random.sample(range(100, 10_000), 4)
    return [
        _ask("other optimizers", GOES_ON, "torch.optim.SGD", seed=3),
        _ask("other optimizers", GOES_ON, "torch.optim.Adagrad", seed=4),
        _ask("other optimizers", TWICE, "torch.optim.RMSprop", seed=5),
        _ask("before the first step", GOES_ON, before=0, seed=6),
        _ask("after the end of the schedule", GOES_ON, before=45, seed=9),
        _ask("two snapshots", BOTH, seed=10),
        _ask("into the same run", ASIDE, seed=11),
        *(
            _ask("other runs", GOES_ON, seed=seed, other=seed + 1, before=number)
            for number, seed in enumerate(seeds, 1)
        ),
    ]


Snapshot = Exercise(
    "Snapshot",
    points=4,
    minutes=12,
    difficulty=3,
    reference=Kept,
    cases=[
        _ask("the weights", ONE_PART + "[p.detach() for p in other.model.parameters()]"),
        _ask("the optimizer's state", ONE_PART + MOMENTS),
        _ask("the place in the text", ONE_PART + "next(other.loader).inputs"),
        _ask("the number of updates", ONE_PART + "other.step"),
        _ask("the numbers for dropout", ONE_PART + "torch.rand(4)", seed=2),
        _ask("continues in a new run", GOES_ON),
        _ask("restored twice, the second time into a trained run", TWICE),
        _ask("two snapshots of one run", BOTH),
        _ask("into the same run", ASIDE),
        _ask("the run keeps its objects", OBJECTS),
    ],
    hidden_cases=_hidden,
    hints=[
        "What does the next update depend on? Go through SmallRun._update line by line. Which names had a different "
        "value before the last update? One thing is not in the run: where do dropout's numbers come from?",
        "Three objects have a state_dict(). But a state_dict holds the tensors *themselves*, and the run continues to "
        "change them.",
        "Two restored runs must not share anything either: what does optimizer.load_state_dict keep?",
    ],
    may_use_package=True,  # the scripts train with the package
    tolerance=EXACT,
    seconds=30.0,  # the first optimizer of a process makes torch import its compiler
)


@Snapshot.variant
class Copied:
    def __init__(self, run: Any) -> None:
        self.model = deepcopy(run.model.state_dict())
        self.optimizer = deepcopy(run.optimizer.state_dict())
        self.place, self.step, self.chance = run.loader.state_dict(), run.step, torch.get_rng_state()

    def restore(self, run: Any) -> None:
        run.model.load_state_dict(self.model)
        run.optimizer.load_state_dict(deepcopy(self.optimizer))
        run.loader.load_state_dict(self.place)
        run.step = self.step
        torch.set_rng_state(self.chance)


Snapshot.slips(
    Copied,
    {
        "        run.optimizer.load_state_dict(deepcopy(self.optimizer))\n → ": "The first loss is right, but the "
        "second is not: the optimizer's moments start from 0, or belong to another run.",
        "        run.loader.load_state_dict(self.place)\n → ": "The restored run reads the text from another place: "
        "the loader has a state, too.",
        "        torch.set_rng_state(self.chance)\n → ": "Dropout draws different numbers after restoring: torch's "
        "generator has a state, too.",
        "torch.set_rng_state(self.chance) → torch.manual_seed(0)": "You seed the generator again. Keep its state: it "
        "has drawn numbers since it was seeded.",
        "torch.get_rng_state() → torch.initial_seed() ;; torch.set_rng_state → torch.manual_seed": "You keep the "
        "generator's seed. That starts its numbers from the beginning: keep its state.",
        "        run.step = self.step\n → ": "The step is not restored, so the schedule is at another learning rate.",
        "        run.model.load_state_dict(self.model)\n → ": "The weights are not restored. Everything else is.",
        "run.model.load_state_dict(self.model) → run.model.load_state_dict(self.model)\n        return": "You restore "
        "the weights only. The optimizer, the text, the step and the generator differ.",
        "deepcopy(run.model.state_dict()) → run.model.state_dict() ;; deepcopy(run.optimizer.state_dict()) → "
        "run.optimizer.state_dict() ;; deepcopy(self.optimizer) → self.optimizer": "You keep the tensors *themselves*, "
        "and the run continues to train them: copy the state_dict()s of model and optimizer when you take the "
        "snapshot.",
        "deepcopy(run.model.state_dict()) → run.model.state_dict()": "Your stored model state keeps changing: "
        "`state_dict()` returns the tensors themselves. Copy them.",
        "deepcopy(run.optimizer.state_dict()) → run.optimizer.state_dict() ;; deepcopy(self.optimizer) → "
        "self.optimizer": "Your stored optimizer state keeps changing: `state_dict()` returns the moments themselves. "
        "Copy them.",
        "deepcopy(self.optimizer) → self.optimizer": "Two restored runs share one optimizer state: load_state_dict "
        "keeps the tensors that you pass. Copy them when you restore, too.",
        "self.model = → self.run = run\n        self.model = ;; run.model.load_state_dict(self.model) → run = "
        "self.run\n        run.model.load_state_dict(self.model)": "You restore the run that you stored, not the run "
        "that `restore` receives.",
        "run.model.load_state_dict(self.model) → run.model = deepcopy(run.model)\n        "
        "run.model.load_state_dict(self.model)": "You replace the run's model. Its optimizer still updates the old "
        "one: load the state into the existing model.",
        "run.model.load_state_dict(self.model) → run.model, run.optimizer = deepcopy((run.model, "
        "run.optimizer))\n        run.model.load_state_dict(self.model)": "You put copies in the place of the run's "
        "model and optimizer. The objects stay: load the state into them.",
        "deepcopy(run.optimizer.state_dict()) → run.optimizer.state_dict()": "You copy the optimizer's state in "
        "`restore` only, and until then the run changes it. Copy it when you take the snapshot, too.",
        "deepcopy(run.model.state_dict()) → run.model.state_dict() ;; deepcopy(self.optimizer) → "
        "self.optimizer": "Your stored model state keeps changing: copy it when you take the snapshot. And two "
        "restored runs share one optimizer state: copy that in `restore`, too.",
        "deepcopy(run.model.state_dict()) → deepcopy(run).model.state_dict()": "`deepcopy(run)` raises an error: the "
        "loader holds a generator, which Python cannot copy. Copy what the `state_dict()`s return.",
        "run.step = self.step → run.step = 0": "You start the number of updates again, so the schedule is at another "
        "learning rate. Restore the kept number.",
        "        run.loader.load_state_dict(self.place)\n        run.step = self.step\n        "
        "torch.set_rng_state(self.chance)\n → ": "You restore weights and optimizer only. The place in the text, the "
        "step and the generator differ.",
    },
)
