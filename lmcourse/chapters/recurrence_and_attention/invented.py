"""The open task of notebook 06: a task for two translators, with attention and with a single state.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from lmcourse.chapters.recurrence_and_attention.translator import Attend, Translator, course_attend, perfect, train
from lmcourse.exercises.open_task import Unfit

Task = Callable[[Tensor], tuple[Tensor, Tensor]]
LENGTH, STEPS = 9, 400
REVERSE = {"perfect": 0.99, "agreement": 1.00, "by content": 0.00, "one state": 0.89}
"""The result of `measure_task` for the task of reversing, with seeds 0 to 2."""


class Lesson(NamedTuple):
    """A task of a learner: batches to train with, and rows to judge by, with their targets and predicted places."""

    pairs: list[tuple[Tensor, Tensor]]
    source: Int[Tensor, "b n"]
    target: Int[Tensor, "b n"]
    places: Int[Tensor, "b n"]


def different_symbols(count: int, length: int, generator: torch.Generator) -> Int[Tensor, "b n"]:
    """Return rows of different symbols out of 1 to 10."""
    return torch.rand(count, 10, generator=generator).argsort(dim=1)[:, :length] + 1


def lesson(task: Task, seed: int = 0) -> Lesson:
    """Call a task once for each batch that all translators share, and for the rows that judge them."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 11, (STEPS,), generator=generator).tolist()
    sources = [different_symbols(64, length, generator) for length in lengths]
    pairs = [(source, _answer(task, source)[0]) for source in sources]
    judging = different_symbols(512, LENGTH, torch.Generator().manual_seed(1000 + seed))
    return Lesson(pairs, judging, *_answer(task, judging))


def inspect_task(task: Task) -> None:
    """Raise `Unfit` if what a task returns is no target and no places, or is not decided by the row alone."""
    generator = torch.Generator().manual_seed(7)
    for length in (LENGTH, 2, 6, 10):
        source = different_symbols(16, length, generator)
        try:
            first = torch.stack(_answer(task, source))
        except (IndexError, RuntimeError) as error:
            if length == LENGTH:
                raise
            problem = f"Rows of {LENGTH} symbols work, and rows of {length} raise an exception."
            raise Unfit(f"{problem} Take the length from `source`.") from error
        if not torch.equal(first, torch.stack(_answer(task, source))):
            raise Unfit("Called again with the same rows, your task returns something else. Draw and count nothing.")
        if not torch.equal(first[:, 3:4], torch.stack(_answer(task, source[3:4]))):
            raise Unfit("A row's target or places change with the rows beside it. Each row decides alone.")


def measure_task(task: Task, seeds: list[int]) -> dict[str, float]:
    """Train translators with attention and with one state, one of each for each seed; return the numbers of `judge`."""
    given = lesson(task, seeds[0])
    return judge(given, *try_task(given, seeds))


def try_task(
    given: Lesson, seeds: list[int], attend: Attend = course_attend, read: Callable[[Tensor, int], Tensor] | None = None
) -> tuple[list[Translator], list[Translator]]:
    """Return translators with attention and translators with one state, one of each for each seed."""
    reads = read or (lambda target, start: F.pad(target, (1, -1), value=start))
    looking, plain = ([train(seed, given.pairs, reads, kind) for seed in seeds] for kind in (attend, None))
    return looking, plain


def judge(given: Lesson, looking: list[Translator], plain: list[Translator]) -> dict[str, float]:
    """Return how well the best translator of each kind does a task, on rows of nine.

    "perfect" is the share of rows without an error, with attention; "agreement", how often the largest weight is on the
    predicted place; "by content", the agreement less that of the best fixed picture; "one state", the share of perfect
    rows without attention. The best translator is the one with the most perfect rows: training may fail now and then.
    """
    best, state = (max(models, key=lambda model: perfect(model, *given[1:3])) for models in (looking, plain))
    agreed = agreement(best, *given[1:])
    return {
        "perfect": perfect(best, *given[1:3]),
        "agreement": agreed,
        "by content": agreed - agreement(best, *given[1:3]),
        "one state": perfect(state, *given[1:3]),
    }


def agreement(
    model: Translator, source: Int[Tensor, "b n"], target: Int[Tensor, "b n"], places: Tensor | None = None
) -> float:
    """Return how often the largest weight is on these places, or else on the commonest place of each step."""
    looks = model.looks(source, target).argmax(dim=-1)
    return (looks == (looks.mode(dim=0).values if places is None else places)).double().mean().item()


def _answer(task: Task, source: Int[Tensor, "b n"]) -> tuple[Tensor, Tensor]:
    """Return copies of the target and the places; raise `Unfit` if they are none."""
    result: Any = task(source.clone())
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Unfit("Return two tensors: the target, and the places to look at.")
    for name, tensor, low, high in (("target", result[0], 1, 10), ("places", result[1], 0, source.shape[1] - 1)):
        if not isinstance(tensor, Tensor) or tensor.shape != source.shape or tensor.is_floating_point():
            raise Unfit(f"`{name}` is not a tensor of whole numbers of the shape of `source`, {tuple(source.shape)}.")
        if tensor.min() < low or tensor.max() > high:
            raise Unfit(f"`{name}` has numbers outside {low} to {high}, for rows of {source.shape[1]} symbols.")
    target, places = (torch.tensor(tensor.tolist()) for tensor in result)
    return target, places
