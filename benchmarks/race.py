"""The same work done by several contenders in turn, so that a busy neighbour slows all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Contest:
    """One row of the table: the same work done by several models.

    Attributes:
        name: of the work.
        tokens: how many it processes.
        run: per contender, a function that does it once. Ours is the first.
        kept: per contender, bytes that autograd keeps for the backward pass.
        yardstick: FLOPs per token, and a function that does some of known number: (FLOPs per token, FLOPs, function).
    """

    name: str
    tokens: int
    run: dict[str, Callable[[], object]]
    kept: dict[str, int] = field(default_factory=dict)
    yardstick: tuple[float, float, Callable[[], object]] | None = None


def race(contest: Contest, rounds: int) -> dict[str, list[float]]:
    """Seconds of every contender in every round; those of the yardstick under the empty name."""
    runs = dict(contest.run)
    if contest.yardstick is not None:
        runs[""] = contest.yardstick[2]
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    gc.disable()
    for number in range(rounds):
        names = list(runs)
        for name in names if number % 2 == 0 else reversed(names):
            gc.collect()
            start = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - start)
    gc.enable()
    return times


def rows(contest: Contest, times: dict[str, list[float]]) -> list[dict[str, object]]:
    yardstick = times.pop("", None)
    first = next(iter(times))
    result = []
    for name, seconds in times.items():
        ratios = [mine / his for mine, his in zip(times[first], seconds, strict=True)]
        rate, best = contest.tokens / statistics.median(seconds), contest.tokens / min(seconds)
        row: dict[str, object] = {
            "work": contest.name,
            "who": name,
            "tokens_per_second": round(rate, 1),
            "best": round(best, 1),
            "relative_to_first": round(statistics.median(ratios), 3),
            "share": None,
            "kept_bytes": contest.kept.get(name),
        }
        if contest.yardstick is not None and yardstick is not None:
            per_token, flops, _ = contest.yardstick
            row["share"] = round(rate * per_token / (flops / statistics.median(yardstick)), 3)
        result.append(row)
    return result
