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

FIVE, OTHERS = "of the five", "of ten others"


def five_measurements(fit: Any) -> bool:
    def ran(model: Any, start: Any = None, batch: int = 2, **changes: Any) -> Any:
        norms = []

        def report(step: int, loss: float) -> None:
            norms.append(sum(p.grad.square().sum() for p in model.parameters()) ** 0.5)

        settings = Settings(**{"steps": 8, "rate": 0.02, "warmup": 2, "decay": 2, "every": 2, **changes}, report=report)
        losses = fit(model, ragged_loader(batch), settings, start)
        return torch.cat([p.detach().flatten() for p in model.parameters()]), losses, max(norms), settings.snapshots

    many, _, norm, _ = ran(small_model(), batch=1, micro_batches=4, limit=0.01)
    apart = (many - ran(small_model(), batch=4, limit=0.01)[0]).abs().max()
    whole, losses, _, kept = ran(small_model(dropout=0.25))
    resumed, rest, *_ = ran(small_model(1, dropout=0.25), kept[0])
    resumes = rest == losses[2:] and torch.equal(resumed, whole)

    before = torch.cat([p.detach().flatten() for p in small_model().parameters()])
    update = {"steps": 1, "decay": 0}
    slow, fast, strong = (
        ran(small_model(), warmup=n, weight_decay=d, **update)[0] for n, d in ((4, 0), (0, 0), (0, 20))
    )
    quarter = (slow - before).norm() / (fast - before).norm()
    decays = (strong - fast)[96:120].abs().max()  # the norm's scale and bias
    return bool(apart > 1e-6 or not resumes or decays > 1e-6 or norm > 0.0101 or abs(quarter - 0.25) > 1e-3)


suspicious = Exercise(
    "suspicious",
    points=4,
    minutes=14,
    difficulty=3,
    reference=five_measurements,
    seconds=60.0,
    may_use_package=True,  # it trains small models of the package
    cases=[case("trainers 1 to 22", first=1)],
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
        finish={FIVE: 5, OTHERS: 8},
        bands=[
            Band(1, "it accuses a trainer that breaks a promise, and none that keeps all five"),
            Band(1, at_least={FIVE: 3}),
            Band(1, at_least={FIVE: 5}),
            Band(1, at_least={OTHERS: 8}),
        ],
    ),
)

suspicious.idea(4)(five_measurements)

ALL = "apart > 1e-6 or not resumes or decays > 1e-6 or norm > 0.0101 or abs(quarter - 0.25) > 1e-3"

suspicious.edited_ideas(
    five_measurements,
    {
        "two measurements fewer": (2, " or norm > 0.0101 or abs(quarter - 0.25) > 1e-3 → "),
        "the norm not measured": (3, " or norm > 0.0101 → "),
        "resuming alone": (1, f"{ALL} → not resumes"),
        "a late snapshot without dropout, and less": (
            3,
            "small_model(dropout=0.25) → small_model() ;; small_model(1, dropout=0.25) → small_model(1) ;; "
            "kept[0] → kept[2] ;; losses[2:] → losses[6:] ;; norm > 0.0101 or  →  ;; abs(quarter - 0.25) > 1e-3 → "
            "quarter < 0.2",
        ),
    },
)


suspicious.slips(
    five_measurements,
    {
        "apart > 1e-6 → apart >= 0": ACCUSED.format(2),
        f"bool({ALL}) → sum(fit(small_model(), ragged_loader(), Settings(150, 0.02, 10, 40))[-20:]) / 20 > 0.9": (
            ACCUSED.format(9)
        ),
        f"bool({ALL}) → False": NOBODY,
        "return bool(apart → bool(apart": NO_VERDICT.format("None"),
    },
)
