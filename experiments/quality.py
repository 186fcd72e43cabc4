"""Measure CPU seconds to a given loss, and the loss after given seconds, for our recipes and others.

    python experiments/quality.py                     # the race with two seeds: at least half an hour on one core
    python experiments/quality.py nano --seeds 0      # one preset, one seed

Other programs take part if variables name their clones: see `race_peers.py` for their set-up.

Losses are comparable because text, characters and windows are the same: Python's help texts (python-docs) as
characters, with a tenth of the documents held out. Every model reads windows of 64 characters and is evaluated on the
whole held-out part in windows that do not overlap. The loss is in nats per character, averaged over all but the first
of each window.

Seconds are CPU seconds of the process on one thread, from the first step to the last. Our evaluations are excluded;
nanoGPT's own (with `--eval_iters=1`, a two-hundredth) are not. Recipes are `lmcourse train --recipe` with some changed
settings. Prints every curve, a table with the seconds to nanoGPT's final loss and, as the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from race import WINDOW, Clock, Curve, Text, read_text, seconds_until
from race_peers import PEERS

from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.training.command.settings import RecipeName, new_run
from lmcourse.training.run_config import RunConfig
from lmcourse.training.trainer import Trainer


@dataclass(frozen=True)
class Recipe:
    """Settings for `lmcourse train --recipe`; windows and text are the same for all recipes."""

    recipe: RecipeName
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, seed: int) -> RunConfig:
        text = {"tokenizer": "characters", "seq_len": WINDOW, "seed": seed}
        here = {"batch": 12, "precision": "fp32", "checkpoint_every": None}
        return new_run({**text, **here, **self.settings}, self.recipe)


FAST = {"steps": 380, "rotary_theta": 1000.0}
LARGER = {"rotary_theta": 1000.0, "batch": 16, "learning_rate": 0.015, "muon_learning_rate": 0.015}
PLAIN = {"steps": 450, "betas": (0.9, 0.95), "qk_norm": False, "untied": False, "zero_outputs": False}
"""Muon and its schedule with an unchanged preset."""
PARTS: dict[str, dict[str, Any]] = {
    "untied": {"untied": True},
    "zero-outputs": {"zero_outputs": True},
    "QK-norm": {"qk_norm": True},
    "relu2": {"feed_forward": "relu2"},
    "theta": {"rotary_theta": 1000.0},
    "value-residual": {"value_residual": True},
    "logit-cap": {"logit_cap": 15.0},
}
FOUR = {name: value for part in ("untied", "zero-outputs", "QK-norm", "theta") for name, value in PARTS[part].items()}

RACE = {
    "nano": Recipe("speedrun", FAST),
    "ours-30": Recipe("speedrun", {**LARGER, "layers": 3, "steps": 700}),
    "ours-60": Recipe("speedrun", {**LARGER, "preset": "micro", "d_model": 64, "steps": 1050}),
    "ours-150": Recipe("speedrun", {**LARGER, "preset": "micro", "d_model": 96, "steps": 1480}),
}
"""The recipes that reach nanoGPT's loss fastest, and the lowest loss in 30, 60 and 150 seconds of a busy machine."""

RECIPES = {
    **RACE,
    "adamw-nano": Recipe("adamw", {"steps": 900}),
    "plain": Recipe("speedrun", PLAIN),
    **{f"plain-with-{name}": Recipe("speedrun", {**PLAIN, **part}) for name, part in PARTS.items()},
    "four": Recipe("speedrun", {**PLAIN, **FOUR}),
    "four-with-relu2": Recipe("speedrun", {**PLAIN, **FOUR, **PARTS["relu2"]}),
    "four-with-relu2-value-residual": Recipe(
        "speedrun", {**PLAIN, **FOUR, **PARTS["relu2"], **PARTS["value-residual"]}
    ),
}
MOMENTUM = {**PLAIN, **FOUR, **PARTS["relu2"], "muon_momentum": 0.95}
for _iterations in (3, 4, 5):
    RECIPES[f"momentum-95-iterations-{_iterations}"] = Recipe("speedrun", {**MOMENTUM, "muon_iterations": _iterations})


def race(recipe: Recipe, text: Text, seed: int, points: int) -> Curve:
    """Run our trainer with `points` evaluations."""
    run = recipe.run(seed)
    torch.manual_seed(seed)
    model = Transformer(run.model_config(text.vocab_size))
    initialize(model, zero_outputs=run.model.zero_outputs)
    curve: Curve = []
    due = {round(run.training.steps * point / points) for point in range(1, points + 1)}

    def look(record: dict[str, Any]) -> None:
        if record["step"] in due:
            curve.append(clock.outside(lambda: text.loss(model)))

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model, run.training, text.training, Path(folder), callbacks=[look])
        clock = Clock()
        trainer.run()
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    what = f"of {', '.join([*RECIPES, *PEERS])}; by default the first four and all peers that are there"
    parser.add_argument("recipe", nargs="*", help=what)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--points", type=int, default=4, help="evaluations of a run")
    parser.add_argument("--target", type=float, help="loss to reach; that at which nanoGPT ends by default")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = arguments.recipe or [*RACE, *(name for name, peer in PEERS.items() if peer.clone())]
    for name in chosen:
        if name in PEERS and PEERS[name].clone() is None:
            parser.error(f"{name} needs {PEERS[name].variable}")
    text = read_text()
    print(f"{len(text.training):,} characters to learn, {text.vocab_size} different ones", flush=True)
    curves: dict[str, list[Curve]] = {}
    for seed in arguments.seeds:
        for name in chosen:
            if name in PEERS:
                curve = PEERS[name].curve(text, seed, arguments.points)
            else:
                curve = race(RECIPES[name], text, seed, arguments.points)
            curves.setdefault(name, []).append(curve)
            print(f"{name:34} seed {seed}  " + "  ".join(f"{t:.1f} s {loss:.3f}" for t, loss in curve), flush=True)
    target = arguments.target
    if target is None and "nanogpt" in curves:
        target = mean(curve[-1][1] for curve in curves["nanogpt"])
    print_table(curves, target)
    recipes = {name: asdict(RECIPES[name]) for name in curves if name in RECIPES}
    print(json.dumps({"target": target, "recipes": recipes, "curves": curves}))


def print_table(curves: dict[str, list[Curve]], target: float | None) -> None:
    print(f"\n{'recipe':34} {'losses at the end':>20} {'CPU seconds':>14}   until {target or 0:.3f}")
    for name, found in curves.items():
        losses = ", ".join(f"{curve[-1][1]:.3f}" for curve in found)
        seconds = ", ".join(f"{curve[-1][0]:.0f}" for curve in found)
        reached = [] if target is None else [seconds_until(curve, target) for curve in found]
        print(
            f"{name:34} {losses:>20} {seconds:>14}   "
            + ", ".join("never" if t is None else f"{t:.0f}" for t in reached)
        )


if __name__ == "__main__":
    main()
