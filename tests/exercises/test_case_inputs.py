"""`inputs` gives the inputs of a case that a report shows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmcourse.base.errors import CourseError
from lmcourse.exercises import Exercise, case, check_exercise, script
from lmcourse.exercises import case_inputs as module
from lmcourse.exercises.case_code import code_of
from lmcourse.exercises.case_inputs import inputs
from tests.exercises.toy import answering, doubling, shrinking


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {exercise.name: exercise for exercise in (doubling(), answering(), shrinking())}
    monkeypatch.setattr(module, "find_exercise", known.__getitem__)
    monkeypatch.setattr(module, "_opened", set())


def refusal(name: str, of: str) -> str:
    with pytest.raises(CourseError) as caught:
        inputs(name, of)
    return str(caught.value)


def test_inputs_are_new_copies_and_unpack() -> None:
    [x] = inputs("double", "two numbers")
    x.zero_()
    given = inputs("double", "two numbers")
    assert given[0].tolist() == [1.0, 2.0]
    assert given.expected.tolist() == [2.0, 4.0]
    assert repr(given) == "x = tensor([1., 2.])"


def test_hidden_cases_have_inputs_once_a_report_has_shown_them() -> None:
    exercise = doubling()
    assert "hidden=True" in refusal("double", "other sizes")
    report = check_exercise(exercise, lambda x: x, hidden=True)
    [x] = inputs("double", "other sizes 2")
    assert len(x) == 5
    assert str(x[0].item())[:6] in report.cases[3].call


def test_an_unknown_case_is_answered_by_the_nearest_names() -> None:
    assert refusal("double", "two number") == "`double` has no case “two number”. Its cases: “two numbers”."
    assert "“two numbers”, “a negative one”" in refusal("double", "xyz")
    assert refusal("answer", "the value") == "`answer` asks for a value, so its case has no inputs."


def test_an_open_task_has_no_expected_value() -> None:
    with pytest.raises(CourseError, match="that is what it asks for"):
        inputs("shrink", "seeds 0 to 2").expected  # noqa: B018 - the property raises


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((1.0, 0.1, 2), "f(1.0, 0.1, 2)"),
        ((torch.tensor([1.0, 2.5]), "bf16", None), "f(torch.tensor([1., 2.5]), 'bf16', None)"),
        ((torch.tensor([1.0, -torch.inf]).half(),), "f(torch.tensor([1., -torch.inf], dtype=torch.float16))"),
        ((torch.zeros(3, 4), torch.arange(12)), "f(torch.zeros(3, 4), torch.arange(12))"),
        (({"w": [torch.tensor(0.1)]},), "f({'w': [torch.tensor(0.1)]})"),
        (
            (torch.arange(20).float().reshape(4, 5) / 10, 3),
            "x = torch.tensor([[0., 0.1, 0.2, 0.3, 0.4],\n"
            "                  [0.5, 0.6, 0.7, 0.8, 0.9],\n"
            "                  [1., 1.1, 1.2, 1.3, 1.4],\n"
            "                  [1.5, 1.6, 1.7, 1.8, 1.9]])\nf(x, 3)",
        ),
        (
            (torch.arange(40).float(), 3),
            'from lmcourse.notebook import inputs\nx, *_ = inputs("f", "one")\n'
            "# x: a float32 tensor of shape (40,)\nf(x, 3)",
        ),
    ],
)
def test_small_inputs_are_code_and_large_ones_come_from_inputs(given: tuple[Any, ...], code: str) -> None:
    exercise = Exercise("f", 1, 1, 1, lambda x, *rest: x, [case("one", *given)])
    assert code_of(exercise, exercise.cases[0]) == code


def test_code_of_a_script_has_what_the_last_line_needs() -> None:
    lines = (
        "import torch\nimport math\nfrom lmcourse.base.text import code_html\ny = code_html(f(a))\nlen(y)\nmath.pi\ny"
    )
    exercise = Exercise("f", 1, 1, 1, lambda text: text, [script("one", lines, a="text", b="more")])
    start = (
        "from lmcourse.notebook import inputs\na, b, code_html = inputs(\"f\", \"one\")\n# a = 'text'\n# b = 'more'\n"
        "# code_html: Return any text as HTML, escaped; `backticks` become code with this CSS style.\n"
        "y = code_html(f(a))\n"
    )
    assert code_of(exercise, exercise.cases[0], 2) == f"{start}y  # ← this differs"
    assert code_of(exercise, exercise.cases[0], 1).startswith("import math\nfrom lmcourse")
