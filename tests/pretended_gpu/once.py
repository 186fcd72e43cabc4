"""Time each function with a single run, because on a simulated GPU all runs are the same."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping
from unittest import mock

from lmcourse.accounting import timing
from lmcourse.accounting.timing import Timing
from lmcourse.bench import speedups

_REAL = timing.time_interleaved


@contextlib.contextmanager
def timed_once() -> Iterator[None]:
    """Run timed functions only once, without warm-up, inside a `with` block."""
    with mock.patch.object(timing, "time_interleaved", _once), mock.patch.object(speedups, "time_interleaved", _once):
        yield


def _once(functions: Mapping[str, Callable[[], object]], **how: object) -> dict[str, Timing]:
    gc.freeze()  # timing collects garbage first, which would take longer than the timed function
    return _REAL(functions, **{**how, "warmup": 0, "repeats": 1, "seconds": 0.0})  # type: ignore[arg-type]
