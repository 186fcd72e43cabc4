"""The mean around each step is NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from lmcourse.training.metrics import running_mean

VALUES = np.random.default_rng(0).normal(size=57)


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 11, 50, 500])
def test_it_is_the_mean_of_a_slice(steps: int) -> None:
    half = steps // 2
    expected = [VALUES[max(0, i - half) : i + half + 1].mean() for i in range(len(VALUES))]
    assert running_mean(VALUES.tolist(), steps) == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_a_straight_line_stays_where_it_is() -> None:
    line = np.linspace(5, 1, 100)
    assert running_mean(line.tolist(), 21)[10:-10] == pytest.approx(line[10:-10], rel=1e-13)


def test_one_step_changes_nothing() -> None:
    assert running_mean([0.5, 4.0, 0.25], 1).tolist() == [0.5, 4.0, 0.25]


def test_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 step, not of 0"):
        running_mean([1.0], 0)
