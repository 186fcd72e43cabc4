"""Repeated checks give the same report, and they do not change the notebook's state."""

from __future__ import annotations

import logging
import random
import sys
import warnings

import pytest
import torch
from torch import Tensor

from lmcourse.exercises import case, check_exercise
from lmcourse.exercises.isolated_state import MAX_PRINTED_CHARS
from lmcourse.exercises.outcome import run_case
from tests.exercises.toy import doubling

CASE = case("one", 1.0)


def test_checks_use_fixed_random_numbers_and_restore_the_notebooks() -> None:
    def draw(x: float) -> list[float]:
        return [random.random(), torch.rand(()).item()]

    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(2)[1], [random.random(), random.random()][1]
    torch.manual_seed(5)
    random.seed(5)
    torch.rand(1)
    random.random()
    first = run_case(draw, CASE).value
    assert (torch.rand(1)[0], random.random()) == expected
    torch.manual_seed(6)
    random.seed(6)
    assert run_case(draw, CASE).value == first


def test_modes_of_torch_are_restored() -> None:
    def meddle(x: float) -> float:
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        return x / 0

    assert run_case(meddle, CASE).failure is not None
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32


def test_prints_warnings_and_logs_stay_out_of_the_graded_cell(capfd: pytest.CaptureFixture[str]) -> None:
    def talk(x: float) -> float:
        print("printed")
        print("to stderr", file=sys.stderr)
        logging.getLogger("learner").warning("logged")
        warnings.warn("warned", stacklevel=1)
        return x

    outcome = run_case(talk, CASE)
    assert capfd.readouterr() == ("", "")
    assert outcome.value == 1.0
    assert "printed" in outcome.printed
    assert "to stderr" in outcome.printed
    assert outcome.warned == ("UserWarning: warned",)


def test_a_flood_of_output_is_cut_off() -> None:
    def flood(x: float) -> float:
        for _ in range(1000):
            print("." * 1000)
            warnings.warn("again", stacklevel=1)
        return x

    outcome = run_case(flood, CASE)
    assert len(outcome.printed) == MAX_PRINTED_CHARS
    assert len(outcome.warned) == 1
    assert all(len(note) < 250 for note in check_exercise(doubling(), lambda x: flood(2 * x)).notes)


def test_shown_text_has_no_control_characters() -> None:
    class MuteWarning(UserWarning):
        told = False

        def __str__(self) -> str:
            if self.told:
                raise ValueError
            self.told = True
            return "once"

    def rude(x: torch.Tensor) -> torch.Tensor:
        print("\x1b[2Jgone \ud800")
        warnings.warn(MuteWarning(), stacklevel=1)
        raise ValueError("\x1b[31mred\ud800\nand more")

    report = check_exercise(doubling(), rude)
    text = str(report) + report._repr_html_() + "".join(report.to_json()["notes"])
    text.encode()
    assert "\x1b" not in text
    assert "red" in text
    assert "moreb" not in text
    assert "It warned: MuteWarning: " in report.notes


def test_a_compiled_answer_runs_as_it_is_written() -> None:
    @torch.compile
    def double(x: Tensor) -> Tensor:
        return x + x

    assert check_exercise(doubling(forbid=["torch.softmax"], seconds=0.5), double).passed
