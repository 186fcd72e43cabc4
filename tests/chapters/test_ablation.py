"""Short runs that differ in one choice, and the smallest run with all the parts of a real one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from lmcourse.chapters.training.small_run import SmallRun
from lmcourse.nn.norm import Norm
from lmcourse.training.ablation import Recipe, documentation, run_recipe
from lmcourse.training.small_model import VOCAB_SIZE


def test_a_recipe_changes_only_its_own_settings() -> None:
    plain, changed = Recipe().model(50, seed=0), Recipe(tied=False, qk_norm=True, dropout=0.3).model(50, seed=0)
    assert sum(p.numel() for p in changed.parameters()) - sum(p.numel() for p in plain.parameters()) == 50 * 64 + 4 * 16
    assert [sum(isinstance(m, Norm) for m in model.modules()) for model in (plain, changed)] == [5, 9]
    for model, chances in ((plain, {0.0}), (changed, {0.3})):
        assert {m.p for m in model.modules() if isinstance(m, nn.Dropout)} == chances
    training = [Recipe(schedule=schedule).training_config(3) for schedule in ("constant", "cosine", "wsd")]
    assert [(config.seed, config.decay_steps, config.min_lr_ratio) for config in training] == [
        (3, 0, 0.0),
        (3, 0, 0.1),
        (3, 40, 0.1),
    ]


def test_a_short_run_learns_is_measured_four_times_and_is_the_same_twice() -> None:
    text = torch.arange(3000) % 7
    recipe = Recipe(steps=8, warmup_steps=2)
    records = run_recipe(recipe, 7, text, text[:200], seed=1)
    assert [record["step"] for record in records if "validation_loss" in record] == [2, 4, 6, 8]
    assert records[-1]["validation_loss"] < records[1]["validation_loss"] - 0.3
    again = run_recipe(recipe, 7, text, text[:200], seed=1)
    assert [record["loss"] for record in again] == [record["loss"] for record in records]
    with pytest.raises(ValueError, match="window"):
        run_recipe(recipe, 7, text[:20], text, seed=1)


def test_the_small_run_learns_and_depends_on_every_part_of_its_state() -> None:
    run = SmallRun()
    losses = run.train(40)
    assert run.step == 40
    assert sum(losses[-5:]) / 5 < losses[0] - 0.5
    assert sum(p.numel() for p in run.model.parameters()) == VOCAB_SIZE * 12 * 2 + VOCAB_SIZE
    assert SmallRun().train(5) == losses[:5]
    assert SmallRun(seed=1).train(1) != losses[:1]
    stepped = SmallRun()
    stepped.step = 20
    assert stepped.train(2)[0] == losses[0]
    assert SmallRun(optimizer=torch.optim.SGD).train(2)[1] != losses[1]


def test_a_recipe_of_the_learner_runs_in_its_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell of Further F, with a short recipe in place of None."""
    monkeypatch.setenv("LMCOURSE_DEVICE", "cpu")  # the cell sets it, too
    source = Path("solutions/13-training/training.py").read_text(encoding="utf-8")
    [cell] = (cell for cell in source.split("\n# %%") if "own_recipe = None" in cell)
    names = {"Recipe": Recipe, "run_recipe": run_recipe, "documentation": documentation, "os": os}
    exec(cell.replace("own_recipe = None", "own_recipe = Recipe(steps=4, schedule='wsd', warmup_steps=2)"), names)
    assert 4 < float(re.findall(r"[0-9]\.[0-9]{2}", capsys.readouterr().out)[0]) < 6.5
