"""Learners with rare likeness are shown side by side, honest ones are not, and the page runs nothing."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from lmcourse.exercises import normal_form as forms
from lmcourse.grading.cells import read_cell
from lmcourse.grading.likeness import pairs
from lmcourse.grading.result import SubmissionResult
from tests.grading.conftest import Course, needs_bubblewrap
from tests.grading.learners import Learner
from tests.grading.made_up_class import NAMES, result, solved

LONG = '''
def {name}(rows, width=2, *, scale=1.0):
    """Mine."""
    found: list[float] = []  # what was found
    for row in rows:
        total = 0.0
        for place, value in enumerate(row):
            total += value * scale if place % width else value / scale
        found.append(total{more})
    return found
'''


def normal_form(text: str, name: str) -> tuple[str, int]:
    return forms.normal_form(read_cell(0, text).tree, name)


def test_names_comments_and_formatting_make_no_difference() -> None:
    mine = LONG.format(name="f", more="")
    theirs = mine.replace("row", "r").replace("total", "z").replace("found", "out").replace('"""Mine."""', "'Yours.'")
    theirs = (
        f"import math\n# another comment\n{theirs.replace(': list[float]', '').replace('0.0', '0.000')}\nf([[1.0]])\n"
    )
    form, size = normal_form(mine, "f")
    assert normal_form(theirs, "f") == (form, size)
    assert normal_form(mine.replace("def f", "def g"), "g") == (form, size)
    for other in (
        "/ scale → * scale",
        "% width → // width",
        "found.append → found.remove",
        "rows, width → width, rows",
    ):
        old, new = other.split(" → ")
        assert normal_form(mine.replace(old, new), "f")[0] != form
    assert normal_form("def f(:", "f") == ("", 0)
    assert normal_form("x = " + "-" * 5000 + "1", "x") == ("", 0)


def wrote(student: str, *more: str) -> SubmissionResult:
    reports = [solved(name) for name in NAMES]
    texts = {name: LONG.format(name=name, more=extra) for name, extra in zip(NAMES, more, strict=True)}
    return result(student, *reports, answers=texts)


def test_only_what_few_share_and_the_course_does_not_know_counts() -> None:
    rest = [wrote(f"other {n}", *[f" + {n}"] * 3) for n in range(6)]
    pair = [wrote("ada", "", "", ""), wrote("bo", "", "", "")]
    [found] = pairs([*pair, *rest], {})
    assert ({found.one.student, found.other.student}, set(found.exercises)) == ({"ada", "bo"}, set(NAMES))
    assert pairs([pair[0], wrote("bo", "", "", " + 9"), *rest], {}) == []  # two exercises of three
    assert pairs([wrote(str(n), "", "", "") for n in range(8)], {}) == []  # the whole class
    known = {name: dict([normal_form(LONG.format(name=name, more=""), name)]) for name in NAMES}
    assert pairs([*pair, *rest], known) == []


WRONG = """
def {}(*given, **named):
    # {}: </pre><script>alert(1)</script>
    seen = [part for part in given if not isinstance(part, str)]
    first = float(torch.as_tensor(seen[0], dtype=torch.float64).abs().sum()) if seen else 0.0
    return (first * 1.7310585 + len(given) * 0.5772156) / 3.0
"""


@pytest.mark.prove
@needs_bubblewrap
@pytest.mark.timeout(1200)
def test_class_gets_a_page_of_one_pair_and_no_script(course: Course) -> None:
    copied = ("ulp", "round_to", "dot_product_error", "tensor_bytes")
    for student in ("ada", "bo", "cy", "dee", "eve"):
        learner = Learner()
        for name in copied if student in ("bo", "cy") else ():
            learner.answer(name, WRONG.format(name, student).replace("first", f"first_{student}"))
        learner.hand_in(course.submitted, student)
    before = {path for path in course.root.rglob("*") if path.is_file()}
    course.run("lmcourse", "grade", "submitted", "--likeness")
    assert {path for path in course.root.rglob("*") if path.is_file()} - before == {
        course.root / "report/likeness.html"
    }
    page = BeautifulSoup((course.root / "report" / "likeness.html").read_text(encoding="utf-8"), "html.parser")
    assert [title.text for title in page.select("h2")] == ["bo and cy"]
    said = {box.code.text: " ".join(box.summary.text.split()) for box in page.select("details")}  # type: ignore[union-attr]
    assert set(said) == {*copied}
    assert said["ulp"].startswith("ulp: the same program, apart from names and comments, and the same wrong results in")
    assert [text.text.strip().split("(")[0] for text in page.select("pre")] == [
        f"def {name}" for name in said for _ in range(2)
    ]
    assert not page.select("script")
