"""Metrics have a line per step even after crashes, and the running mean matches NumPy's."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from lmcourse.base.errors import CourseError
from lmcourse.training.metrics import MetricsFile, read_metrics, running_mean


def write(path: Path, steps: range) -> None:
    with MetricsFile(path) as metrics:
        for step in steps:
            metrics.write({"step": step, "loss": 1 / step})


def test_each_line_is_json_and_is_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with MetricsFile(path) as metrics:
        for step in range(1, 4):
            metrics.write({"step": step, "loss": 0.1 * step})
            lines = path.read_text(encoding="utf-8").splitlines()
            assert [json.loads(line) for line in lines] == [{"step": n, "loss": 0.1 * n} for n in range(1, step + 1)]


def test_infinite_numbers_and_nan_are_written_as_null(tmp_path: Path) -> None:
    with MetricsFile(tmp_path / "m") as metrics:
        metrics.write({"step": 1, "loss": math.nan, "gradient_norm": -math.inf, "skipped": True})
    assert (tmp_path / "m").read_bytes() == b'{"step": 1, "loss": null, "gradient_norm": null, "skipped": true}\n'


@pytest.mark.parametrize("kept", [0, 5, 10, 30])
def test_truncated_steps_can_be_written_again(tmp_path: Path, kept: int) -> None:
    write(tmp_path / "m", range(1, 11))
    with MetricsFile(tmp_path / "m") as metrics:
        metrics.truncate(kept)
    assert [record["step"] for record in read_metrics(tmp_path / "m")] == list(range(1, min(kept, 10) + 1))
    write(tmp_path / "m", range(min(kept, 10) + 1, 13))
    assert [record["step"] for record in read_metrics(tmp_path / "m")] == list(range(1, 13))


@pytest.mark.parametrize("damage", [b'{"ste\n', b'{"loss": 1.0}\n', b"[" * 100_000 + b"\n", bytes(9) + b"\n"])
def test_a_damaged_line_in_the_middle_deletes_nothing(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m"
    write(path, range(1, 4))
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + b"".join(others))
    before = path.read_bytes()
    with MetricsFile(path) as metrics, pytest.raises(CourseError, match=r"line 2 of .*m is damaged, and more steps"):
        metrics.truncate(3)
    assert path.read_bytes() == before


def test_a_line_cut_off_anywhere_is_dropped(tmp_path: Path) -> None:
    """A killed process leaves a partial last line, and a crashed machine may leave zeros."""
    path = tmp_path / "m"
    write(path, range(1, 4))
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    ends = [whole[:end] for end in range(start, len(whole))] + [whole[:start] + bytes(9) + b"\n"]
    for end in ends:
        path.write_bytes(end)
        assert [record["step"] for record in read_metrics(path)] == [1, 2]
        with MetricsFile(path) as metrics:
            metrics.truncate(3)
        write(path, range(3, 4))
        assert path.read_bytes() == whole


VALUES = np.random.default_rng(0).normal(size=57)


@pytest.mark.parametrize("steps", [1, 10, 11, 500])
def test_running_mean_matches_the_mean_of_a_slice(steps: int) -> None:
    half = steps // 2
    expected = [VALUES[max(0, i - half) : i + half + 1].mean() for i in range(len(VALUES))]
    assert running_mean(VALUES.tolist(), steps) == pytest.approx(expected, rel=1e-12, abs=1e-14)
