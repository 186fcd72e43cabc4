"""The race of notebook 04: one small language model, the same batches for every optimizer; and the task that ends it.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.data.grammar import story_grammar
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Remark, Unfit

Schedule = Callable[[int, int], float]
Entry = Callable[[nn.Module], Any]

WINDOW, BATCH = torch.arange(12), 64

_LOW = 0.2
"""The peak of a schedule below which it may be a rate."""

NO_PAIR = "`my_entry` must return two things: an optimizer, and a schedule or None."
NO_OPTIMIZER = (
    "Your optimizer needs a method `step` and a list `param_groups` of dictionaries, each with its rate `lr`."
)
NO_SCHEDULE = "Your schedule must return a number for every step: `schedule(step, steps)`."
RATE = "Your schedule is never above {most:.2g}. It is a fraction of the rate, and the race multiplies both."
TOUCHED = "`my_entry` changed weights of the model. The race begins with the weights that it hands out."
CHANGED = (
    "You changed something else in the model than its weights. Leave its modules, their `forward` and hooks alone."
)
MORE = "The race hands out one gradient a step. Your entry runs the model, or goes backwards through it, more often."

LOST = "The loss of your entry is no longer a finite number. Try a lower rate, or a longer warm-up."


class NextByte(nn.Module):
    """Scores of the next byte from the twelve before it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(128, 16)
        self.first = nn.Linear(12 * 16, 64, bias=False)
        self.second = nn.Linear(64, 64, bias=False)
        self.head = nn.Linear(64, 128, bias=False)

    def forward(self, context: Int[Tensor, "batch 12"]) -> Float[Tensor, "batch 128"]:
        """Return the scores of the next byte."""
        x = F.rms_norm(self.table(context).flatten(1), (192,))
        for layer in (self.first, self.second):
            x = F.rms_norm(layer(x).relu(), (64,))
        scores: Tensor = self.head(x)
        return scores


class Run(NamedTuple):
    """The training losses of one run, and the loss on the held-out tenth of the text, in nats per byte."""

    losses: list[float]
    held_out: float


@cache
def story_bytes() -> Int[Tensor, " n"]:
    """Return the bytes of 3,000 short stories, always the same."""
    stories, source = story_grammar(), random.Random(0)
    return torch.tensor(list("".join(stories.generate(source) for _ in range(3000)).encode()))


def constant(step: int, steps: int) -> float:
    """Return the full rate for every step."""
    return 1.0


@one_thread()
def run_entry(make: Entry, seed: int, steps: int = 500) -> Run:
    """Train the model with an optimizer, or with an optimizer and a schedule, that `make` returns.

    Each seed has other numbers for the bytes, so that weights from elsewhere, or from another seed, are of no use. A
    loss that is not finite ends the run. Raises Unfit if the entry breaks a rule of the race.
    """
    generator = torch.Generator().manual_seed(seed)
    text = torch.randperm(128, generator=generator)[story_bytes()]
    torch.manual_seed(seed)
    model = NextByte()
    calls: list[Any] = []

    def note(_: nn.Module, __: tuple[Tensor, ...], scores: Tensor) -> None:
        calls.append(scores.requires_grad and scores.register_hook(calls.append))  # type: ignore[no-untyped-call]

    parts, optimizer, schedule = prepared(make, model)
    count = model.register_forward_hook(note)
    rates = [group["lr"] for group in optimizer.param_groups]
    end, losses = int(0.9 * len(text)), []
    starts = torch.randperm(end - 12, generator=generator)
    for step, at in enumerate(starts[: BATCH * steps].split(BATCH)):  # type: ignore[no-untyped-call]
        loss = F.cross_entropy(model(text[at[:, None] + WINDOW]), text[at + 12])
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            return Run(losses, math.nan)
        model.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * schedule(step, steps)
        optimizer.step()
    if len(calls) != 2 * steps:  # each call, and each way back through it
        raise Unfit(MORE)
    count.remove()
    if _parts(model) != parts:
        raise Unfit(CHANGED)
    at = torch.arange(end, len(text) - 12, 40)
    with torch.no_grad():
        return Run(losses, F.cross_entropy(model(text[at[:, None] + WINDOW]), text[at + 12]).item())


def prepared(make: Entry, model: nn.Module) -> tuple[Any, Any, Schedule]:
    """Return what the model consists of, and the optimizer and schedule that `make` returns; raise Unfit if invalid."""
    parts, weights = _parts(model), [weight.clone() for weight in model.parameters()]
    made = make(model)
    optimizer, schedule = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    groups = getattr(optimizer, "param_groups", None)
    if not hasattr(optimizer, "step") or not isinstance(groups, list) or not all("lr" in group for group in groups):
        raise Unfit(NO_OPTIMIZER)
    if _parts(model) != parts:
        raise Unfit(CHANGED)
    if not all(map(torch.equal, model.parameters(), weights)):
        raise Unfit(TOUCHED)
    return parts, optimizer, schedule or constant


def _parts(model: nn.Module) -> Any:
    """Return all that a model consists of, but the numbers: its modules with their settings and hooks, its shapes."""
    shapes = [(name, weight.shape, weight.requires_grad) for name, weight in model.named_parameters()]
    numbers = ("_parameters", "_modules")
    modules = [
        (
            name,
            type(part),
            {key: dict(one) if isinstance(one, dict) else one for key, one in vars(part).items() if key not in numbers},
        )
        for name, part in model.named_modules()
    ]
    return shapes, modules


class Race:
    """All entries of a notebook: for each, the runs with seeds 0, 1 and 2."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Run]] = {}

    def enter(self, name: str, make: Entry, schedule: Schedule | None = None, steps: int = 500) -> float:
        """Train three models with an optimizer; print and return the mean loss on held-out text. A name is one entry.

        Args:
            make: takes the model and returns an optimizer, or an optimizer and a schedule.
            schedule: takes the step and their number; each group's rate is multiplied by its result.
        """
        entry = make if schedule is None else lambda model: (make(model), schedule)
        self.runs[name] = runs = [run_entry(entry, seed, steps) for seed in range(3)]
        mean = sum(run.held_out for run in runs) / 3
        lost = [len(run.losses) for run in runs if math.isnan(run.held_out)]
        numbers = " ".join(f"{run.held_out:.3f}" for run in runs)
        print(
            f"{name:34} "
            + (
                f"no result: the loss is not finite at step {lost[0]}; try a lower rate"
                if lost
                else f"{mean:.3f}  ({numbers})"
            )
        )
        return mean


def inspect_entry(my_entry: Entry) -> None:
    """Raise Unfit if an entry breaks a rule before the first step or in the first two."""
    with torch.random.fork_rng(devices=[]):
        made = my_entry(NextByte())
        if not isinstance(made, tuple) or len(made) != 2:
            raise Unfit(NO_PAIR)
        _, _, schedule = prepared(my_entry, NextByte())
        try:
            fractions = [schedule(step, 500) for step in range(500)]
        except TypeError as error:
            raise (Unfit(NO_SCHEDULE) if "positional argument" in str(error) else error) from None
        if not all(isinstance(fraction, int | float) for fraction in fractions):
            raise Unfit(NO_SCHEDULE)
        if max(fractions) < _LOW:
            warnings.warn(RATE.format(most=max(fractions)), Remark, stacklevel=1)
        run_entry(my_entry, 0, 2)


def measure_entry(my_entry: Entry, seeds: Sequence[int]) -> dict[str, float]:
    """Return the mean held-out loss of an entry; raise Unfit if a run has none."""
    nats = sum(run_entry(my_entry, seed).held_out for seed in seeds) / len(seeds)
    if math.isnan(nats):
        raise Unfit(LOST)
    return {"nats": nats}
