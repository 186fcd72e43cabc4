"""The code blocks of docs/library.md run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_every_code_block_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "library.md", "exec"), names)
    said = capsys.readouterr().out
    loss = re.search(r"^(\d\.\d\d) nats per byte$", said, re.M)
    assert loss
    assert abs(float(loss[1]) - 2.0) < 0.1
    assert said.count("The ") >= 2
    assert "True\n8,030,261,248 parameters" in said
