"""Forbidden things are found however they are reached, and nothing else is."""

from __future__ import annotations

import argparse
import dis
import inspect
import math
import typing
from collections.abc import Callable, Iterator
from math import frexp as split_float
from types import CodeType, ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import BaseTorchFunctionMode, _get_current_function_mode_stack, _pop_mode

from lmcourse import numerics
from lmcourse.exercises import check_exercise
from lmcourse.exercises.forbidden_calls import ForbiddenCallRecorder
from lmcourse.exercises.forbidden_names import forbidden_in_source, global_names, matches
from lmcourse.exercises.limits import TimeLimitExceeded
from lmcourse.exercises.outcome import run_case
from tests.exercises.toy import Counter, doubling

FORBID = ("torch.softmax", ".softmax", "math.frexp", "struct", "lmcourse")
soft = torch.softmax


def helper(x: Tensor) -> Tensor:
    return F.softmax(x, dim=-1)


def by_name(x: Tensor) -> Any:
    return torch.softmax(x, -1)


def by_alias(x: Tensor) -> Any:
    return soft(x, -1)


def by_module_alias(x: Tensor) -> Any:
    return F.softmax(x, -1)


def by_method(x: Tensor) -> Any:
    return x.softmax(-1)


def by_helper(x: Tensor) -> Any:
    return helper(x)


def by_import(x: Tensor) -> Any:
    from torch import softmax as s

    return s(x, -1)


def by_builtin(x: Tensor) -> Any:
    return split_float(x.sum().item())[0]


def by_our_package(x: Tensor) -> Any:
    return numerics.round_to(x.sum().item(), numerics.FP16)


def by_module(x: Tensor) -> Any:
    import struct

    return struct.calcsize("f")


def by_getattr(x: Tensor) -> Any:
    return getattr(torch, "soft" + "max")(x, -1)


def by_getattr_on_math(x: Tensor) -> Any:
    return getattr(math, "fre" + "xp")(1.0)


def by_class(x: Tensor) -> Any:
    return Softmaxer().run(x)


class Softmaxer:
    def run(self, x: Tensor) -> Any:
        return x.softmax(-1)


IN_SOURCE = [
    by_name,
    by_alias,
    by_module_alias,
    by_method,
    by_helper,
    by_import,
    by_builtin,
    by_our_package,
    by_module,
    by_class,
]
AT_RUN_TIME = [*IN_SOURCE, by_getattr, by_getattr_on_math]


@pytest.mark.parametrize("answer", IN_SOURCE, ids=lambda f: f.__name__)
def test_the_source_gives_it_away(answer: Callable[..., Any]) -> None:
    assert forbidden_in_source(answer, FORBID)


@pytest.mark.parametrize("answer", AT_RUN_TIME, ids=lambda f: f.__name__)
def test_the_call_gives_it_away(answer: Callable[..., Any]) -> None:
    case = doubling().cases[0]
    assert run_case(answer, case, forbid=FORBID).forbidden


def innocent(x: Tensor) -> Any:
    softmax = int(x.numel())
    weights = (x - x.amax()).exp()
    values = [abs(float(v)) + softmax for v in weights]
    return torch.tensor(sorted(values)) / max(sum(values), math.sqrt(2))


def test_the_innocent_are_left_alone() -> None:
    assert forbidden_in_source(innocent, FORBID) == []
    assert run_case(innocent, doubling().cases[0], forbid=FORBID).forbidden == ()


def test_a_class_is_read_method_by_method() -> None:
    assert forbidden_in_source(Softmaxer, (".softmax",)) == [".softmax"]
    assert forbidden_in_source(Counter, FORBID) == []


def test_a_broken_rule_costs_all_points_and_is_named() -> None:
    def double(x: Tensor) -> Tensor:
        return torch.add(x, x)

    report = check_exercise(doubling(forbid=["torch.add"]), double)
    assert report.points == 0
    assert all(case.passed for case in report.cases)
    assert "without `torch.add`" in report.diagnosis


def test_our_own_package_is_forbidden_unless_an_exercise_allows_it() -> None:
    def double(x: Tensor) -> Tensor:
        numerics.round_to(1.0, numerics.FP16)
        return 2 * x

    assert check_exercise(doubling(), double).points == 0
    assert check_exercise(doubling(may_use_package=True), double).passed


def test_the_reference_is_forbidden_even_then() -> None:
    from lmcourse.chapters.floating_point.exercises.dot_product import _dot

    def double(x: Tensor) -> Tensor:
        _dot(x, x, torch.float32, torch.float32)
        return 2 * x

    assert check_exercise(doubling(may_use_package=True), double).points == 0


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("torch.softmax", True),
        ("torch.softmax_backward", False),
        ("struct.pack", True),
        ("structure", False),
        ("torch.Tensor.softmax", True),
        ("torch.nn.Softmax", False),
    ],
)
def test_what_a_rule_covers(name: str, covered: bool) -> None:
    assert matches(name, FORBID) is covered


def interrupted_within_torch() -> None:
    _pop_mode()  # as torch does before it calls a mode, and undoes behind
    raise TimeLimitExceeded


def test_a_time_limit_that_interrupts_while_torch_holds_the_mode_back_leaves_torch_as_it_was() -> None:
    with BaseTorchFunctionMode():  # type: ignore[no-untyped-call]
        before = _get_current_function_mode_stack()
        with pytest.raises(TimeLimitExceeded), ForbiddenCallRecorder(("torch.sum",)):
            interrupted_within_torch()
        assert _get_current_function_mode_stack() == before
        with ForbiddenCallRecorder(("torch.sum",)) as recorder:
            torch.sum(torch.zeros(2))
        assert _get_current_function_mode_stack() == before
    assert recorder.seen == ["torch.sum"]


def found_by_dis(code: CodeType) -> Iterator[str]:
    for one in dis.get_instructions(code):
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield one.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from found_by_dis(inner)


MANY_NAMES = "def f():\n    return [" + ", ".join(f"g{number}, {number}.5" for number in range(40_000)) + "]"


@pytest.mark.parametrize("module", [argparse, inspect, typing, torch.overrides, None])
def test_the_global_names_of_code_are_those_that_dis_finds(module: ModuleType | None) -> None:
    text = MANY_NAMES if module is None else inspect.getsource(module)
    code = compile(text, "<text>", "exec")
    found = [*global_names(code)]
    assert found == [*found_by_dis(code)]
    assert len({*found}) > 50
