"""The table of `python -m lmcourse.accounting.proof`."""

from __future__ import annotations

import io
import runpy
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from lmcourse.accounting.proof import proof_table, prove
from lmcourse.models.zoo import find as zoo
from lmcourse.models.zoo.find import find_model

PROVED = [prove(find_model(name)) for name in ("nano", "t5-small", "gemma-3-1b")]


def test_nothing_differs() -> None:
    assert all(proof.agrees for proof in PROVED)
    assert [proof.name for proof in PROVED] == ["nano", "t5-small", "gemma-3-1b"]


@pytest.mark.parametrize("wrong", ["parameters", "built", "flops", "counted", "saved", "kept"])
def test_one_number_off_is_a_disagreement(wrong: str) -> None:
    assert not replace(PROVED[0], **{wrong: getattr(PROVED[0], wrong) + 1}).agrees


def test_the_table_shows_differences() -> None:
    page = Console(file=io.StringIO(), width=120, record=True)
    page.print(proof_table([*PROVED, replace(PROVED[0], name="broken", counted=PROVED[0].flops + 1234)]))
    rows = {line.split()[0]: line.split()[1:] for line in page.export_text().splitlines() if line.strip()}
    assert rows["t5-small"] == ["60,506,624", "0", f"{PROVED[1].flops:,}", "0", "–", "–"]
    assert rows["nano"][4:] == [f"{PROVED[0].saved:,}", "0"]
    assert rows["broken"][3] == "-1,234"


def test_the_program_says_by_its_status_that_all_agree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(zoo, "_MODELS", {"nano": find_model("nano")})
    monkeypatch.delitem(sys.modules, "lmcourse.accounting.proof")
    with pytest.raises(SystemExit) as end:
        runpy.run_module("lmcourse.accounting.proof", run_name="__main__")
    assert end.value.code == 0
    assert "nano" in capsys.readouterr().out
