"""Time several models alternately at the same work, so that other load on the machine slows all of them equally."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lmcourse.accounting.timing import make_stopwatch, time_interleaved


@dataclass(frozen=True)
class Workload:
    """A row of the table: the same work for several models.

    Attributes:
        name: the name of the work.
        tokens: number of processed tokens.
        run: for each model, a function that does the work once. Our model is the first.
        kept: for each model, the bytes that autograd keeps for the backward pass.
        matmul_baseline: FLOPs per token of the work, FLOPs of a matrix product, and a function that computes the
            product. It is timed in the same rounds to measure the machine's rate.
    """

    name: str
    tokens: int
    run: dict[str, Callable[[], object]]
    kept: dict[str, int] = field(default_factory=dict)
    matmul_baseline: tuple[float, float, Callable[[], object]] | None = None


def time_workload(
    workload: Workload, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the seconds of every model in every round; the matmul baseline has the name ""."""
    runs = dict(workload.run)
    if workload.matmul_baseline is not None:
        runs[""] = workload.matmul_baseline[2]
    watch = make_stopwatch("cpu", clock)
    timings = time_interleaved(runs, warmup=1, repeats=rounds, before=gc.collect, stopwatch=watch)
    return {name: list(timing.seconds) for name, timing in timings.items()}


def rows(workload: Workload, times: dict[str, list[float]]) -> list[dict[str, object]]:
    """Return a row of the table for each model; `share` is the fraction of the matmul rate."""
    matmul_baseline = times.pop("", None)
    first = next(iter(times))
    result = []
    for name, seconds in times.items():
        ratios = [mine / theirs for mine, theirs in zip(times[first], seconds, strict=True)]
        rate, best = workload.tokens / statistics.median(seconds), workload.tokens / min(seconds)
        row: dict[str, object] = {
            "work": workload.name,
            "who": name,
            "tokens_per_second": round(rate, 1),
            "best": round(best, 1),
            "relative_to_first": round(statistics.median(ratios), 3),
            "share": None,
            "kept_bytes": workload.kept.get(name),
        }
        if workload.matmul_baseline is not None and matmul_baseline is not None:
            per_token, flops, _ = workload.matmul_baseline
            row["share"] = round(rate * per_token / (flops / statistics.median(matmul_baseline)), 3)
        result.append(row)
    return result
