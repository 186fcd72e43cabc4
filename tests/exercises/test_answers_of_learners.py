"""Test typical answers of learners, and their reports."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.exercises import check, check_exercise, checking
from lmcourse.report import Report
from tests.exercises.toy import answering, counting, doubling


def report_on(answer: Callable[..., Any], **changes: Any) -> Report:
    return check_exercise(doubling(**changes), answer)


def first_message(report: Report) -> str:
    return next(case.message for case in report.cases if not case.passed)


def test_a_right_answer_earns_all_points() -> None:
    report = report_on(lambda x: x + x)
    assert report.passed
    assert repr(report) == "2"
    assert [case.passed for case in report.cases] == [True, True]


def test_a_stub_earns_nothing_and_is_reported_as_unanswered() -> None:
    def double(x: Tensor) -> Tensor:
        raise NotImplementedError

    report = report_on(double)
    assert (report.points, report.answered) == (0, False)
    assert "Nothing here yet" in str(report)
    assert "✗" not in str(report)


def test_a_forgotten_return_is_named() -> None:
    assert report_on(lambda x: None).diagnosis == "Your function returns None."


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda x: (2 * x)[None], "expected shape (2,), yours is (1, 2)"),
        (lambda x: (2 * x).double(), "expected dtype float32, yours is float64"),
        (lambda x: (2 * x).to("meta"), "expected on cpu, yours is on meta"),
        (lambda x: (2 * x).tolist(), "expected a tensor of shape (2,), yours is a list or tuple"),
        (lambda x: x / 0, "expected 2, yours inf"),
        (lambda x: x * float("nan"), "expected 2, yours nan"),
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


def test_an_input_must_not_be_changed_in_place() -> None:
    report = report_on(lambda x: x.mul_(2))
    assert not report.passed
    assert "it changes input `x` in place" in first_message(report)


def test_printed_text_and_warnings_appear_only_in_the_report(capfd: pytest.CaptureFixture[str]) -> None:
    def double(x: Tensor) -> Tensor:
        print("half way")
        print("oh", file=sys.stderr)
        warnings.warn("careful", stacklevel=2)
        return 2 * x

    report = report_on(double)
    assert report.passed
    assert "half way" in str(report)
    assert "UserWarning: careful" in str(report)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("swallow", [False, True], ids=["plain loop", "loop that catches every Exception"])
def test_an_endless_loop_is_stopped(swallow: bool) -> None:
    def double(x: Tensor) -> Tensor:
        while True:
            try:
                x = x + 1
            except Exception:
                if not swallow:
                    raise

    report = report_on(double, seconds=0.3)
    assert "still running after 0.3 s" in first_message(report)
    assert report.points == 0


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


def test_a_sleeping_answer_is_stopped() -> None:
    assert "still running" in first_message(report_on(lambda x: time.sleep(60), seconds=0.3))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process limit its own memory")
@pytest.mark.parametrize("allocate", [lambda: torch.ones(2**33), lambda: [0] * 2**33], ids=["torch", "python"])
def test_a_huge_allocation_is_rejected(allocate: Callable[[], Any]) -> None:
    message = first_message(report_on(lambda x: allocate()))
    assert "more memory than this check allows" in message


def test_sys_exit_ends_the_case_and_not_the_kernel() -> None:
    assert "SystemExit" in first_message(report_on(lambda x: sys.exit(3)))


def test_a_user_interrupt_stops_the_check() -> None:
    def double(x: Tensor) -> Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report_on(double)


def test_an_exception_that_cannot_print_itself_is_reported() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def double(x: Tensor) -> Tensor:
        raise BrokenError

    assert "BrokenError" in first_message(report_on(double))


def test_the_closest_misconception_is_named() -> None:
    assert report_on(lambda x: x**2).diagnosis == "You square instead of doubling."
    assert report_on(lambda x: 2 * abs(x)).diagnosis == "You forget the sign."
    assert report_on(lambda x: x**3).diagnosis == ""


def test_a_factor_and_a_sign_are_recognised_without_a_misconception() -> None:
    assert "except for its sign" in report_on(lambda x: -2 * x).diagnosis
    assert "is 3 times the expected one" in report_on(lambda x: 6 * x).diagnosis


def test_an_answer_must_raise_the_references_exception() -> None:
    def refuse(x: Tensor) -> Tensor:
        raise ValueError("bad")

    wanted = {"reference": refuse, "hidden_cases": None}
    assert report_on(refuse, **wanted).passed
    assert "expected ValueError to be raised" in first_message(report_on(lambda x: x, **wanted))
    assert "expected ValueError, but it raises KeyError" in first_message(report_on(lambda x: {}[0], **wanted))


def test_a_class_is_tested_by_a_script() -> None:
    class Counter:
        def __init__(self, start: int = 0) -> None:
            self.count = start

        def add(self, amount: int) -> Counter:
            self.count += amount
            return self

    report = check_exercise(counting(), Counter)
    assert [case.passed for case in report.cases] == [True, False]
    assert "expected ValueError to be raised" in first_message(report)


def test_a_value_is_checked_without_showing_the_right_one() -> None:
    wrong = check_exercise(answering(), lambda: 41)
    assert wrong.points == 0
    assert "42" not in str(wrong) + wrong._repr_html_() + str(wrong.to_json())
    assert check_exercise(answering(), lambda: 13).diagnosis == "You added."
    assert check_exercise(answering(), lambda: 42.0).passed
    blank = check_exercise(answering(), lambda: None)
    assert (blank.answered, blank.points) == (False, 0)
