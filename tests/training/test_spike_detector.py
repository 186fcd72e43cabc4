"""Test the definition of a spike."""

from __future__ import annotations

import math

import pytest

from lmcourse.training.spike_detector import MIN_NORMS, SpikeDetector


def test_spikes_are_relative_to_the_median_of_recent_norms() -> None:
    watch = SpikeDetector(5.0)
    assert [watch.observe(100.0) for _ in range(MIN_NORMS - 1)] == [None] * (MIN_NORMS - 1)
    assert watch.observe(math.inf) is None
    assert watch.observe(499.0) is None
    assert watch.observe(500.0) is None
    assert watch.observe(501.0) == pytest.approx(5.01)
    again = SpikeDetector(5.0, watch.norms)
    assert again.observe(600.0) == watch.observe(600.0) == 6.0
