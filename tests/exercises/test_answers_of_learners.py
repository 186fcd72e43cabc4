"""Test typical answers of learners, and their reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.exercises import check, check_exercise, checking
from lmcourse.report import Report
from tests.exercises.toy import doubling


def report_on(answer: Callable[..., Any], **changes: Any) -> Report:
    return check_exercise(doubling(**changes), answer)


def first_message(report: Report) -> str:
    return next(case.message for case in report.cases if not case.passed)


def test_a_stub_earns_nothing_and_is_reported_as_unanswered() -> None:
    def double(x: Tensor) -> Tensor:
        raise NotImplementedError

    report = report_on(double)
    assert (report.points, report.answered) == (0, False)
    assert "Nothing here yet" in str(report)
    assert "✗" not in str(report)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda x: (2 * x).to("meta"), "expected on cpu, yours is on meta"),
        (lambda x: (2 * x).tolist(), "expected a tensor of shape (2,), yours is a list or tuple"),
        (lambda x: lambda: x, "returned a function, which is not a number"),
        (lambda x: (2 * x).numpy(), "yours is a NumPy array: `torch.from_numpy` converts it"),
        (lambda x: (2 * x).expand(1, -1)[0], None),
        (lambda x: x.requires_grad_() * 2, None),
    ],
)
def test_the_first_difference_is_shown(answer: Callable[..., Any], told: str | None) -> None:
    report = report_on(answer)
    assert report.passed if told is None else told in first_message(report)


def test_parameters_unlike_the_notebooks_are_reported() -> None:
    def ulp(exponent_bits: int, mantissa_bits: int, x: float) -> float:
        return 1.0

    def silu(x: Tensor, beta: float = 2.0) -> Tensor:
        return x * (beta * x).sigmoid()

    def stall_point(increment: float) -> float:
        return 1.0

    def AdamW(params: object) -> None:  # noqa: N802 - the exercise's name
        return None

    order = "Your parameters are in another order than in the notebook: `ulp(x, exponent_bits, mantissa_bits)`."
    assert check(ulp).notices == (order,)
    assert check(silu).notices == ("A parameter has another default than in the notebook: `silu(x, beta=1.0)`.",)
    call = "`stall_point(increment, exponent_bits, mantissa_bits)`"
    told = f"Your `stall_point` has other parameters than the notebook's {call}."
    assert check(stall_point).diagnosis == told
    assert check(AdamW).notices == ("The exercise asks for a class: `class AdamW`.",)


def test_the_function_under_a_compiled_one_is_checked() -> None:
    @torch.compile
    def ulp(x: float, exponent_bits: int, mantissa_bits: int) -> float:
        return 1.0

    assert check(ulp).notices == (checking.COMPILED,)


def test_a_wrong_type_is_told_before_as_many_exceptions() -> None:
    told = report_on(lambda x: x.tolist() if x.sum() > 0 else x.missing).diagnosis
    assert told == "In “two numbers”: it gives a list or tuple where a tensor is expected."


def test_an_exception_is_shown_at_the_learners_own_line() -> None:
    def double(x: Tensor) -> Tensor:
        y = x.tolist()
        return y.times(2)  # type: ignore[no-any-return, attr-defined]

    message = first_message(report_on(double))
    assert message.startswith("AttributeError: 'list' object has no attribute 'times', in line ")
    assert "`return y.times(2)" in message
    assert "outcome.py" not in message


def test_an_error_inside_a_library_is_reported_at_the_line_that_called_it() -> None:
    message = first_message(report_on(lambda x: torch.nn.functional.layer_norm(x, (7,))))
    assert message.startswith("RuntimeError:")
    assert "layer_norm(x, (7,))" in message


def test_an_endless_loop_uses_the_full_time_limit_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "SECONDS_AFTER_TIMEOUT", 0.1)

    def double(x: Tensor) -> Tensor:
        while True:
            pass

    report = report_on(double, seconds=0.4)
    assert ["still running after 0.4 s" in case.message for case in report.cases] == [True, False]
    assert all("still running after" in case.message for case in report.cases)


def test_a_slow_case_costs_only_that_case() -> None:
    def double(x: Tensor) -> Tensor:
        if x.numel() == 2:
            time.sleep(60)
        return x + x

    report = report_on(double, seconds=0.3)
    assert [case.passed for case in report.cases] == [False, True]


def test_a_user_interrupt_stops_the_check() -> None:
    def double(x: Tensor) -> Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report_on(double)


def test_an_answer_must_raise_the_references_exception() -> None:
    def refuse(x: Tensor) -> Tensor:
        raise ValueError("bad")

    wanted = {"reference": refuse, "hidden_cases": None}
    assert report_on(refuse, **wanted).passed
    assert "expected ValueError to be raised" in first_message(report_on(lambda x: x, **wanted))
    assert "expected ValueError, but it raises KeyError" in first_message(report_on(lambda x: {}[0], **wanted))
