"""Notebook 13: references against independent sources, and what its figures show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse import plots
from lmcourse.chapters.training import climb, exercises, figures, strangers
from lmcourse.chapters.training.small_run import SmallRun
from lmcourse.chapters.training.writing import write_help
from lmcourse.data.batch import Batch
from lmcourse.data.loader import Loader
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.training.ablation import Recipe
from lmcourse.training.metrics import Record
from lmcourse.training.param_groups import parameter_groups
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.run_settings import Settings
from lmcourse.training.small_model import (
    VOCAB_SIZE,
    PowerCutError,
    ragged_loader,
    small_loader,
    small_model,
)
from lmcourse.training.step import training_step
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import TrainingConfig


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
    settings = Settings(6, 0.05, 2, 3, micro_batches=2, weight_decay=2.0, limit=0.2)
    found = exercises.fit.reference(small_model(), Loader(tokens, 2, 8, seed=0, prefetch=0), settings)
    assert found == pytest.approx([record["loss"] for record in records], rel=1e-6)  # the trainer's loss is in fp32


def test_a_gap_in_a_snapshot_shows_within_two_losses() -> None:
    """As section 2 says: without moments or step the first loss is right, without any other part it is wrong."""
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


def test_settings_keep_their_own_optimizer_and_schedule_in_copies() -> None:
    settings = Settings(10, 0.5, warmup=4, decay=2)
    assert [settings.factor(step) for step in (0, 3, 8, 9)] == [0.25, 1.0, 1.0, 0.5]
    copied = replace(settings, rate=0.1, steps=4, warmup=0)
    assert copied.factor(3) == 0.5
    groups = copied.optimizer(small_model()).param_groups
    assert [(group["lr"], group["weight_decay"], len(group["params"])) for group in groups] == [
        (0.1, 0.1, 2),
        (0.1, 0.0, 3),
    ]
    assert replace(settings, factor=lambda step: 7.0).factor(1) == 7.0


def test_many_small_batches_of_ragged_windows_are_one_large() -> None:
    one, many = next(ragged_loader(4)), ragged_loader(1)
    assert torch.equal(one.targets, torch.cat([next(many).targets for _ in range(4)]))
    assert [int((row != -100).sum()) for row in one.targets] == [2, 8, 8, 2]
    assert strangers.resumed_without("chance")[0] > 0


def test_every_fault_is_found_with_every_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    suspicious = exercises.suspicious.reference
    for fault in strangers.FAULTS:
        monkeypatch.setattr(strangers, "_patient", lambda _, fault=fault: ("Adamax", fault))
        assert suspicious(strangers.stranger(1)), fault
    for optimizer in strangers.OPTIMIZERS:
        monkeypatch.setattr(strangers, "_patient", lambda _, optimizer=optimizer: (optimizer, ""))
        assert not suspicious(strangers.stranger(1)), optimizer
        assert strangers.told(1, False) == "nothing found, rightly"
        monkeypatch.setattr(strangers, "_patient", lambda _, optimizer=optimizer: (optimizer, "clipped apart"))
        assert suspicious(strangers.stranger(1)), optimizer
    assert "it breaks promise 1" in strangers.told(1, False)


def test_a_faulty_trainers_curve_ends_beside_its_sound_twin() -> None:
    """As section 4 says; of all faults, a plot shows only gradients that are never cleared."""
    ends = {number: sum(losses[-20:]) / 20 for number, losses in strangers.curves().items()}
    for faulty, sound in ((1, 7), (3, 4), (6, 5), (8, 2), (10, 9)):
        assert ends[faulty] == pytest.approx(ends[sound], rel=0.02)
    assert ends[9] == pytest.approx(1.23, abs=0.02)
    settings = Settings(150, rate=0.02, warmup=10, decay=40, micro_batches=2)
    assert 1.5 < sum(strangers.stranger(11)(small_model(), ragged_loader(2), settings)[-20:]) / 20 < 1.65


class Own(nn.Module):
    """A model that a recipe may make, with a trick of its own."""

    def __init__(self, trick: str = "") -> None:
        super().__init__()
        self.trick, self.embedding, self.head = trick, nn.Embedding(512, 32), nn.Linear(32, 512)
        self.seen = torch.zeros(512)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        if self.trick == "future":
            x = x.roll(-1, dims=1)
        if self.trick == "rows":
            x = x + x.mean(0)
        if self.trick == "memory" and self.training:
            self.seen += torch.bincount(tokens.flatten(), minlength=512)
        logits: Tensor = self.head(x) + self.seen.clamp(min=1).log()
        return logits[..., :8] if self.trick == "logits" else logits


def _own(trick: str = "", steps: int = 3) -> Any:
    def recipe(meter: climb.Meter, seed: int) -> Any:
        loader, settings = meter(16, 64, seed), Settings(steps, 0.01)
        model: nn.Module = Own(trick)
        if trick == "large":
            model = nn.Sequential(nn.Embedding(512, 200), nn.Linear(200, 512))
        if trick == "other loader":
            loader = climb.Meter()(16, 64, seed)
        if trick == "knows":
            with torch.no_grad():
                counts = torch.bincount(climb.texts()[0], minlength=512).float()
                model.head.bias.copy_((counts + 1).log())  # type: ignore[union-attr, operator]
        if trick == "replay":
            batch = next(loader)
            F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()  # type: ignore[no-untyped-call]
        if trick == "spent":
            settings = Settings(201, 0.01)
        if trick == "optimizer":
            settings = Settings(3, 0.01, optimizer=torch.optim.SGD(model.parameters()))  # type: ignore[arg-type]
        return (model, loader) if trick == "two" else (model, loader, settings)

    return recipe


TRICKS = {
    "two": climb.THREE,
    "other loader": climb.THREE,
    "large": climb.MANY.format(205_312, 172_416),
    "optimizer": climb.FUNCTIONS,
    "spent": climb.LONG.format(205_824, 204_800),
    "logits": climb.LOGITS.format((8, 64, 8)),
    "knows": "it knows something already",
    "future": climb.FUTURE,
    "rows": climb.ROWS,
    "memory": climb.MEMORY,
    "replay": climb.GRADIENTS,
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_recipe_must_keep_to_the_rules(trick: str) -> None:
    with pytest.raises(Unfit, match=re.escape(TRICKS[trick])):
        climb.measure_recipe(_own(trick), 0)


def test_a_recipe_is_trained_as_its_settings_say() -> None:
    found = climb.measure_recipe(_own(), 1)["loss"]
    torch.manual_seed(1)
    model, loader, settings = _own()(climb.Meter(), 1)
    strangers.train(model, loader, settings)
    assert climb.held_out_loss(model) == pytest.approx(found, abs=1e-4)
    with pytest.raises(Unfit, match="handed out its 204,800"):
        strangers.train(model, loader, Settings(198, 0.0))
    assert write_help(Own(), 3).startswith("Return the ")
