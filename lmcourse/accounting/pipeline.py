"""Pipeline schedules: in which order each stage works, and what that costs in time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SCHEDULES = ("gpipe", "1f1b")


@dataclass(frozen=True)
class PipelineTask:
    """A forward or backward pass of one micro-batch through one stage.

    Attributes:
        stage: which stage does it, from 0.
        name: "F0" for the forward pass of the first micro-batch, "B0" for its backward pass.
        start, end: in units of time since the first pass began.
    """

    stage: int
    name: str
    start: float
    end: float


def pipeline_orders(stages: int, micro: int, schedule: str) -> list[list[str]]:
    """The order of passes in every stage: "gpipe" (Huang et al., 2019) or "1f1b" (Narayanan et al., 2021).

    Raises:
        ValueError: there is no such schedule.
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"there is no schedule {schedule!r}: there are {', '.join(SCHEDULES)}")
    orders = []
    for stage in range(stages):
        warmup = micro if schedule == "gpipe" else min(stages - stage, micro)
        pairs = [name for i in range(micro - warmup) for name in (f"B{i}", f"F{i + warmup}")]
        last = [f"B{i}" for i in range(micro - warmup, micro)]
        orders.append([f"F{i}" for i in range(warmup)] + pairs + last)
    return orders


def run_pipeline(orders: Sequence[Sequence[str]], forward: float = 1.0, backward: float = 2.0) -> list[PipelineTask]:
    """When each pass happens, if each stage keeps to its order and nothing starts before what it needs is there.

    A forward pass needs that of the stage before, a backward pass that of the stage behind (in the last stage the
    forward pass of its own).

    Args:
        orders: of each stage, the names of its passes.
        forward, backward: the time of a pass.

    Raises:
        ValueError: the stages wait for each other for ever.
    """
    ends: dict[tuple[int, str], float] = {}
    tasks: list[PipelineTask] = []
    done, free = [0] * len(orders), [0.0] * len(orders)
    while any(count < len(order) for count, order in zip(done, orders, strict=True)):
        before = len(tasks)
        for stage, order in enumerate(orders):
            while done[stage] < len(order):
                name = order[done[stage]]
                ready = _ready(ends, stage, name, last=len(orders) - 1)
                if ready is None:
                    break
                start = max(ready, free[stage])
                free[stage] = ends[stage, name] = start + (forward if name.startswith("F") else backward)
                tasks.append(PipelineTask(stage, name, start, free[stage]))
                done[stage] += 1
        if len(tasks) == before:
            waiting = [f"stage {s} for {order[done[s]]}" for s, order in enumerate(orders) if done[s] < len(order)]
            raise ValueError(f"deadlock, what they need never comes: {', '.join(waiting)}")
    return tasks


def _ready(ends: dict[tuple[int, str], float], stage: int, name: str, last: int) -> float | None:
    """When what a pass needs is there; None if that is not known yet."""
    if name.startswith("F"):
        return 0.0 if stage == 0 else ends.get((stage - 1, name))
    own = ends.get((stage, f"F{name[1:]}"))
    behind = own if stage == last else ends.get((stage + 1, name))
    return None if own is None or behind is None else max(own, behind)


def max_alive(order: Sequence[str]) -> int:
    """The most micro-batches that have gone forward in a stage and not yet backward: it holds their activations."""
    alive = most = 0
    for name in order:
        alive += 1 if name.startswith("F") else -1
        most = max(most, alive)
    return most


def idle_share(tasks: Sequence[PipelineTask], stages: int) -> float:
    """The share of all stages' time in which they wait, from the first pass to the end of the last."""
    total = stages * max(task.end for task in tasks)
    return 1 - sum(task.end - task.start for task in tasks) / total
