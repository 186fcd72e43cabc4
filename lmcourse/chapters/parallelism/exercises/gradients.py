"""The exercise on averaging gradients: data parallelism by hand."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask, whole_numbers
from lmcourse.chapters.parallelism.worker import CollectiveWorker
from lmcourse.exercises.cases import Case, edge
from lmcourse.exercises.exercise import Exercise

NAN = float("nan")


def two_collectives(worker: CollectiveWorker, gradients: list[Tensor], targets: int) -> list[Tensor]:
    total = worker.all_reduce(torch.tensor(targets)).item()
    if total == 0:
        worker.all_reduce(torch.zeros(1))
        return [torch.zeros_like(gradient) for gradient in gradients]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).double()
    summed = worker.all_reduce(flat * (targets / total) if targets else torch.zeros_like(flat))
    pieces = summed.split([gradient.numel() for gradient in gradients])  # type: ignore[no-untyped-call]
    return [piece.view(old.shape).to(old.dtype) for piece, old in zip(pieces, gradients, strict=True)]


def _ask(name: str, gradients: list[list[Tensor]], targets: list[int]) -> Case:
    inputs = {"gradients": gradients, "targets": targets}
    call = "average_gradients, gradients, targets, collectives=True"
    return ask(name, call, "run.results", "run.collectives <= 2", **inputs)


def _unchanged(gradients: list[list[Tensor]], targets: list[int]) -> Case:
    call = "average_gradients, gradients, targets, collectives=True"
    return ask(
        "the gradients stay as they are", call, "run.results", "run.changed", gradients=gradients, targets=targets
    )


def _some(random: Random, workers: int, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[Any]:
    columns = [whole_numbers(random, workers, *shape, dtype=dtype) for shape in shapes]
    return [list(row) for row in zip(*columns, strict=True)]


def _without(gradients: list[Any], worker: int) -> list[Any]:
    """Return the gradients with NaN for this worker, the result of a mean over no targets."""
    nothing = [torch.full_like(gradient, NAN) for gradient in gradients[worker]]
    return [*gradients[:worker], nothing, *gradients[worker + 1 :]]


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    three = _some(fixed, 3, (2, 3), (3,), (1,))
    return [
        _ask("several tensors", three, [5, 2, 4]),
        _ask("one worker", _some(fixed, 1, (2,), (2, 2), (1,)), [3]),
        _ask("more workers", _some(fixed, 5, (2, 2)), [1, 2, 3, 4, 6]),
        _ask("workers without targets", _without(_without(three, 0), 2), [0, 7, 0]),
        _ask("NaN with targets", [[_t(NAN, 2.0)], [_t(4.0, NAN)], [_t(NAN, NAN)]], [3, 2, 0]),
        _unchanged(_some(fixed, 2, (2,)), [2, 5]),
        _ask("one target in all", _without(_some(fixed, 2, (3,)), 1), [1, 0]),
        _ask("no targets at all", _without(_without(_some(fixed, 2, (3,)), 0), 1), [0, 0]),
        _ask("double precision", _some(fixed, 2, (3,), dtype=torch.float64), [7, 9]),
        _ask("a single number as a tensor", _some(fixed, 2, (), (2,), (1,)), [1, 3]),
        _ask("many targets in fp16", _some(fixed, 3, (4,), dtype=torch.float16), [65_000, 2000, 40_000]),
        _ask("parts that nearly cancel", [[_t(-1000.0).half()], [_t(333.5).half()]], [1, 3]),
        _ask("many workers in bf16", _some(fixed, 8, (4,), dtype=torch.bfloat16), [256, *[1] * 7]),
        _ask("other numbers", _some(random, 4, (3,), (2, 2), (1,)), random.sample(range(1, 40), 4)),
    ]


def _t(*numbers: float) -> Tensor:
    return torch.tensor(numbers)


BF16 = [[_t(1.0, 3.0, 0.5).bfloat16()], [_t(-2.0, 1.0, 0.25).bfloat16()]]
FP16 = [[_t(100.0, -50.0).half()], [_t(40.0, 8.0).half()]]
OPPOSED = [[_t(200.0, 3.0).bfloat16()], [_t(-99.0, 1.0).bfloat16()]]
SMALL_FP16 = [[_t(1.5, -2.0).half()], [_t(0.5, 3.0).half()]]

average_gradients = Exercise(
    "average_gradients",
    points=2,
    minutes=6,
    difficulty=2,
    reference=two_collectives,
    cases=[
        _ask("as many targets on both", [[_t(2.0, 4.0)], [_t(6.0, 0.0)]], [5, 5]),
        _ask("three targets and one", [[_t(2.0, 4.0)], [_t(6.0, 0.0)]], [3, 1]),
        _ask("a worker without targets", [[_t(2.0, 4.0)], [_t(NAN, NAN)]], [3, 0]),
        _ask("a run that has diverged: NaN with targets", [[_t(2.0, NAN)], [_t(6.0, 4.0)]], [3, 1]),
        _ask("three tensors", _some(Random(5), 3, (2, 2), (2,), (1, 3)), [1, 2, 5]),
        edge(_ask("one target in all", [[_t(2.0, 4.0)], [_t(NAN, NAN)]], [1, 0])),
        edge(_ask("no targets at all", [[_t(NAN, NAN)], [_t(NAN, NAN)]], [0, 0])),
        _unchanged([[_t(2.0, 4.0)], [_t(6.0, 8.0)]], [3, 1]),
        _ask("257 targets in bf16", BF16, [257, 1000]),
        _ask("large gradients in fp16", FP16, [3000, 500]),
        _ask("100,000 targets in fp16", SMALL_FP16, [60_000, 40_000]),
        _ask("70,000 targets on one worker, in fp16", SMALL_FP16, [70_000, 500]),
        _ask("parts that nearly cancel, in bf16", OPPOSED, [1, 2]),
    ],
    hidden_cases=_hidden,
    hints=[
        "The mean over all targets is Σ (targets of worker w × its mean) / Σ targets. The gradient is averaged in the "
        "same way.",
        "Put all gradients into one flat tensor in fp32 or fp64, times the number of targets, and the number itself at "
        "its end: one all_reduce. Then divide, go back to the dtype, cut and reshape.",
        "NaN times 0 is NaN: a worker without targets must send zeros. With no targets at all, do not divide by 0.",
    ],
    may_use_package=True,
)
average_gradients.variant(two_collectives)


for _strict in ("parts, gradients)", "parts, gradients, strict=False)"):
    average_gradients.equivalent_mutant(
        "return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)] → "
        f"return [part.view_as(gradient) for part, gradient in zip({_strict}]",
        "`split` gives as many parts as there are gradients.",
    )


@average_gradients.variant
def gathered(worker: CollectiveWorker, gradients: list[Tensor], targets: int) -> list[Tensor]:
    flat = torch.cat([gradient.flatten() for gradient in gradients]).float()
    flat = flat.nan_to_num(0.0) if targets == 0 else flat
    rows = worker.all_gather(torch.cat([flat, flat.new_tensor([targets])])[None])
    weights = rows[:, -1] / rows[:, -1].sum().clamp(min=1)
    mean = (rows[:, :-1] * weights[:, None]).sum(0)
    result = []
    for gradient in gradients:
        result.append(mean[: gradient.numel()].reshape(gradient.shape).type_as(gradient))
        mean = mean[gradient.numel() :]
    return result


@average_gradients.variant
def one_all_reduce(worker: CollectiveWorker, gradients: list[Tensor], targets: int) -> list[Tensor]:
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    wide = flat.double() * targets if targets else torch.zeros_like(flat, dtype=torch.float64)
    summed = worker.all_reduce(torch.cat([wide, wide.new_tensor([targets])]))
    mean = (summed[:-1] / summed[-1].clamp(min=1)).to(flat.dtype)
    parts = mean.split([gradient.numel() for gradient in gradients])  # type: ignore[no-untyped-call]
    return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)]


average_gradients.slips(
    one_all_reduce,
    {
        "flat.double() * targets → flat.double() ;; summed[-1].clamp(min=1) → worker.size": "You take the mean of the "
        "workers' means: one with few targets counts as much as one with many.",
        "flat.double() * targets → flat.double() ;;  / summed[-1].clamp(min=1) → ": "You add the workers' means. A "
        "sum of means grows with the number of workers.",
        "flat = → if len(gradients) > 1:\n        return [one_all_reduce(worker, [gradient], targets)[0] for gradient "
        "in gradients]\n    flat =": "The result is right, but you call a collective for every tensor. Each call "
        "waits for the slowest worker: put all tensors into one.",
        "summed[-1].clamp(min=1) → max(targets, 1)": "You divide by this worker's targets. The mean runs over the "
        "targets of *all*.",
        ".clamp(min=1)) → .clamp(min=1) / worker.size)": "You divide by the targets of all, and by the number of "
        "workers as well.",
        " if targets else torch.zeros_like(flat, dtype=torch.float64) → ": "A worker without targets has NaN for a "
        "gradient, and NaN times 0 is NaN: it must send zeros.",
        " if targets else torch.zeros_like(flat, dtype=torch.float64) →  ;; mean = ( → mean = torch.zeros_like(flat) "
        "if not summed[-1] else (": "You return zeros if no worker has targets, but a single worker without targets "
        "spoils the sum: its NaN times 0 is NaN. Let it send zeros.",
        "flat.double() * targets → flat.double()": "You divide the sum of the workers' means by all targets. First "
        "multiply each mean by the targets of its worker.",
        "summed[-1].clamp(min=1) → worker.size": "You divide by the number of workers. The sum holds each worker's "
        "targets times its mean: divide it by the targets of all.",
        "summed[-1].clamp(min=1) → summed[-1].clamp(min=1) * targets ;; flat.double() * targets → flat.double()": "You "
        "multiply by your targets after the sum. Each worker's mean counts with its own: multiply before.",
        ".to(flat.dtype) → ": "Your results are in a wider dtype than the gradients. Convert them back at the end.",
        ".clamp(min=1) → ": "If there are no targets at all, you divide by 0. The task asks for zeros there.",
        " / summed[-1].clamp(min=1) → ": "You never divide: these are sums over all targets.",
        "part.view_as(gradient) → part": "You return flat tensors. Cut the result, and give each gradient its shape "
        "back.",
        "return [part → return gradients if worker.rank else [part": "Only your rank 0 has the mean: the other "
        "workers return their own gradients.",
        ".double() →  ;; , dtype=torch.float64 → ": "You compute in 16 bits: in bf16, 257 targets become 256, and "
        "sums lose digits or overflow. Add up in fp32 or fp64.",
        "summed[-1] → worker.all_reduce(flat.new_tensor(targets))": "You add up the numbers of targets in the dtype "
        "of the gradients. bf16 rounds 257 to 256, and fp16 ends at 65,504: count in fp32 or fp64.",
        "part.view_as(gradient) → gradient.copy_(part.view_as(gradient))": "You change the gradients in place: the "
        "tensors that the worker was given are gone. Compute new ones.",
        "part.view_as(gradient) → gradient": "You return this worker's own gradients: nothing has been averaged.",
        "flat.double() * targets if targets else torch.zeros_like(flat, dtype=torch.float64) → "
        "flat.double().nan_to_num(0.0) * targets": "You replace every NaN by 0. A NaN of a worker with targets shows "
        "that training has diverged: replace only the gradients of a worker without targets.",
        "mean = (summed[:-1] / summed[-1].clamp(min=1)).to(flat.dtype) → mean = (summed[:-1] / "
        "summed[-1].clamp(min=1)).to(flat.dtype).nan_to_num(0.0)": "You replace NaN in the result by 0. A NaN of a "
        "worker with targets shows that training has diverged: leave it there.",
        "wide.new_tensor([targets]) → flat.new_tensor([targets]).double()": "You write the number of targets in the "
        "dtype of the gradients before you convert it. fp16 ends at 65,504: count in fp32 or fp64.",
        "flat = → if targets == 0:\n        return [torch.zeros_like(gradient) for gradient in gradients]\n    flat "
        "=": "A worker without targets returns before the collective, and the others wait for it. It must take part, "
        "with zeros, and gets the same mean as all.",
    },
)


average_gradients.slips(
    two_collectives,
    {
        "]).double() → ])": "You weight and add the gradients in their own dtype. In 16 bits each part is rounded "
        "before the sum: convert first."
    },
)
