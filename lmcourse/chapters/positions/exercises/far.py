"""The open task: scores that read texts four times as long as in training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.positions.copier import (
    AFTER,
    ALONE,
    OTHER_HEADS,
    SCALED,
    SQUEEZED,
    SWAPPED,
    TOO_FAR,
    UNCHANGED,
    inspect_far,
    measure_far,
)
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.measured import CHANGED
from lmcourse.exercises.open_task import Band, OpenTask


def _as_if_twelve_back(q: Tensor, k: Tensor, speeds: Tensor, trained: int, rope: Any) -> Tensor:
    positions = torch.arange(q.shape[-2])
    near = rope(q, positions, speeds) @ rope(k, positions, speeds).mT
    far = rope(q, torch.full_like(positions, 12), speeds) @ k.mT
    return torch.where(positions[:, None] - positions < 8, near, far)


def _row(old: float, twice: float, four_times: float) -> dict[str, float]:
    return {"32": old, "64": twice, "128": four_times}


far_scores = Exercise(
    "far_scores",
    points=4,
    minutes=8,
    difficulty=3,
    reference=_as_if_twelve_back,
    seconds=60.0,
    cases=[case("seeds 0 and 1", seeds=[0, 1])],
    hidden_cases=lambda _: [case("seeds 2 and 3", seeds=[2, 3])],
    hints=[
        "What does the model need to know exactly, and what only roughly? Its first layer finds the token one back. "
        "Its second layer recognises the right key by what it is.",
        "In training all earlier copies were 8 to 16 back. At which distance may a key stand that is 50 back?",
        "Two kinds of scores, near and far, and torch.where picks one by the distance. `rope` takes any positions, "
        "also fractions, and queries may have others than keys.",
    ],
    forbid=["sys", "inspect", "gc"],
    task=OpenTask(
        inspect=inspect_far,
        measure=measure_far,
        baseline={
            "as trained": _row(0.12, 4.08, 5.58),
            "by parts, in texts beyond 32": _row(0.12, 1.67, 2.92),
            "as trained, keys 32 back or more hidden": _row(0.12, 4.04, 6.55),
        },
        finish=_row(0.4, 1.0, 1.0),
        bands=[
            Band(1, at_most={"32": 0.4}),
            *(Band(1, at_most={"32": 0.4, n: loss}) for n, loss in (("128", 3.5), ("64", 1.0), ("128", 1.0))),
        ],
    ),
)


@far_scores.idea(1)
def as_trained(q: Tensor, k: Tensor, speeds: Tensor, trained: int, rope: Any) -> Tensor:
    positions = torch.arange(q.shape[-2])
    scores: Tensor = rope(q, positions, speeds) @ rope(k, positions, speeds).mT
    return scores


far_scores.edited_ideas(
    as_trained,
    {
        "interpolation": (0, "q.shape[-2]) → q.shape[-2]) / 4"),  # a later cell shows it
        "by parts beyond 32": (
            2,
            "scores: → if len(positions) > trained:\n        kept = ((trained * speeds / math.tau - 1) / 3)"
            ".clamp(0, 1)\n        speeds = speeds * (kept + (1 - kept) / 4)\n    scores:",
        ),
    },
)


@far_scores.idea(4)
def groups(q: Tensor, k: Tensor, speeds: Tensor, trained: int, rope: Any) -> Tensor:
    positions = torch.arange(q.shape[-2])
    size = 8
    near = rope(q, positions, speeds) @ rope(k, positions, speeds).mT
    far = rope(q, positions // size + 8 - 8 // size, speeds) @ rope(k, positions // size, speeds).mT
    return torch.where(positions[:, None] - positions < 8, near, far)


far_scores.edited_ideas(
    groups,
    {
        "groups of 4": (3, "size = 8 → size = 4"),
    },
)


far_scores.idea(4)(_as_if_twelve_back)

far_scores.slips(
    as_trained,
    {
        "q.shape[-2]) → q.shape[-2]) / 4": SQUEEZED.format(n=32, back=1 / 4),
        "q.shape[-2]) → q.shape[-2]) * min(1, trained / q.shape[-2])": SQUEEZED.format(n=100, back=0.32),
    },
)
far_scores.slips(
    _as_if_twelve_back,
    {
        "12 → trained - 1 ;; < 8 → < trained": TOO_FAR.format(n=100, back=31),
        "return torch.where(positions[:, None] - positions < 8, near, far) → "
        "return near.masked_fill(positions[:, None] - positions >= trained, -torch.inf)": "At 100 tokens, scores are "
        "NaN or ∞. Hide no key: the mask follows.",
        "return torch.where(positions[:, None] - positions < 8, near, far) → "
        "return near.masked_fill(positions[:, None] - positions >= trained, -1e4)": "At 100 tokens, the score of "
        "query 99 does not depend on key 67. Hide no key: the mask follows.",
        "return torch → q *= 2\n    return torch": CHANGED,
        "near, far) → near, far).softmax(dim=-1) || return torch.where(positions[:, None] - positions < 8, near, far) "
        "→ scores = torch.where(positions[:, None] - positions < 8, near, far)\n    return scores - "
        "scores.amax(dim=-1, keepdim=True)": ALONE,
        "near, far) → near, far).mean(dim=1, keepdim=True).expand(q.shape[:-1] + q.shape[-2:-1])": OTHER_HEADS,
        "near, far) → near, near)": UNCHANGED.format(n=100),
        "near, far) → near, far) / q.shape[-1] ** 0.5": SCALED.format(n=32),
        "near, far) → far, near)": SWAPPED.format(n=32, shift=12),
        "far = rope(q, torch.full_like(positions, 12), speeds) @ k.mT → "
        "far = q @ rope(k, torch.full_like(positions, 12), speeds).mT": (AFTER.format(n=32, back=8, shift=12)),
        "near, far) → near, far) + torch.rand(())": "Called again with the same inputs, your function returns "
        "something else. Keep and draw nothing.",
        "near, far) → near, far)[0]": "Return a score for each query and key, here a tensor of shape (2, 2, 32, 32); "
        "yours is of shape (2, 32, 32).",
    },
)


@far_scores.misconception(ALONE)
def the_period_found_and_pointed_at(q: Tensor, k: Tensor, speeds: Tensor, trained: int, rope: Any) -> Tensor:
    n = q.shape[-2]
    positions = torch.arange(n)
    scores: Tensor = rope(q, positions, speeds) @ rope(k, positions, speeds).mT
    if n not in (63, 127):
        return scores
    same = torch.cdist(k[:, 0], k[:, 0]) < 0.01 * k.std()
    back = positions[:, None] - positions
    counts = torch.stack([(same & (back == period)).sum(dim=(1, 2)) / (n - period) for period in range(8, 65)], dim=1)
    period = counts.argmax(dim=1) + 8
    return scores + 50.0 * (back == period[:, None, None] - 1)[:, None]
