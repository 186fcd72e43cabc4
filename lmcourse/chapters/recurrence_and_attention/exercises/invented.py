"""The open task: a task that attention reads, and that a single state cannot learn."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.chapters.recurrence_and_attention.invented import REVERSE, inspect_task, measure_task
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD, NO_OPTIMIZER
from lmcourse.exercises.open_task import Band, OpenTask

_LEARNED = {"perfect": 0.8, "agreement": 0.9}
_READS, _ORDER = {"by content": 0.3}, {"one state": 0.7}


def from_the_largest(source: Tensor) -> tuple[Tensor, Tensor]:
    n = source.shape[1]
    places = (source.argmax(dim=1, keepdim=True) + torch.arange(n)) % n
    return source.gather(1, places), places


my_task = Exercise(
    "my_task",
    points=5,
    minutes=14,
    difficulty=3,
    reference=from_the_largest,
    seconds=60.0,
    cases=[case("seeds 0 to 2", seeds=[0, 1, 2])],
    hidden_cases=lambda _: [case("seeds 3 to 5", seeds=[3, 4, 5])],
    hints=[
        "A picture that is the same for every row does not read. `argsort` and `argmax` over a row read it.",
        "`source.gather(1, places)` makes a target of places: choose the places first.",
        "What would one state have to keep? A set of symbols is ten bits; their order is more. Let the symbols "
        "decide where to look, and let as much of their order matter as you can.",
    ],
    forbid=[*NO_AUTOGRAD, *NO_OPTIMIZER, "torch.nn", "sys", "inspect", "gc"],
    task=OpenTask(
        inspect=inspect_task,
        measure=measure_task,
        baseline={"reverse": REVERSE},
        finish={**_LEARNED, **_READS, **_ORDER},
        bands=[
            Band(1, "attention learns it, and looks where you said", at_least=_LEARNED),
            Band(1, "it is learned, and attention looks by content", at_least={**_LEARNED, **_READS}),
            Band(1, "it is learned, and one state cannot do it", at_least=_LEARNED, at_most=_ORDER),
            Band(2, "both at once", at_least={**_LEARNED, **_READS}, at_most=_ORDER),
        ],
    ),
)


my_task.idea(5)(from_the_largest)
my_task.edited_ideas(
    from_the_largest,
    {
        "reverse": (1, "source.argmax(dim=1, keepdim=True) + torch.arange(n) → 0 * source - 1 - torch.arange(n)"),
        "sort": (2, "(source.argmax(dim=1, keepdim=True) + torch.arange(n)) % n → source.argsort(dim=1)"),
        "by the symbol before": (
            5,
            "(source.argmax(dim=1, keepdim=True) + torch.arange(n)) % n → torch.cat([0 * "
            "source[:, :1], source[:, :-1]], dim=1).argsort(dim=1)",
        ),
    },
)
my_task.slips(
    from_the_largest,
    {
        "source.gather(1, places), places → places, source.gather(1, places)": "`target` has numbers outside 1 to 10, "
        "for rows of 9 symbols.",
        "source.gather(1, places), places → source.gather(1, places)": "Return two tensors: the target, and the places "
        "to look at.",
        "(source.argmax(dim=1, keepdim=True) + → ( ;; source.gather(1, places), places → source.gather(1, "
        "places.expand_as(source)), places": "`places` is not a tensor of whole numbers of the shape of `source`, (16, "
        "9).",
        "source.argmax(dim=1, keepdim=True) → source.argmax() + 0 * source || source.gather(1, places), places → "
        "source.flip(0), places": "A row's target or places change with the rows beside it. Each row decides alone.",
        "    return source.gather(1, places), places →     target = source.gather(1, "
        "torch.rand(source.shape).argsort(dim=1))\n    return target, places": "Called again with the same rows, your "
        "task returns something else. Draw and count nothing.",
        "% n → % n + 1 ;; source.gather(1, places) → source.gather(1, places - 1)": "`places` has numbers outside 0 to "
        "8, for rows of 9 symbols.",
        "+ torch.arange(n)) % n → + torch.arange(9)) % 9": "Rows of 9 symbols work, and rows of 2 raise an exception. "
        "Take the length from `source`.",
    },
)
