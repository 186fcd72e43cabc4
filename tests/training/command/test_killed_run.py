"""A run that is killed: what it leaves, and a run that fails before."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.training.command.train_run import train_and_kill
from lmcourse.training.command.trained_model import load_trained_model
from lmcourse.training.metrics import read_metrics

pytestmark = pytest.mark.prove

SETTINGS = {"preset": "nano", "tokenizer": "bytes", "batch": 2, "seq_len": 16, "checkpoint_every": 5}


def test_a_killed_run_leaves_a_checkpoint(tmp_path: Path) -> None:
    """It would have gone on for a very long time."""
    corpus = tmp_path / "text"
    corpus.mkdir()
    (corpus / "one.txt").write_text("To be killed in the middle is what this run is for. " * 40)
    train_and_kill({**SETTINGS, "corpus": str(corpus), "steps": 1_000_000}, tmp_path / "run", after=12)
    steps = [record["step"] for record in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert steps == list(range(1, len(steps) + 1))
    assert 12 <= len(steps) < 1_000_000
    newest = load_trained_model(tmp_path / "run", last=True).step
    assert newest % 5 == 0
    assert 10 <= newest <= len(steps)


def test_a_failed_run_prints_how_to_see_its_error(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="To see why, run: lmcourse train --no-such-setting 3 --recipe adamw --out"):
        train_and_kill({"no_such_setting": 3}, tmp_path / "run", after=1)
