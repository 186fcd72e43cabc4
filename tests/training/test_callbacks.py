"""The bar shows the progress of a run, or lines without a terminal; TensorBoard reads the trainer's records."""

from __future__ import annotations

import io
import logging
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.control import strip_control_codes

from lmcourse.training.callbacks import ProgressBar, TensorBoard
from lmcourse.training.metrics import read_metrics
from lmcourse.training.training_config import TrainingConfig
from tests.training import runs

CONFIG = TrainingConfig(steps=2000, batch=2, seq_len=16)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    """A clock that tests advance."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Console:
    """A terminal that writes to a string."""
    for name in ("CI", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return Console(file=io.StringIO(), force_terminal=True, width=80)


@pytest.fixture
def file() -> Console:
    return Console(file=io.StringIO(), width=80)


def written(console: Console) -> str:
    """Return the written text without colours and cursor movements."""
    assert isinstance(console.file, io.StringIO)
    return strip_control_codes(ESCAPES.sub("", console.file.getvalue()))


def record(step: int, **more: Any) -> Mapping[str, Any]:
    return {"step": step, "tokens": 32 * step, "loss": 2.0 + 0.1 * step, "tokens_per_second": 5130.4, **more}


def test_a_terminal_shows_a_bar_with_all_numbers(terminal: Console) -> None:
    clock = Clock()
    with ProgressBar(CONFIG, console=terminal, clock=clock) as bar:
        for step in range(1, 101):
            clock.seconds = step / 10
            bar(record(step, **({"validation_loss": 2.25} if step == 50 else {}), mfu=0.4118))
    lines = written(terminal).splitlines()
    assert all(len(line) <= 80 for line in lines)
    last = lines[-2:]
    assert "100/2,000 steps, 0:03:10 left" in last[0]
    assert "━" in last[0]
    assert last[1].strip() == "loss 11.050 (mean of 20 steps) · validation 2.250 · 5,130 tokens/s · MFU 41.2%"


def test_log_messages_appear_above_the_bar(terminal: Console) -> None:
    with ProgressBar(CONFIG, console=terminal) as bar:
        bar(record(1))
        logging.getLogger("lmcourse.training.trainer").warning("step %d: the norm is [bold]%.3g[/]", 2, 7.0)
        bar(record(2))
    lines = written(terminal).splitlines()
    assert "warning: step 2: the norm is [bold]7[/]" in lines
    assert lines.index("warning: step 2: the norm is [bold]7[/]") < len(lines) - 2
    assert "2/2,000" in lines[-2]


def test_the_bars_log_handler_is_removed_at_the_end(terminal: Console) -> None:
    before = list(logging.getLogger("lmcourse").handlers)
    with pytest.raises(KeyboardInterrupt), ProgressBar(CONFIG, console=terminal):
        raise KeyboardInterrupt
    assert logging.getLogger("lmcourse").handlers == before


def test_output_to_a_file_gets_occasional_lines(file: Console) -> None:
    clock = Clock()
    with ProgressBar(CONFIG, console=file, clock=clock) as bar:
        for step in range(1, 101):
            clock.seconds = step / 4
            bar(record(step))
    lines = written(file).splitlines()
    assert [int(re.findall(r"step (\d+)/2,000", line)[0]) for line in lines] == [1, 41, 81, 100]
    assert ", 0:07:55 left: loss 11.050 (mean of 20 steps)" in lines[-1]
    assert "\x1b" not in written(file)


@pytest.mark.parametrize("variable", ["CI", "TERM"])
def test_continuous_integration_and_dumb_terminals_get_lines(
    terminal: Console, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "dumb" if variable == "TERM" else "true")
    with ProgressBar(CONFIG, console=Console(file=terminal.file, force_terminal=True)) as bar:
        bar(record(1))
    assert written(terminal) == "step 1/2,000 steps: loss 2.100 (mean of 1 step) · 5,130 tokens/s\n"


def test_the_time_left_counts_from_where_a_run_continues(file: Console) -> None:
    clock = Clock()
    with ProgressBar(CONFIG, console=file, clock=clock) as bar:
        for step in range(1001, 1012):
            clock.seconds += 1
            bar(record(step))
    assert "step 1,011/2,000 steps, 0:16:29 left" in written(file)


@pytest.mark.parametrize(("tokens", "steps"), [(None, 2000), (320, 10), (350, 10), (10**9, 2000)])
def test_a_budget_of_tokens_ends_the_bar(tokens: int | None, steps: int) -> None:
    assert TrainingConfig(steps=2000, batch=2, seq_len=16, max_tokens=tokens).most_steps == steps


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
