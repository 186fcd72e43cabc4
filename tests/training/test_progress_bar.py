"""The bar shows the progress of a run, with log messages above it; without a terminal there are lines."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console
from rich.control import strip_control_codes

from lmcourse.training.callbacks import ProgressBar
from lmcourse.training.training_config import TrainingConfig

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
