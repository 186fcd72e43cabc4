"""What a spike is."""

from __future__ import annotations

import math

import pytest

from lmcourse.training.spikes import FEWEST, SpikeWatch


def test_what_is_usual_is_the_median_of_the_last_norms() -> None:
    watch = SpikeWatch(5.0)
    assert [watch.see(100.0) for _ in range(FEWEST - 1)] == [None] * (FEWEST - 1)
    assert watch.see(math.inf) is None
    assert watch.see(499.0) is None
    assert watch.see(500.0) is None
    assert watch.see(501.0) == pytest.approx(5.01)
    again = SpikeWatch(5.0, watch.norms)
    assert again.see(600.0) == watch.see(600.0) == 6.0
