"""`lmcourse bench` passes its options to the measurement and prints the results."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.bench import bench as bench_module
from lmcourse.bench.bench import Bench, bench
from lmcourse.cli import main

FAST = Accelerator("fast", "a fast machine", {"fp32": 1e12}, 1e10, 2**30, None, None, ("made up",))


def half_a_second(function: Callable[[], object]) -> float:
    function()
    return 0.5


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the options of the command, and give it a measurement of a tiny model."""
    given: list[object] = []

    def measure(model: str | None, **options: object) -> Bench:
        given.extend([model, options])
        print("noise")
        return bench("nano", batch=1, seq_len=8, steps=2, device="cpu", machine=FAST, stopwatch=half_a_second)

    monkeypatch.setattr(bench_module, "bench", measure)
    return given


def test_bench_measures_the_typed_sizes(asked: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "--model", "micro", "--batch", "2", "--seq-len", "32", "--steps", "4", "--precision", "bf16"]
    assert main(words) == 0
    assert asked == ["micro", {"batch": 2, "seq_len": 32, "steps": 4, "precision": "bf16"}]
    out = capsys.readouterr().out
    for text in ("a fast machine", "nano, 1 × 8 tokens, fp32", "training step", "500.0 ms", "MFU"):
        assert text in out


def test_json_is_one_document_even_if_code_prints(asked: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--json", "--steps", "1"]) == 0
    assert asked == [None, {"batch": 4, "seq_len": 256, "steps": 1, "precision": None}]
    out, err = capsys.readouterr()
    assert json.loads(out)["model"] == "nano"
    assert err == "noise\n"


def test_an_unknown_model_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported before the measurement."""
    assert main(["bench", "--model", "mimi"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "Did you mean 'mini'?" in err
