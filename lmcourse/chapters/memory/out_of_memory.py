"""The open task of notebook 14: a training script that needs too much memory.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.accounting.live import memory_events
from lmcourse.base.units import MIB
from lmcourse.chapters.memory.small_model import SmallModel
from lmcourse.exercises.measured import measured_call, one_thread
from lmcourse.exercises.open_task import Unfit

Results = dict[str, list[float]]
Training = Callable[..., Results]
"""Takes a model, its optimizer, batches to train on and batches to validate on."""

TRAINING, VALIDATION, WORK = "training, MiB", "validation, MiB", "work"
STEPS, EVERY, TOKENS = 12, 4, 128
SIZES = (4096, 64, 4, 4)
"""Vocabulary, width, heads and layers of the task's model."""

FLOPS = 25_769_803_776
"""FLOPs of the matrix products of `leaky_training` at the task's size."""

MOMENTS = 5.5
"""MiB that AdamW keeps of the task's model: no right answer has a smaller peak."""

_MARK = 1009
"""Bytes of a tensor that is made, and freed, each time the model reads texts: it is seen in the record."""

FORM = "Return a dict of three lists of numbers: `losses` of all steps, `validation` and `accuracy` after every fourth."
LOSS = "The loss of your first step is {yours:.3f}, and should be {right:.3f}: the mean over all targets of the batch."
MEANS = (
    "The loss of your first step is {yours:.3f}, and should be {right:.3f}. Does every target count alike, also those "
    "of a shorter part?"
)
FAR = (
    "Your first step moves the weights {factor:.3g} times as far as it should. Divide the loss of every part by the "
    "number of targets of the *whole* batch, then the gradients add up to its gradient."
)
STILL = "Your first step does not move the weights. Are the gradients still there when the optimizer steps?"
GRADIENT = "The loss of your first step is right, and its gradient is not. Does every part reach `backward`, in fp32?"
OFTEN = "Your optimizer steps {times:g} times for one batch. Add up the gradients of all its parts first."
LATER = (
    "Your losses are right up to step {step}, and wrong after it. Are gradients of one step added to those of the next?"
)
CHECKED = "Your first {name} is {yours:.3f}, and should be {right:.3f}. It is that of all texts, after the fourth step."
OTHER = "At the full size your {name} differ from those of the given script by {by:.1g}."
UNSEEN = "Of the products that training needs, only {part:.0%} were seen. Compute them where you are called."
BARE = "Read the texts with `model.embed`, as the given script does: {seen} of {all} batches were seen there."
EMPTY = "Your peak is {peak:.1f} MiB, and the optimizer's moments alone take {moments}. Memory was used elsewhere."


def leaky_training(
    model: Any, optimizer: torch.optim.Optimizer, batches: list[Tensor], validation: list[Tensor]
) -> dict[str, list[float]]:
    """Train on every batch, and validate after every fourth; return all losses and accuracies."""
    features = []

    def validate() -> tuple[float, float]:
        total, outputs = torch.zeros(()), []
        for texts in validation:
            h = model.features(texts[:, :-1])
            features.append(h.detach())
            outputs.append(model.head(h).flatten(0, 1))
            total += F.cross_entropy(outputs[-1], texts[:, 1:].flatten())
        targets = torch.cat([texts[:, 1:].flatten() for texts in validation])
        right = torch.cat([logits.argmax(-1) for logits in outputs]) == targets
        return (total / len(validation)).item(), right.float().mean().item()

    losses, validated = [], []
    for step, texts in enumerate(batches, start=1):
        h = model.features(texts[:, :-1])
        features.append(h.detach())  # for a plot, later
        logits = model.head(h).flatten(0, 1)
        loss = F.cross_entropy(logits, texts[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss)
        if step % 4 == 0:
            validated.append(validate())
    return {
        "losses": [loss.item() for loss in losses],
        "validation": [loss for loss, _ in validated],
        "accuracy": [accuracy for _, accuracy in validated],
    }


@dataclass
class Recording:
    """The record of a whole run: sizes of all allocations and releases, and where in the run they are.

    Attributes:
        steps: for each time that the model reads texts, the step, counted from 1; 0 in the validation.
    """

    events: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    results: Results = field(default_factory=dict)

    def phases(self) -> list[tuple[int, int]]:
        """The step (0 in the validation) and the bytes in use, after each event."""
        found, marks, step = [], iter(self.steps), 1
        for size, in_use in zip(self.events, accumulate(self.events), strict=True):
            step = next(marks, step) if size == _MARK else step
            found.append((step, in_use))
        return found

    def peak(self, *, validation: bool) -> float:
        """The most MiB in use in training steps, or in the validation; 0 if there are no events."""
        return max((in_use for step, in_use in self.phases() if (step == 0) is validation), default=0) / MIB

    def begins(self, step: int) -> float:
        """The MiB in use when a step begins."""
        return next((in_use for at, in_use in self.phases() if at == step), 0) / MIB

    def __str__(self) -> str:
        peaks = f"{self.peak(validation=False):.1f} MiB in training, {self.peak(validation=True):.1f} in the validation"
        return f"peak {peaks};\nin use when step 2 begins {self.begins(2):.1f}, step {STEPS} {self.begins(STEPS):.1f}"


@one_thread()
def record(training: Training, seed: int = 0, texts: int = 4) -> Recording:
    """Run a training function at the task's size and record its memory; `texts` is the number of texts in a batch."""
    model, batches, validation = _made(seed, SIZES, STEPS, texts, TOKENS)
    optimizer, found = torch.optim.AdamW(model.parameters(), lr=1e-3), Recording()

    def mark(_: object, inputs: tuple[Tensor, ...]) -> None:
        torch.empty(_MARK, dtype=torch.uint8)
        found.steps.append(int(inputs[0].flatten()[0].item()))

    model.embed.register_forward_pre_hook(mark)

    def run() -> None:
        found.results = training(model, optimizer, batches, validation)

    found.events = memory_events(run)
    return found


def _made(
    seed: int, sizes: tuple[int, int, int, int], steps: int, texts: int, tokens: int
) -> tuple[SmallModel, list[Tensor], list[Tensor]]:
    """Return a model and random batches. The texts of a step begin with its number, those of the validation with 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = SmallModel(*sizes)
    batches = torch.randint(steps + 1, sizes[0], (steps + EVERY, texts, tokens + 1), generator=generator)
    batches[:, :, 0] = torch.tensor([*range(1, steps + 1), *[0] * EVERY])[:, None]
    return model, list(batches[:steps]), list(batches[steps:])


@one_thread()
def inspect_training(training: Training) -> None:
    """Compare a training function with the given script on a tiny model; raise Unfit if its numbers are others."""
    _inspect_first_step(training)
    yours, right = (_tiny(one, 9)[0] for one in (training, leaky_training))
    _check_form(yours, right)
    wrong = [step for step, pair in enumerate(zip(yours["losses"], right["losses"], strict=True)) if not _near(*pair)]
    if wrong:
        raise Unfit(LATER.format(step=wrong[0]))
    for name in ("validation", "accuracy"):
        for pair in zip(yours[name], right[name], strict=True):
            if not _near(*pair):
                raise Unfit(CHECKED.format(name=name, yours=yours[name][0], right=right[name][0]))


def _inspect_first_step(training: Training) -> None:
    (yours, moved, updates), (right, wanted, once) = (_tiny(one, 1) for one in (training, leaky_training))
    _check_form(yours, right)
    if updates > once:
        raise Unfit(OFTEN.format(times=updates / once))
    pair = {"yours": yours["losses"][0], "right": right["losses"][0]}
    if not _near(**pair):
        raise Unfit((MEANS if _near(**pair, by=0.05) else LOSS).format(**pair))
    factor = (moved @ wanted / (wanted @ wanted)).item()
    if (moved - wanted).norm() <= 1e-3 * wanted.norm():
        return
    if not moved.any():
        raise Unfit(STILL)
    alike = (moved - factor * wanted).norm() <= 1e-3 * factor * wanted.norm()
    raise Unfit(FAR.format(factor=factor) if alike else GRADIENT)


def _tiny(training: Training, steps: int) -> tuple[Results, Tensor, int]:
    """Train a tiny model; return the results, by how much the weights moved, and how many parameters were updated."""
    model, batches, validation = _made(0, (61, 8, 2, 2), steps, 5, 30)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    before, updates = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone(), []

    def count(stepped: torch.optim.Optimizer, *_: object) -> None:
        updates.append(sum(len(group["params"]) for group in stepped.param_groups))

    optimizer.register_step_pre_hook(count)
    results = training(model, optimizer, batches, validation)
    with torch.no_grad():
        return results, torch.nn.utils.parameters_to_vector(model.parameters()) - before, sum(updates)


def _check_form(yours: object, right: Results) -> None:
    """Raise Unfit unless the results are three lists of numbers, as long as those of the given script."""
    if not isinstance(yours, dict) or yours.keys() != right.keys():
        raise Unfit(FORM)
    for name, wanted in right.items():
        given = yours[name] if isinstance(yours[name], list) else []
        if len(given) != len(wanted) or not all(isinstance(number, float | int) for number in given):
            raise Unfit(FORM)


def _near(yours: float, right: float, by: float = 1e-4) -> bool:
    return abs(yours - right) <= by * max(1.0, abs(right))


@cache
def _first_results(seed: int) -> Results:
    """The given script's results of the first steps, and of the first validation."""
    model, batches, validation = _made(seed, SIZES, STEPS, 4, TOKENS)
    return leaky_training(model, torch.optim.AdamW(model.parameters(), lr=1e-3), batches[:EVERY], validation)


@one_thread()
def measure_training(training: Training, seed: int) -> dict[str, float]:
    """Return the peaks of a whole run in MiB, and its FLOPs beside those of the given script; check its numbers."""
    recordings: list[Recording] = []
    call = measured_call(lambda: recordings.append(record(training, seed)))
    found = recordings[0]
    for name, wanted in _first_results(seed).items():
        by = max(abs(one - other) for one, other in zip(found.results[name], wanted, strict=False))
        if not by <= 1e-4:
            raise Unfit(OTHER.format(name=name, by=by))
    work, seen = call.flops / FLOPS, len({*found.steps})
    peaks = {TRAINING: found.peak(validation=False), VALIDATION: found.peak(validation=True)}
    if work < 0.97:
        raise Unfit(UNSEEN.format(part=work))
    if seen != STEPS + 1:
        raise Unfit(BARE.format(seen=max(0, seen - 1), all=STEPS))
    if peaks[TRAINING] < MOMENTS:
        raise Unfit(EMPTY.format(peak=peaks[TRAINING], moments=MOMENTS))
    return peaks | {WORK: work}
