"""The table of `python -m lmcourse.accounting.proof`."""

from __future__ import annotations

import io
import runpy
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from lmcourse.accounting.proof import CountCheck, check_counts, check_table
from lmcourse.models.zoo import find as zoo
from lmcourse.models.zoo import find_model


@pytest.fixture(scope="module")
def checked() -> list[CountCheck]:
    """The counts of three models; here and not above, where whoever collects tests would wait for them."""
    return [check_counts(find_model(name)) for name in ("nano", "t5-small", "gemma-3-1b")]


def test_nothing_differs(checked: list[CountCheck]) -> None:
    assert all(check.agrees for check in checked)
    assert [check.name for check in checked] == ["nano", "t5-small", "gemma-3-1b"]


@pytest.mark.parametrize(
    "wrong", [f"{how}_{what}" for how in ("predicted", "measured") for what in ("parameters", "flops", "saved_bytes")]
)
def test_one_number_off_is_a_disagreement(checked: list[CountCheck], wrong: str) -> None:
    assert not replace(checked[0], **{wrong: getattr(checked[0], wrong) + 1}).agrees


def test_the_table_shows_differences(checked: list[CountCheck]) -> None:
    page = Console(file=io.StringIO(), width=120, record=True)
    page.print(
        check_table([*checked, replace(checked[0], name="broken", measured_flops=checked[0].predicted_flops + 1234)])
    )
    rows = {line.split()[0]: line.split()[1:] for line in page.export_text().splitlines() if line.strip()}
    assert rows["t5-small"] == ["60,506,624", "0", f"{checked[1].predicted_flops:,}", "0", "–", "–"]
    assert rows["nano"][4:] == [f"{checked[0].predicted_saved_bytes:,}", "0"]
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
