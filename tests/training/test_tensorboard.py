"""TensorBoard reads the trainer's records; if it is not installed, one line says what to do."""

from __future__ import annotations

import logging
import math
import sys
from pathlib import Path

import pytest

from lmcourse.training.callbacks import TensorBoard
from lmcourse.training.metrics import read_metrics
from tests.training import runs


def read(folder: Path) -> dict[str, dict[int, float]]:
    """Return all scalars by name and step, read with TensorBoard itself."""

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    scalars = {name: events.Scalars(name) for name in events.Tags()["scalars"]}
    for values in scalars.values():
        assert len({event.step for event in values}) == len(values), "a step is shown twice"
    return {name: {event.step: event.value for event in values} for name, values in scalars.items()}


@pytest.mark.usefixtures("one_thread")
def test_every_number_of_a_run_is_in_the_event_file(tmp_path: Path) -> None:
    with TensorBoard(tmp_path / "events") as board:
        runs.trainer(tmp_path, callbacks=[board]).run()
    found = read(tmp_path / "events")
    told = read_metrics(tmp_path / "metrics.jsonl")
    assert set(found) == {name for record in told for name in record} - {"step"}
    for name, values in found.items():
        expected = {record["step"]: record[name] for record in told if name in record}
        assert values == pytest.approx(expected, rel=1e-6), "event files hold fp32"


def test_a_resumed_run_removes_repeated_steps(tmp_path: Path) -> None:
    with TensorBoard(tmp_path) as board:
        for step in range(1, 6):
            board({"step": step, "loss": float(step)})
    with TensorBoard(tmp_path) as board:
        for step in range(4, 8):
            board({"step": step, "loss": 10.0 * step})
    assert read(tmp_path)["loss"] == {1: 1.0, 2: 2.0, 3: 3.0, 4: 40.0, 5: 50.0, 6: 60.0, 7: 70.0}


def test_nonnumeric_fields_are_left_out(tmp_path: Path) -> None:
    with TensorBoard(tmp_path) as board:
        board({"step": 1, "loss": 2.0, "mfu_of": "a GPU", "skipped": True, "gradient_norm": math.inf})
    assert read(tmp_path) == {"loss": {1: 2.0}, "skipped": {1: 1.0}, "gradient_norm": {1: math.inf}}


def test_without_the_package_a_line_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with caplog.at_level(logging.WARNING), TensorBoard(tmp_path / "events") as board:
        board({"step": 1, "loss": 2.0})
    (message,) = caplog.messages
    assert 'pip install "lmcourse[tensorboard]"' in message
    assert not (tmp_path / "events").exists()
