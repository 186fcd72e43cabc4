"""The exercise on heads whose results are replaced."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers


def _replaced(results: Tensor, how: dict[int, str], mean: Tensor, other: Tensor) -> Tensor:
    """Choose among four tensors of the same shape, head by head."""
    choices = {"zero": torch.zeros_like(results), "mean": mean[None, :, None].expand_as(results), "other": other}
    heads = [choices.get(how.get(head, ""), results)[:, head] for head in range(results.shape[1])]
    return torch.stack(heads, dim=1)


def _drawn(name: str, random: Random, how: dict[int, str], b: int, h: int, s: int, d: int) -> Case:
    results, other = (integers(random, b, h, s, d, low=1 + 50 * i, high=49 + 50 * i) for i in range(2))
    mean = integers(random, h, d, low=-49, high=-1)
    return case(name, results, how, mean, other)


def _stays(how: dict[int, str]) -> Case:
    lines = f"replaced(results, {how}, mean, other)\nresults\nother"
    drawn = _drawn("", Random(5), how, 1, 2, 2, 2)
    results, _, mean, other = drawn.args
    return script("the arguments stay as they are", lines, results=results, mean=mean, other=other)


def _hidden(random: Random) -> list[Case]:
    return [
        _drawn("no head", random, {}, 2, 2, 1, 3),
        _drawn("all three ways at once", random, {3: "other", 0: "mean", 1: "zero"}, 2, 4, 2, 3),
        _drawn("other shapes", random, {2: "mean", 1: "mean"}, 3, 3, 2, 1),
        _drawn("other shapes", random, {0: "other", 2: "other"}, 3, 3, 3, 3),
        _drawn("other shapes", random, {1: "zero", 0: "zero"}, 1, 3, 2, 2),
        _stays({1: "mean", 0: "other"}),
    ]


replaced = Exercise(
    "replaced",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_replaced,
    cases=[
        _drawn("one head set to zero", Random(1), {1: "zero"}, 2, 2, 2, 2),
        _drawn("one head set to its mean", Random(2), {0: "mean"}, 1, 3, 2, 2),
        _drawn("one head from the other texts", Random(3), {2: "other"}, 2, 3, 1, 2),
        _drawn("three heads, three ways", Random(4), {0: "other", 1: "mean", 2: "zero"}, 2, 3, 2, 2),
        _drawn("no head", Random(6), {}, 1, 2, 2, 2),
        _stays({0: "zero", 1: "other"}),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with a clone of `results`; go through `how.items()`, and write into the clone at [:, head].",
        'What is written: 0 for "zero", and for "other" the same head of `other`, [:, head].',
        "`mean[head]` has the shape (d_head,). It fits into the clone's [:, head], (b, s, d_head), as it is.",
    ],
)


@replaced.variant
def on_a_clone(results: Tensor, how: dict[int, str], mean: Tensor, other: Tensor) -> Tensor:
    results = results.clone()
    for head, way in how.items():
        if way == "zero":
            results[:, head] = 0
        elif way == "mean":
            results[:, head] = mean[head]
        else:
            results[:, head] = other[:, head]
    return results


_IN_PLACE = (
    "You write into the argument. The next measurement would start from heads that are already cut: work on a clone."
)
_FIRST_AXIS = "You index the first axis, the texts. The heads are the second axis: [:, head]."
_OWN_MEAN = "You average the results that you were given. The mean over many other texts is an argument: `mean`."
replaced.slips(
    on_a_clone,
    {
        "results = results.clone() → results = results": _IN_PLACE,
        "    results = results.clone() →     results, mean = results.clone(), mean.mean(dim=1)": "You put in one "
        "number for a head, the mean over its features. Its mean is a vector: a number for each feature.",
        "= mean[head] → = results[:, head].mean(dim=-1, keepdim=True)": "You average over the features of each word. "
        "The mean of a head over many texts is an argument: `mean[head]`, a number for each feature.",
        "= mean[head] → = mean": "You write all heads' means into one head. Take the row of this head, `mean[head]`.",
        "= mean[head] → = results[:, head].mean(dim=(0, 1)) || = mean[head] → = results[:, head].mean(dim=0) || "
        "= mean[head] → = results[:, head].mean(dim=1, keepdim=True)": _OWN_MEAN,
        "= mean[head] → = mean[0]": "You put the mean of head 0 into every head. Each head has its own row of `mean`.",
        "= mean[head] → = mean.mean(dim=0)": "You average over the heads. Each head has its own row of `mean`.",
        "results[:, head] = 0 → results[:] = 0 ;; results[:, head] = mean[head] → results[:] = mean[:, None] ;; "
        "results[:, head] = other[:, head] → results[:] = other": "Other heads changed, too: you replace the whole "
        "layer. Write only into [:, head].",
        "results[:, head] = 0 → results[head] = 0 ;; results[:, head] = mean[head] → results[head] = mean[head] ;; "
        "results[:, head] = other[:, head] → results[head] = other[head]": _FIRST_AXIS,
        "results[:, head] = 0 → results[:, :, head] = 0 ;; results[:, head] = mean[head] → results[:, :, head] = "
        "mean[head] ;; results[:, head] = other[:, head] → results[:, :, head] = other[:, :, head]": "You index the "
        "third axis, the words. The heads are the second axis: [:, head].",
        "results[:, head] = 0 → results[..., head] = 0 ;; results[:, head] = mean[head] → results[..., head] = "
        "mean[head, 0] ;; results[:, head] = other[:, head] → results[..., head] = other[..., head]": "You index the "
        "last axis, the features of a head. The heads are the second axis: [:, head].",
        "other[:, head] → other[:1, head]": "You put the first other text into all texts. Each text has its own "
        "counterpart: other[:, head].",
        "other[:, head] → other[:, head].mean(dim=(0, 1))": 'You average over the other texts. "other" means their '
        "results themselves, text by text and word by word.",
        "other[:, head] → other[:, 0]": "You take head 0 of the other texts for every head. Take the same head.",
        'way == "zero" → way != "other" ;; elif way == "mean" → elif way == "nothing"': "You set a head to zero where "
        '"mean" is asked for.',
        '    for head, way in how.items():\n        if way == "zero" →     for head in range(results.shape[1]):\n'
        '        way = how.get(head, "zero")\n        if way == "zero"': "Heads that `how` does not name are set to "
        "zero. They stay as they are.",
        'else: → if way != "mean":': 'Where "zero" is asked for, your branch for "other" '
        "overwrites it. Only one branch belongs to a head.",
        "    return results →         return results\n    return results": "You return within the loop, after the "
        "first head. Return after it.",
        "in how.items() → in [*how.items()][-1:]": "Only the last head of `how` is replaced. All of them are.",
        'way == "mean" → way == "other"': 'You swapped "mean" and "other".',
    },
)
