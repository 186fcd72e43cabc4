"""Notebook 13: references against independent sources, and what its figures show."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse import plots
from lmcourse.chapters.training import exercises, figures
from lmcourse.chapters.training.ablation import Recipe
from lmcourse.chapters.training.figures.stored_runs import BATCHES, LADDER, REGULARIZED, RUNGS, SIDE_STEPS, TWO_TEXTS
from lmcourse.chapters.training.small_run import (
    NORMS,
    VOCAB_SIZE,
    PowerCutError,
    Settings,
    SmallRun,
    small_loader,
    small_model,
)
from lmcourse.data.batch import Batch
from lmcourse.data.loader import Loader
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.training.metrics import Record
from lmcourse.training.param_groups import parameter_groups
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import training_step
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import TrainingConfig
from tests.plots.figures import check_figure, said


def test_truncated_normals_deviation_matches_its_density() -> None:
    limit = 2.0
    x = torch.linspace(-limit, limit, 200_001, dtype=torch.float64)
    density = torch.exp(-(x**2) / 2)
    spread = ((x**2 * density).sum() / density.sum()).sqrt().item()
    assert f"is {spread:.3f} instead" in plots.alt_text(figures.truncated_normal(limit))


def test_deviations_match_torchs_initialisers() -> None:
    torch.manual_seed(0)
    rules = {
        "xavier": nn.init.xavier_normal_,
        "he": nn.init.kaiming_normal_,
        "lecun": lambda w: nn.init.kaiming_normal_(w, nonlinearity="linear"),
    }
    for rule, draw in rules.items():
        matrix = torch.empty(900, 600)
        draw(matrix)
        std, low, high = exercises.initial_bounds.reference(rule, 600, 900, 3.0)
        assert matrix.std().item() == pytest.approx(std, rel=0.01)
        nn.init.trunc_normal_(matrix, std=std, a=low, b=high)
        assert 2.9 < matrix.abs().max() / std <= 3


def _texts() -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    texts = []
    for rows, length, ignored in ((2, 8, 0), (1, 5, 4), (3, 2, 6)):
        tokens = torch.randint(9, (rows, length + 1), generator=generator)
        targets = tokens[:, 1:].clone()
        targets.flatten()[:ignored] = -100
        texts.append((tokens[:, :-1], targets.reshape(rows, length)))
    return texts


def test_accumulated_gradients_match_one_large_batch() -> None:
    model, texts = Transformer(find_model("nano").decoder.with_(vocab_size=9, context=8)).double(), _texts()
    mean, found = exercises.accumulate.reference(model, texts)
    padded = [F.pad(part, (0, 8 - part.shape[1]), value=-100) for text in texts for part in text]
    inputs, targets = torch.cat(padded[::2]).clamp(min=0), torch.cat(padded[1::2])
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    assert mean == pytest.approx(loss.item())
    for gradient, whole in zip(found, torch.autograd.grad(loss, list(model.parameters())), strict=True):
        torch.testing.assert_close(gradient, whole)


def test_dropout_matches_torchs_and_its_variance() -> None:
    torch.manual_seed(0)
    x = torch.randn(1000) + 3
    dropped = F.dropout(x, 0.3)
    torch.testing.assert_close(exercises.dropout.reference(x, dropped != 0, 0.3)[0], dropped)
    many = F.dropout(torch.full((200_000,), 2.0), 0.3)
    variance = exercises.dropout.reference(torch.tensor(2.0), torch.tensor(True), 0.3)[1]
    assert many.var().item() == pytest.approx(variance.item(), rel=0.01)


def test_a_run_matches_the_trainer(tmp_path: Path) -> None:
    """Both have the same groups, schedule, micro-batches and clipping; the trainer writes no snapshots of this kind."""
    tokens = torch.randint(VOCAB_SIZE, (400,), generator=torch.Generator().manual_seed(0))
    config = TrainingConfig(
        6,
        batch=2,
        seq_len=8,
        seed=0,
        grad_accum_steps=2,
        learning_rate=0.05,
        betas=(0.9, 0.999),
        schedule="wsd",
        warmup_steps=2,
        decay_steps=3,
        min_lr_ratio=0.0,
        weight_decay=2.0,
        grad_clip=0.2,
    )
    records: list[Record] = []
    Trainer(small_model(), config, tokens, tmp_path, callbacks=[records.append]).run()
    settings = Settings(6, 0.05, NORMS, 2, 3, micro_batches=2, weight_decay=2.0, limit=0.2)
    found = exercises.fit.reference(small_model(), Loader(tokens, 2, 8, seed=0, prefetch=0), settings)
    assert found == pytest.approx([record["loss"] for record in records], rel=1e-6)  # the trainer's loss is in fp32


def test_a_gap_in_a_snapshot_shows_within_two_losses() -> None:
    """As section 6 says: without moments or step the first loss is right, without any other part it is wrong."""
    right = _first_two(exercises.Snapshot.reference)
    moments = _first_two_without("the optimizer's moments start from 0")
    assert moments[0] == right[0]
    assert moments[1] != right[1]
    assert _first_two_without("The step is not restored")[0] == right[0]
    for words in ("the text from another place", "Dropout draws different numbers", "The weights are not restored"):
        assert _first_two_without(words)[0] != right[0], words


def _first_two_without(words: str) -> list[float]:
    [wrong] = (wrong for wrong in exercises.Snapshot.misconceptions if words in wrong.sentence)
    return _first_two(wrong.answer)


def _first_two(snapshot: object) -> list[float]:
    run, other = SmallRun(), SmallRun(seed=1)
    run.train(3)
    kept = snapshot(run)  # type: ignore[operator]
    run.train(2)
    kept.restore(other)
    return other.train(2)


def test_larger_batches_take_fewer_updates_and_more_windows() -> None:
    for (few, more_updates), (many, fewer_updates) in pairwise(BATCHES.items()):
        assert sum(more_updates) > sum(fewer_updates)
        assert few * sum(more_updates) < many * sum(fewer_updates)


def test_stored_runs_have_a_result_for_each_recipe() -> None:
    assert list(LADDER) == [*RUNGS, *SIDE_STEPS]
    assert list(TWO_TEXTS) == [(text, name) for text in ("once", "fifteen times") for name in REGULARIZED]
    assert all(len(ends) == 3 for ends in LADDER.values())
    names = list(RUNGS)
    for before, after in pairwise(names):
        settings: list[dict[str, Any]] = [vars(RUNGS[name]) for name in (before, after)]
        assert sum(settings[0][key] != settings[1][key] for key in settings[0]) == 1, "one choice at a time"
    assert "yours" not in said(figures.ladder("all", {"yours": [3.0]}))


def test_figures_of_runs_show_the_measured_numbers() -> None:
    assert "a 5e+20; b 1e+00" in said(figures.spread_by_layer({"a": [1.0, 22.0, 5e20], "b": [1.0, 0.9, 1.1]}))
    resumed = {"all": [0.0, 0.0], "moments": [0.0, 0.1], "place": [0.2, 0.1]}
    told = "all: equal to the last bit; moments: wrong from step 2 on; place: wrong from step 1 on"
    assert told in said(figures.resumed_runs(resumed))
    race = {"AdamW": [(0.1, 6.2), (0.2, 5.1)], "Muon": [(0.2, 6.2), (0.4, 4.1)]}
    assert said(figures.race(race)).endswith("Muon ends lowest")
    assert "0.020 at step 0, 1.000 at step 100, 0.123 at step 199" in plots.alt_text(figures.schedule())
    check_figure(figures.two_texts())
    assert "width 64: lowest 0.94 at 0.008" in said(figures.sweep(widest=64))
    assert "width 128: lowest 0.67 at 0.016" in said(figures.sweep(scaled=True))
    moved = {"one rate": {16: 1.4, 32: 2.0, 64: 3.1}, "factors": {16: 2.1, 32: 2.0, 64: 1.6}}
    assert said(figures.moved_logits(moved)).endswith("one rate: from 1.4 to 3.1; factors: from 2.1 to 1.6")


def test_a_loader_fails_when_power_is_lost() -> None:
    loader, whole = small_loader(2, fails_after=1), small_loader(2)
    assert torch.equal(next(loader).inputs, next(whole).inputs)
    with pytest.raises(PowerCutError):
        next(loader)


def test_groups_match_the_trainer() -> None:
    model = Recipe(qk_norm=True).model(20, seed=0)
    names = {id(p): name for name, p in model.named_parameters()}
    expected = [sorted(names[id(p)] for p in group["params"]) for group in parameter_groups(model, 0.1)]
    shapes = {name: list(p.shape) for name, p in model.named_parameters()}
    norms = [name for name in shapes if "norm" in name]
    assert len(norms) == 9
    assert [*exercises.decay_groups.reference(shapes, norms)] == expected


def test_a_step_matches_the_trainer() -> None:
    inputs, targets = torch.tensor([[0, 3, 1]]), torch.tensor([[3, 1, 2]])
    weights = []
    for ours in (True, False):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(4, 8), nn.Linear(8, 4))
        sgd = torch.optim.SGD(model.parameters(), lr=1.0)
        for _ in range(3):
            if ours:
                scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
                exercises.train_step.reference(model, inputs, targets, sgd, scaler, 0.1)
            else:
                precision = MixedPrecision("fp32", torch.device("cpu"))
                training_step(model, [Batch(inputs, targets)], sgd, precision, grad_clip=0.1)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(*weights)
