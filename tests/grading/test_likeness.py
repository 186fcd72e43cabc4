"""Alike answers: copies are flagged whatever was done to hide them, and honest ones are not."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import textwrap
from collections.abc import Mapping, Sequence

import pytest

from lmcourse.course import Chapter, available_chapters
from lmcourse.exercises import Exercise
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.class_report.likeness import (
    MIN_NODES,
    MIN_SHARE,
    PRINTED,
    AlikeAnswers,
    alike_answers_in,
    printed_answers,
)
from lmcourse.grading.class_report.statistics import questions_of
from lmcourse.grading.class_report.trees import shared_size, tree_of
from lmcourse.grading.result import SubmissionResult
from lmcourse.report import CaseResult, Report
from tests.grading.tiny_course import REPOSITORY

PRINTED_ANSWERS = printed_answers(REPOSITORY)

ORIGINAL = '''
def encode(tensor, levels=255, eps=1e-8):
    """Quantise."""
    low = tensor.min(dim=-1, keepdim=True).values
    high = tensor.max(dim=-1, keepdim=True).values
    scale = (high - low).clamp(min=eps) / levels
    codes = ((tensor - low) / scale).round()
    if codes.max() > levels:
        raise ValueError("too large")
    total = 0
    for row in codes:
        total += row.sum().item()
    return codes.to(torch.uint8), scale, low, total
'''

COPIES = {
    "as it is": ORIGINAL,
    "renamed, without comments, with annotations": """
from torch import uint8 as u
def encode(x: "Tensor", n: int = 255, tiny: float = 1e-8):   # mine
    a = x.min(dim=-1, keepdim=True).values
    b = x.max(dim=-1, keepdim=True).values
    step: object = (b - a).clamp(min=tiny) / n
    q = ((x - a) / step).round()
    if n < q.max():
        raise ValueError("That does not fit.")
    s = 0
    for line in q: s = s + line.sum().item()
    return q.to(torch.uint8), step, a, s
""",
    "reordered": """
def encode(tensor, levels=255, eps=1e-8):
    total = 0
    high = tensor.max(keepdim=True, dim=-1).values
    low = tensor.min(keepdim=True, dim=-1).values
    scale = (high - low).clamp(min=eps) / levels
    codes = ((tensor - low) / scale).round()
    for row in codes:
        total += row.sum().item()
    if codes.max() > levels:
        raise ValueError("too large")
    return codes.to(torch.uint8), scale, low, total
""",
    "with a line more and another constant": ORIGINAL.replace("255", "256").replace(
        "    total = 0\n", "    total = 0\n    print(scale)\n"
    ),
}

HONEST = """
def encode(tensor, levels=255, eps=1e-8):
    shape = tensor.shape
    flat = tensor.reshape(-1, shape[-1])
    bounds = torch.stack([torch.aminmax(row) for row in flat])
    low, high = bounds[:, :1], bounds[:, 1:]
    scale = torch.maximum((high - low) / levels, torch.tensor(eps / levels))
    codes = torch.round((flat - low) / scale).reshape(shape)
    assert not (codes > levels).any(), "too large"
    return codes.byte(), scale, low, float(codes.sum())
"""


def learner(name: str, answers: Mapping[str, str], assignment: str = "99-ours") -> SubmissionResult:
    reports = {one: Report(one, 1.0, 1.0, True, (CaseResult("x", True, hidden=True),), "") for one in answers}
    return SubmissionResult(name, assignment, 1.0, 1.0, reports=reports, answers=dict(answers))


def alike(class_: Sequence[SubmissionResult], **printed: str) -> tuple[AlikeAnswers, ...]:
    assignment = class_[0].assignment
    return alike_answers_in(assignment, questions_of(assignment, class_), class_, printed)


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_flagged_with_its_share_and_both_cells(how: str) -> None:
    class_ = [learner("Ada", {"encode": ORIGINAL}), learner("Bo", {"encode": COPIES[how]})]
    class_.append(learner("Cy", {"encode": HONEST}))
    [group] = alike(class_)
    assert (group.number, group.exercise, group.students) == (1, "encode", ("Ada", "Bo"))
    assert group.cells == (("Ada", ORIGINAL), ("Bo", COPIES[how]))
    assert MIN_SHARE <= group.share < 1 if "more" in how else group.share == 1
    assert group.what("Bo") == f"group 1, encode: {group.share:.0%} like Ada"
    [group] = alike(class_[1:], encode=ORIGINAL)
    assert group.students == (PRINTED, "Bo")
    assert group.what("Bo").endswith("like the printed solution")


class Renamed(ast.NodeTransformer):
    """Every name that the answer chose itself, and its layout."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.new(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.new(node.arg))

    def new(self, name: str) -> str:
        return f"my_{name}" if name in self.own else name

    def __init__(self, tree: ast.AST) -> None:
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        self.own = (stored | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}) - set(dir(builtins))


def renamed(source: str) -> str:
    tree = ast.parse(source)
    return ast.unparse(Renamed(tree).visit(tree))


def size(source: str) -> int:
    tree = tree_of(source)
    assert tree is not None
    return tree.size


@pytest.mark.parametrize("chapter", available_chapters(), ids=lambda chapter: chapter.id)
def test_pasted_solutions_are_flagged_in_every_notebook(chapter: Chapter) -> None:
    printed = PRINTED_ANSWERS[chapter.id]
    pasted = {name: renamed(source) for name, source in printed.items()}
    groups = alike([learner("Ada", pasted, chapter.id)], **printed)
    assert {group.exercise for group in groups} == {name for name, text in printed.items() if size(text) >= MIN_NODES}
    assert all(group.students == (PRINTED, "Ada") and group.share == 1 for group in groups)
    assert groups


def styles(exercise: Exercise) -> list[str]:
    """Right answers in other styles than the printed one."""
    answers = [variant.answer for variant in exercise.variants]
    return [
        f"x = {answer}" if isinstance(answer, str) else textwrap.dedent(inspect.getsource(answer)) for answer in answers
    ]


@pytest.mark.parametrize("chapter", available_chapters(), ids=lambda chapter: chapter.id)
def test_honest_answers_are_not_flagged_in_any_notebook(chapter: Chapter) -> None:
    printed = PRINTED_ANSWERS[chapter.id]
    written = {exercise.name: styles(exercise) for exercise in exercises_of(chapter)}
    for name, texts in written.items():
        trees = [tree_of(text) for text in [*texts, printed.get(name, "")]]
        for one, other in itertools.combinations(trees, 2):
            assert one is not None
            assert other is not None
            total = one.size + other.size
            share = 2 * shared_size(one, other, ()) / total
            assert share < MIN_SHARE - 0.09 or total < 2 * MIN_NODES, (name, share)
    most = max(map(len, written.values()))
    class_ = []
    for number in range(most):
        answers = {name: texts[number] for name, texts in written.items() if number < len(texts)}
        class_.append(learner(f"learner {number}", answers, chapter.id))
    assert alike(class_, **printed) == ()


def test_what_many_write_and_short_answers_say_nothing() -> None:
    frame = ORIGINAL.replace(
        "def encode(tensor, levels=255, eps=1e-8):", "def encode(tensor, levels=255, eps=1e-8):\n{}"
    )
    own = [f"tensor = tensor.{each}()" for each in ("float", "double", "half", "cpu", "clone", "detach")]
    class_ = [learner(f"s{n}", {"encode": frame.format(f"    {line}")}) for n, line in enumerate(own)]
    assert alike(class_) == ()
    assert len(alike(class_[:2])) == 1  # nobody else says that it is usual
    assert [group.students[0] for group in alike(class_, encode=ORIGINAL)] == [PRINTED]  # wherever it came from
    short = "def mask(n):\n    return torch.ones(n, n, dtype=torch.bool).tril().logical_not()\n"
    assert alike([learner(f"s{n}", {"mask": short}) for n in range(9)], mask=short) == ()


def test_three_make_one_group_and_the_same_everywhere_is_told_once() -> None:
    copies = list(COPIES.values())
    [group] = alike([learner(f"s{n}", {"encode": copy}) for n, copy in enumerate(copies)])
    assert group.students == ("s0", "s1", "s2", "s3")
    assert group.share == 1
    shorts = {f"f{n}": f"def f{n}(a, b):\n    return torch.exp(a[{n}:] + b).sum().sqrt()" for n in range(5)}
    others = {name: text.replace("exp", "log") for name, text in shorts.items()}
    everything = [learner("Ada", shorts), learner("Bo", {name: renamed(text) for name, text in shorts.items()})]
    [group] = alike([*everything, learner("Cy", others)])
    assert (group.exercise, group.students, group.cells) == ("", ("Ada", "Bo"), ())
    assert group.what("Ada") == "group 1, all answers: 100% like Bo"
    assert len(alike([learner("Ada", {"encode": ORIGINAL}), learner("Bo", {"encode": ORIGINAL})])) == 1


@pytest.mark.parametrize("text", ["def f(:", "x = " + "(" * 500, "\0", "x = '\ud800'", "1" * 5000])
def test_what_is_no_python_is_like_nothing(text: str) -> None:
    assert alike([learner("Ada", {"f": text}), learner("Bo", {"f": text})]) == ()
