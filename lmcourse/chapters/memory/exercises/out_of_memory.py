"""The open task: a training script that must fit into a quarter of its memory."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from lmcourse.chapters.memory import out_of_memory as task
from lmcourse.chapters.memory.out_of_memory import TRAINING, VALIDATION, WORK
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_COUNTER, NOT_MEASURED
from lmcourse.exercises.open_task import Band, OpenTask


def _both(limit: float) -> dict[str, float]:
    return {TRAINING: limit, VALIDATION: limit, WORK: 1.3}


mended_training = Exercise(
    "mended_training",
    points=6,
    minutes=14,
    difficulty=3,
    reference=task.leaky_training,
    seconds=60.0,
    cases=[case("seed 0", seed=0)],
    hidden_cases=lambda _: [case("seed 1", seed=1)],
    hints=[
        "Begin where the peak is. In the validation nobody calls `backward`: what does autograd keep there, and for "
        "whom? And does the accuracy need all logits at once?",
        "In training, go through the names: which tensors are still alive when `backward` begins, and which list grows "
        "with every step? A gradient is needed from `backward` to the optimizer's step, and at no other time.",
        "Then redesign. What is the largest tensor at the peak now? Section 6 has a way to have less of the logits, "
        "and one to keep less of the blocks; `texts.split(1)` is a third. A quarter takes two of them, in the "
        "validation one.",
    ],
    forbid=[*NOT_MEASURED, *NO_COUNTER],
    task=OpenTask(
        inspect=task.inspect_training,
        measure=task.measure_training,
        baseline={
            "the given script": {TRAINING: 54.8, VALIDATION: 131.5, WORK: 1.0},
            "its leaks mended, nothing else": {TRAINING: 41.7, VALIDATION: 21.8, WORK: 1.0},
        },
        finish=_both(12.0),
        bands=[
            Band(1, at_most={VALIDATION: 40.0}),
            Band(1, at_most={TRAINING: 51.0}),
            Band(1, at_most={TRAINING: 43.0}),
            Band(2, at_most=_both(16.0)),
            Band(1, at_most=_both(12.0)),
        ],
        digits=1,
    ),
)

mended_training.idea(0)(task.leaky_training)

_MENDED = {
    "logits in a variable": "        logits = model.head(h).flatten(0, 1)\n →  ;; (logits, texts → "
    "(model.head(h).flatten(0, 1), texts",
    "features kept": "            features.append(h.detach())\n →  ;;         features.append(h.detach())  # for a "
    "plot, later\n → ",
    "gradients of zeros": "        optimizer.zero_grad(set_to_none=False)\n →  ;; optimizer.step()\n → "
    "optimizer.step()\n        optimizer.zero_grad()\n",
    "validation with a graph": "def validate → @torch.no_grad()\n    def validate",
    "validation keeps its logits": "outputs.append(model.head(h).flatten(0, 1)) → "
    "logits = model.head(h).flatten(0, 1)\n            outputs.append(logits.argmax(-1)) ;; outputs[-1] → logits ;; "
    "[logits.argmax(-1) for logits in outputs] → outputs",
}


def _without(*left: str) -> str:
    """The edits that mend all leaks of the given script but these."""
    return " ;; ".join(edits for name, edits in _MENDED.items() if name not in left)


mended_training.edited_ideas(
    task.leaky_training,
    {"all leaks mended": (3, _without())}
    | {f"one leak left, {name}": (2, _without(name)) for name in list(_MENDED)[:3]},
)


@mended_training.idea(6)
def chunks_and_blocks(
    model: Any, optimizer: torch.optim.Optimizer, batches: list[Any], validation: list[Any]
) -> dict[str, list[float]]:
    at_once, rows = 4, 64

    def chunk_loss(h: Any, y: Any) -> Any:
        return F.cross_entropy(model.head(h), y, reduction="sum")

    def summed_loss(texts: Any) -> Any:
        h = model.embed(texts[:, :-1])
        for block in model.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        chunks = zip(h.flatten(0, 1).split(rows), texts[:, 1:].flatten().split(rows), strict=True)
        return sum(checkpoint(chunk_loss, *chunk, use_reentrant=False) for chunk in chunks)

    @torch.no_grad()
    def validate() -> tuple[float, float]:
        loss, right, targets = 0.0, 0, 0
        for texts in chain.from_iterable(whole.split(1) for whole in validation):
            logits, y = model(texts[:, :-1])[0], texts[0, 1:]
            loss += F.cross_entropy(logits, y, reduction="sum").item()
            right += int((logits.argmax(-1) == y).sum())
            targets += y.numel()
        return loss / targets, right / targets

    losses, validated = [], []
    for step, texts in enumerate(batches, start=1):
        total = 0.0
        for part in texts.split(at_once):
            loss = summed_loss(part) / texts[:, 1:].numel()
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
        if step % 4 == 0:
            validated.append(validate())
    return {
        "losses": losses,
        "validation": [loss for loss, _ in validated],
        "accuracy": [accuracy for _, accuracy in validated],
    }


mended_training.edited_ideas(
    chunks_and_blocks,
    {
        "two texts at a time": (5, "at_once, rows = 4 → at_once, rows = 2"),
        "every weight updated as its gradient comes": (
            6,
            "at_once, rows = 4 → at_once, rows = 99 ;;     losses, validated = [], []\n → \n"
            "    group = optimizer.param_groups[0]\n    every = group['params']\n\n    def update(p: Tensor) -> None:\n"
            "        group['params'] = [p]\n        optimizer.step()\n        p.grad = None\n\n    for p in every:\n"
            "        p.register_post_accumulate_grad_hook(update)\n    losses, validated = [], []\n ;; "
            "        optimizer.step()\n        optimizer.zero_grad()\n → ",
        ),
    },
)

mended_training.slips(
    chunks_and_blocks,
    {
        "at_once, rows = 4 → at_once, rows = 1 ;; / texts[:, 1:].numel() → / part[:, 1:].numel() ;; "
        "total += loss.item() → total += loss.item() / len(texts)": task.FAR.format(factor=5.0),
        'reduction="sum")\n\n    def summed → )\n\n    def summed ;; / texts[:, 1:].numel() → / 3': task.MEANS.format(
            yours=4.317, right=4.325
        ),
        "/ texts[:, 1:].numel() → ": task.LOSS.format(yours=648.711, right=4.325),
        "        optimizer.step()\n        optimizer.zero_grad()\n → ": task.STILL,
        "total += loss.item()\n        optimizer.step()\n        optimizer.zero_grad() → total += loss.item()\n"
        "            optimizer.step()\n            optimizer.zero_grad() ;; at_once, rows = 4 → at_once, rows = 1": (
            task.OFTEN.format(times=5.0)
        ),
        "        optimizer.zero_grad()\n → ": task.LATER.format(step=2),
        "h = model.embed(texts[:, :-1]) → h = model.embed(texts[:, :-1]).detach()": task.GRADIENT,
        "return loss / targets, right / targets → return loss / len(validation), right / targets": (
            task.CHECKED.format(name="validation", yours=630.591, right=4.204)
        ),
        "right / targets\n → float(right)\n": task.CHECKED.format(name="accuracy", yours=12.0, right=0.02),
        '"losses": losses → "loss": losses': task.FORM,
    },
)
