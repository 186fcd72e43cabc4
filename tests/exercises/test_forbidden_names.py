"""Forbidden names are found in the source of an answer in any spelling, without false alarms."""

from __future__ import annotations

import argparse
import dis
import inspect
import typing
from collections.abc import Callable, Iterator
from math import frexp as split_float
from types import CodeType, ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse import numerics
from lmcourse.exercises import check_exercise
from lmcourse.exercises.forbidden_names import Use, forbidden_in_source, global_names, matches
from tests.exercises.toy import doubling

LAYER = torch.nn.Softmax(dim=-1)
FORBID = ("torch.softmax", ".softmax", "math.frexp", "struct", "lmcourse")
soft = torch.softmax


def helper(x: Tensor) -> Tensor:
    return F.softmax(x, dim=-1)


def by_import(x: Tensor) -> Any:
    from torch import softmax as s

    return s(x, -1)


def by_module(x: Tensor) -> Any:
    import struct

    return struct.calcsize("f")


class Softmaxer:
    def run(self, x: Tensor) -> Any:
        return x.softmax(-1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: soft(x, -1),
        lambda x: F.softmax(x, -1),
        lambda x: x.softmax(-1),
        lambda x: helper(x),
        lambda x: split_float(x.sum().item())[0],
        lambda x: numerics.round_to(x.sum().item(), numerics.FP16),
        lambda x: Softmaxer().run(x),
        by_import,
        by_module,
        Softmaxer,
    ],
)
def test_a_forbidden_name_is_found_in_the_source(answer: Callable[..., Any]) -> None:
    assert forbidden_in_source(answer, FORBID)


def test_a_use_names_the_line_and_its_number() -> None:
    [used, *_] = forbidden_in_source(lambda x: helper(x), FORBID)
    number = inspect.getsourcelines(helper)[1] + 1
    assert used == Use(".softmax", "return F.softmax(x, dim=-1)", number)


def test_an_object_is_named_by_its_class() -> None:
    def by_object(x: Tensor) -> Any:
        return LAYER(x)

    assert forbidden_in_source(by_object, ("torch.nn",))[0].name == "torch.nn.modules.activation.Softmax"


def test_our_own_package_is_forbidden_unless_an_exercise_allows_it() -> None:
    def double(x: Tensor) -> Tensor:
        numerics.round_to(1.0, numerics.FP16)
        return 2 * x

    assert check_exercise(doubling(), double).points == 0
    assert check_exercise(doubling(may_use_package=True), double).passed


def test_the_reference_is_always_forbidden() -> None:
    def double(x: Tensor) -> Tensor:
        from lmcourse.chapters.floating_point.exercises.dot_product import _dot

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
def test_a_rule_covers_the_listed_names(name: str, covered: bool) -> None:
    assert matches(name, FORBID) is covered


def found_by_dis(code: CodeType) -> Iterator[str]:
    for one in dis.get_instructions(code):
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield one.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from found_by_dis(inner)


MANY_NAMES = "def f():\n    return [" + ", ".join(f"g{number}, {number}.5" for number in range(40_000)) + "]"


@pytest.mark.parametrize("module", [argparse, inspect, typing, torch.overrides, None])
def test_global_names_match_dis(module: ModuleType | None) -> None:
    text = MANY_NAMES if module is None else inspect.getsource(module)
    code = compile(text, "<text>", "exec")
    found = [*global_names(code)]
    assert found == [*found_by_dis(code)]
    assert len({*found}) > 50
