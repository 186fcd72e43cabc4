"""The exercise on a probe that tells whether a trainer keeps its promises."""

from __future__ import annotations

from typing import Any

import torch

from lmcourse.chapters.training.strangers import ACCUSED, NO_VERDICT, NOBODY, inspect_suspicious, measure_suspicious
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask
from lmcourse.training.run_settings import Settings
from lmcourse.training.small_model import ragged_loader, small_model

FIVE, OTHERS = "of the five", "of eight others"


def five_measurements(fit: Any) -> bool:
    def ran(model: Any, loader: Any, start: Any = None, **changes: Any) -> Any:
        weights, norms = [torch.cat([p.detach().flatten() for p in model.parameters()])], []

        def report(step: int, loss: float) -> None:
            weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
            norms.append(sum(p.grad.square().sum() for p in model.parameters()) ** 0.5)

        settings = Settings(**{"steps": 8, "rate": 0.02, "warmup": 2, "decay": 2, "every": 2, **changes}, report=report)
        return fit(model, loader, settings, start), weights, norms, settings.snapshots

    losses, many, *_ = ran(small_model(), ragged_loader(1), limit=0.1, micro_batches=4)
    other_losses, one, *_ = ran(small_model(), ragged_loader(4), limit=0.1)
    apart = (many[-1] - one[-1]).abs().max() + max(abs(a - b) for a, b in zip(losses, other_losses, strict=True))

    losses, whole, _, kept = ran(small_model(dropout=0.25), ragged_loader())
    rest, resumed, *_ = ran(small_model(1, dropout=0.25), ragged_loader(), kept[0])
    resumes = rest == losses[2:] and torch.equal(resumed[-1], whole[-1])

    strong, weak = (small_model(), small_model())
    ran(strong, ragged_loader(), weight_decay=20.0, steps=1, warmup=0, decay=0)
    ran(weak, ragged_loader(), weight_decay=0.0, steps=1, warmup=0, decay=0)
    decays = max((a - b).abs().max() for a, b in zip(strong[1].parameters(), weak[1].parameters(), strict=True))

    _, _, norms, _ = ran(small_model(), ragged_loader(), limit=0.01)

    options = {"weight_decay": 0.0, "steps": 4, "decay": 0}
    slow, fast = (ran(small_model(), ragged_loader(), warmup=n, **options)[1] for n in (4, 0))
    quarter = (slow[1] - slow[0]).norm() / (fast[1] - fast[0]).norm()
    return bool(apart > 1e-6 or not resumes or decays > 1e-6 or max(norms) > 0.0101 or abs(quarter - 0.25) > 1e-3)


suspicious = Exercise(
    "suspicious",
    points=4,
    minutes=14,
    difficulty=3,
    reference=five_measurements,
    seconds=60.0,
    may_use_package=True,  # it trains small models of the package
    cases=[case("trainers 1 to 20", first=1)],
    hidden_cases=lambda _: [case("the same faults, other optimizers", first=101)],
    hints=[
        "Each trainer has another optimizer, so no loss tells whether it is right. Which two calls of `fit` must give "
        "the same weights, whatever the optimizer? Each promise is such a pair, or a number.",
        "Promise 1: one batch of four windows, or four batches of one. A limit that binds shows more. Promise 2: a "
        "run, and another that begins from one of its snapshots. Which snapshot, and with dropout or without?",
        "`report` is called after each update: look at the model there. Its gradients have the norm of promise 4, and "
        "the distance from the first weights is the update of promise 5. For promise 3 compare two weight decays.",
    ],
    task=OpenTask(
        inspect=inspect_suspicious,
        measure=measure_suspicious,
        baseline={"a loss above 1.4 at the end": {FIVE: 0, OTHERS: 1}},
        finish={FIVE: 5, OTHERS: 6},
        bands=[
            Band(1, "it accuses a trainer that breaks a promise, and none that keeps all five"),
            Band(1, at_least={FIVE: 3}),
            Band(1, at_least={FIVE: 5}),
            Band(1, at_least={OTHERS: 6}),
        ],
    ),
)

suspicious.idea(4)(five_measurements)

suspicious.edited_ideas(
    five_measurements,
    {
        "two measurements fewer": (3, " or max(norms) > 0.0101 or abs(quarter - 0.25) > 1e-3 → "),
        "resuming alone": (1, "apart > 1e-6 or not resumes or decays > 1e-6 or max(norms) > 0.0101 or "
                              "abs(quarter - 0.25) > 1e-3 → not resumes"),
        "a late snapshot without dropout, and less": (
            3,
            "small_model(dropout=0.25) → small_model() ;; small_model(1, dropout=0.25) → small_model(1) ;; "
            "kept[0] → kept[2] ;; losses[2:] → losses[6:] ;; max(norms) > 0.0101 or  →  ;; "
            "abs(quarter - 0.25) > 1e-3 → quarter < 0.2",
        ),
    },
)  # fmt: skip


suspicious.slips(
    five_measurements,
    {
        "apart > 1e-6 → apart >= 0": ACCUSED.format(2),
        "bool(apart > 1e-6 or not resumes or decays > 1e-6 or max(norms) > 0.0101 or → bool(max(norms) < 0 and": NOBODY,
        "return bool(apart → bool(apart": NO_VERDICT.format("a NoneType"),
    },
)


@suspicious.misconception(ACCUSED.format(9))
def worse_than_others(fit: Any) -> bool:
    losses: list[float] = fit(small_model(), ragged_loader(), Settings(150, rate=0.02, warmup=10, decay=40))
    return sum(losses[-20:]) / 20 > 0.9
