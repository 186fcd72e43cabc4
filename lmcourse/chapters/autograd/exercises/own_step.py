"""The open task: a training step without autograd, in little memory."""

from __future__ import annotations

from typing import Any

import torch

from lmcourse.chapters.autograd import own_step as task
from lmcourse.chapters.autograd.own_step import OPERATORS, PEAK
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD, NOT_MEASURED
from lmcourse.exercises.measured import CHANGED
from lmcourse.exercises.open_task import Band, OpenTask

_MODES = (".enable_grad", ".no_grad", ".inference_mode", ".set_grad_enabled")

my_step = Exercise(
    "my_step",
    points=5,
    minutes=18,
    difficulty=3,
    reference=task.by_autograd,
    seconds=60.0,
    cases=[case("new numbers", others=[])],
    hidden_cases=lambda _: [case("other sizes, too", others=[[64, 3], [100, 2000], [129, 17]])],
    hints=[
        "Write it for all words at once first, from the loss back: the gradient of the scores (section 3), then two "
        "products and the gate between them, then the rows of `table`. Let `judge` look at it.",
        "How many tensors of the size of the scores are alive at once? A one-hot matrix is one, probabilities beside "
        "the scores are another, and a name keeps its tensor until it is used again or deleted.",
        "No sum over words needs all words at the same time, and no sum over the vocabulary needs all of it. What has "
        "to be known first about a row of scores, so that its parts can be treated one after the other?",
    ],
    forbid=[*NO_AUTOGRAD, *_MODES, *NOT_MEASURED],
    task=OpenTask(
        inspect=task.inspect_step,
        measure=task.measure_step,
        baseline={
            "PyTorch's autograd": {PEAK: 193.5, OPERATORS: 33},
            "the formulas for all words at once": {PEAK: 258.02, OPERATORS: 30},
        },
        finish={PEAK: 4.0, OPERATORS: 5_000},
        bands=[
            Band(1, "the loss and the gradients are PyTorch's"),
            *(Band(1, at_most={PEAK: peak, OPERATORS: 5_000}) for peak in (100.0, 16.0, 8.0, 4.0)),
        ],
    ),
)


@my_step.idea(1)
def formulas_for_all_words(table: Any, first: Any, head: Any, ids: Any, y: Any) -> Any:
    x = table[ids].flatten(1)
    h = x @ first
    z = h.relu()
    log_p, right = (z @ head.T).log_softmax(-1), table.new_zeros(len(y), len(head))
    row = torch.arange(len(y))
    loss = -log_p[row, y].mean()
    right[row, y] = 1.0
    d = (log_p.exp() - right) / len(y)
    dh = (d @ head) * (h > 0)
    d_table = torch.zeros_like(table).index_add(0, ids.flatten(), (dh @ first.T).view(-1, table.shape[1]))
    return loss, {"table": d_table, "first": x.T @ dh, "head": d.T @ z}


@my_step.idea(5)
def pieces_of_32_words(table: Any, first: Any, head: Any, ids: Any, y: Any) -> Any:
    grads = {"table": torch.zeros_like(table), "first": torch.zeros_like(first), "head": torch.zeros_like(head)}
    loss = 0.0
    for i, t in zip(ids.split(32), y.split(32), strict=True):
        x = table[i].flatten(1)
        z = (x @ first).relu()
        d = z @ head.T
        lse, row = d.logsumexp(-1), torch.arange(len(t))
        loss += (lse - d[row, t]).sum().item()
        d.sub_(lse[:, None]).exp_()
        d[row, t] -= 1
        d /= len(y)
        grads["head"].addmm_(d.T, z)
        dh = (d @ head) * (z > 0)
        del d
        grads["first"].addmm_(x.T, dh)
        grads["table"].index_add_(0, i.flatten(), (dh @ first.T).view(-1, table.shape[1]))
    return loss / len(y), grads


@my_step.idea(5)
def the_vocabulary_in_parts(table: Any, first: Any, head: Any, ids: Any, y: Any) -> Any:
    d_table, d_first, d_head = (0 * each for each in (table, first, head))
    loss = table.new_zeros(())
    for i, right in zip(ids.split(256), y.split(256), strict=True):
        x = table[i].flatten(1)
        z = (x @ first).relu()
        lse = torch.stack([(z @ part.T).logsumexp(-1) for part in head.split(512)]).logsumexp(0)
        loss += (lse - (z * head[right]).sum(-1)).sum() / len(y)
        dz = -head[right]
        for part, out in zip(head.split(512), d_head.split(512), strict=True):
            p = (z @ part.T).sub_(lse[:, None]).exp_()
            out.addmm_(p.T, z)
            dz.addmm_(p, part)
            del p
        d_head.index_add_(0, right, -z)
        dz.mul_(z > 0).div_(len(y))
        d_first.addmm_(x.T, dz)
        d_table.index_add_(0, i.flatten(), (dz @ first.T).view(-1, table.shape[1]))
    return loss, {"table": d_table, "first": d_first, "head": d_head.div_(len(y))}


my_step.edited_ideas(
    pieces_of_32_words,
    {
        "in place, with one matrix of scores": (2, "ids.split(32), y.split(32) → ids.split(len(y)), y.split(len(y))"),
        "pieces of 256 words": (3, "ids.split(32), y.split(32) → ids.split(256), y.split(256)"),
        "pieces of 64 words": (4, "ids.split(32), y.split(32) → ids.split(64), y.split(64)"),
        "words one by one": (1, "ids.split(32), y.split(32) → ids.split(1), y.split(1)"),
    },
)
my_step.slips(
    the_vocabulary_in_parts,
    {
        "in head.split(512)]) → in head.split(512)][-1:])": task.LOSS.format(yours=1.86258, right=7.20042)
        + task.PARTS.format(few=40),
    },
)
my_step.slips(
    pieces_of_32_words,
    {
        'grads["table"].index_add_(0, i.flatten(), (dh @ first.T).view(-1, table.shape[1])) → '
        'grads["table"][i.flatten()] += (dh @ first.T).view(-1, table.shape[1])': task.TWICE,
        'grads["table"].index_add_(0, i.flatten(), (dh @ first.T).view(-1, table.shape[1])) → '
        'grads["table"][i.flatten()] = (dh @ first.T).view(-1, table.shape[1])': task.TWICE,
        "d /= len(y) → d /= len(t)": task.FIRST + task.SHARES.format(words=33, factor=2),
        "return loss / len(y), grads → return loss / len(t), grads": task.LOSS.format(yours=123.923, right=3.75524)
        + task.SHARES.format(words=33, factor=33),
        "d.sub_(lse[:, None]).exp_() → d = (d - d.amax(1, keepdim=True)).exp(); d /= d.sum(0)": task.OVER_WORDS,
        "lse, row = d.logsumexp(-1), → lse, row = d.logsumexp(0), ;; (lse - d[row, t]) → (lse[t] - d[row, t]) ;; "
        "lse[:, None] → lse": task.OVER_WORDS,
        "        d /= len(y)\n → ": task.ALL.format(factor=5),
        "d[row, t] -= 1 → d[:, t] -= 1": task.FIRST,
        "        d[row, t] -= 1\n → ": task.NO_ONE,
        "d[row, t] -= 1\n        d /= len(y) → d /= len(y)\n        d[row, t] -= 1": task.WHOLE_ONE,
        'grads["first"].addmm_(x.T, dh) → grads["first"] = x.T @ dh': task.WRONG.format(name="first")
        + task.BLOCKS.format(few=5),
        "for i, → whole = max(1, len(y) // 32) * 32\n    for i, ;; ids.split(32), y.split(32) → ids[:whole].split(32), "
        "y[:whole].split(32)": task.LOSS.format(yours=3.61692, right=3.75524) + task.BLOCKS.format(few=5),
        "lse, row = d.logsumexp(-1), → lse, row = (d - d.max()).exp().sum(-1).log() + d.max(),": task.FAR,
        " * (z > 0) → ": task.GATE,
        "i.flatten(), (dh → i.T.flatten(), (dh": task.WRONG.format(name="table"),
        "return loss / len(y), grads → return loss, grads": task.LOSS.format(yours=22.1933, right=4.43865),
        "(lse - d[row, t]) → (d[row, t] - lse)": task.LOSS.format(yours=-4.43865, right=4.43865),
        "(lse - d[row, t]).sum() → -(d[row, t] - lse).exp().log().sum()": task.FAR,
        "d.logsumexp(-1) → d.exp().sum(-1).log()": task.FAR,
        "return loss / len(y), grads → return loss / len(y), list(grads.values())": task.FORM,
        "return loss / → grads['head'] = grads['head'].T\n    return loss / ": task.SHAPE.format(
            name="head", yours="(64, 40) and torch.float32", right="(40, 64) and torch.float32"
        ),
        "return loss / → table -= grads['table']\n    return loss / ": CHANGED,
    },
)
