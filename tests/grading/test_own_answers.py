"""What counts is the answer's own cell: no other replaces it, and none answers for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from lmcourse.exercises import Exercise, Report, case
from lmcourse.grading.examination.code_cells import cells_of
from lmcourse.grading.examination.source_rules import NotebookSource
from tests.exercises.toy import answering, counting, doubling
from tests.grading.examining import ForkLauncher, examined

STUB = "def double(x):\n    # Your code here\n    raise NotImplementedError"
RIGHT = "def double(x):\n    return x + x"
WRONG = "def double(x):\n    return x - 1"
COUNTER = """
class Counter:
    def __init__(self, start=0):
        self.count = start
    def add(self, amount):
        if amount < 0:
            raise ValueError("only forward")
        self.count += amount
        return self
"""


def judged(cells: Sequence[str], exercise: Exercise, own: int | None) -> Report:
    """The report on an exercise whose own cell is that of this number, if there is one."""
    answer_cells = {exercise.name: own} if own else {}
    return examined(cells, [exercise], launcher=ForkLauncher(), answer_cells=answer_cells).reports[exercise.name]


LATER = {
    "a helper of the same name": WRONG,
    "a number": "double = 3",
    "a loop": "for double in range(3): pass",
    "an import": "from math import sqrt as double",
    "deleted": "del double",
    "another function's code": "double.__code__ = (lambda x: x).__code__",
    "other defaults": "double.__defaults__ = (1,)",
    "by its globals": "globals()['double'] = abs",
    "inside of a function": "def change():\n    global double\n    double = abs\nchange()",
    "fails": "double = 3\n1 / 0",
    "patched into the namespace": "import __main__\n__main__.double = abs",
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_no_later_cell_replaces_an_answer(later: str) -> None:
    report = judged([RIGHT, later], doubling(), own=1)
    assert (report.points, report.diagnosis) == (2, "")


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_a_wrong_answer_stays_wrong(later: str) -> None:
    assert judged([WRONG, later, RIGHT], doubling(), own=1).points == 0


OWN = {
    "twice": f"{WRONG}\n{RIGHT}",
    "under a condition": "if True:\n    def double(x):\n        return x + x\nelse:\n    double = None",
    "in a block": "import torch\nwith torch.no_grad():\n    def double(x):\n        return x + x",
    "a lambda": "double = lambda x: x + x",
    "of a helper": "def twice(x):\n    return x + x\ndouble = twice",
    "an attribute of a class": "class Mine:\n    @staticmethod\n    def twice(x): return x + x\ndouble = Mine.twice",
    "an object that can be called": "class Twice:\n    def __call__(self, x):\n        return x + x\ndouble = Twice()",
    "partly applied": "from functools import partial\ndef times(n, x):\n    return n * x\ndouble = partial(times, 2)",
    "decorated": "import functools\ndef loud(f):\n    @functools.wraps(f)\n    def g(x): return f(x)\n    return g\n"
    "@loud\ndef double(x):\n    return x + x",
    "made by a function": "def make(n):\n    return lambda x: n * x\ndouble = make(2)",
    "as a global of a function": "def make():\n    global double\n    def double(x):\n        return x + x\nmake()",
    "by exec": "exec('def double(x):\\n    return x + x')",
    "and then an error": f"{RIGHT}\nprint(double(3))\n1 / 0",
    "recursion": "def double(x):\n    return x + x if len(x) < 2 else torch.cat([double(x[:1]), double(x[1:])])",
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_whatever_the_own_cell_makes_of_the_name_is_the_answer(own: str) -> None:
    report = judged(["import torch", own, WRONG], doubling(), own=2)
    assert (report.points, report.diagnosis) == (2, "")


EARLIER = {
    "another name for it": "double = mine",
    "the same object again": "double = double",
    "wrapped": "before = double\ndef double(x):\n    return before(x)",
    "cached": "import functools\ndouble = functools.partial(double)",
    "imported": "from __main__ import mine as double",
}


@pytest.mark.parametrize("own", EARLIER.values(), ids=EARLIER)
def test_the_own_cell_may_take_what_an_earlier_one_defined(own: str) -> None:
    cells = ["def mine(x):\n    return x + x\ndouble = mine", own, "mine = None"]
    assert judged(cells, doubling(), own=2).points == 2


def test_helpers_may_stand_anywhere() -> None:
    cells = [
        "def double(x):\n    return twice(x)",
        "def twice(x):\n    return 3 * x",
        "def twice(x):\n    return 2 * x",
    ]
    assert judged(cells, doubling(), own=1).points == 2


EMPTY = {
    "the stub": STUB,
    "nothing": "",
    "a comment": "# see below",
    "another name": "def twice(x):\n    return x + x",
    "fails before": f"1 / 0\n{RIGHT}",
    "no Python": "def double(x):\nreturn x",
}


@pytest.mark.parametrize("own", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("order", [1, -1], ids=["later", "earlier"])
def test_no_other_cell_answers_for_the_own_one(own: str, order: int) -> None:
    cells = ["import torch", *[own, RIGHT][::order]]
    place = cells.index(own) + 1
    report = judged(cells, doubling(), own=place)
    assert report.points == 0
    assert report.answered
    assert report.diagnosis == (
        f"`double` is defined in code cell {5 - place} (`def double(x):`), but an answer counts only in its own cell, "
        f"code cell {place}: copy it there."
    )


def test_where_the_own_cell_is_gone_it_is_said() -> None:
    report = judged([RIGHT], doubling(), own=None)
    assert (report.points, report.diagnosis) == (
        0,
        "`double` is defined in code cell 1 (`def double(x):`), but an answer counts only in its own cell, which is "
        "gone: copy it into that cell of a fresh notebook.",
    )


def test_an_untouched_stub_alone_is_not_answered() -> None:
    report = judged([STUB, "def other(x):\n    double = 3"], doubling(), own=1)
    assert not report.answered
    assert "Nothing here yet" in report.diagnosis


def test_a_wrong_answer_that_was_corrected_elsewhere_is_told() -> None:
    report = judged(["def double(x):\n    return x + x + (len(x) == 1)", RIGHT], doubling(), own=1)
    assert 0 < report.points < 2
    assert report.diagnosis == (
        "Code cell 2 defines `double` anew (`def double(x):`), but what counts is its own cell, code cell 1."
    )


def test_values_count_from_their_own_cell_too() -> None:
    assert judged(["answer = 42", "answer = 41"], answering(), own=1).points == 1
    assert judged(["answer = 42", "answer = 42"], answering(), own=2).points == 1
    found = judged(["answer = None", "answer = 42"], answering(), own=1)
    assert found.points == 0
    assert found.diagnosis.startswith(
        "`answer` is defined in code cell 2 (`answer = 42`), but an answer counts only in"
    )


PATCHED = {
    "a method": "Counter.add = lambda self, n: None",
    "a method's code": "Counter.add.__code__ = (lambda self, amount: None).__code__",
    "an attribute more": "Counter.count = property(lambda self: 0)",
    "a method taken away": "del Counter.add",
    "a base": "Counter.__init__ = None",
}


@pytest.mark.parametrize("later", PATCHED.values(), ids=PATCHED)
def test_a_class_is_what_its_cell_made_it(later: str) -> None:
    assert judged([COUNTER, later], counting(), own=1).points == 2


def test_a_method_from_another_cell_is_no_part_of_a_class() -> None:
    without = "\n".join(COUNTER.splitlines()[:4])
    patch = "\n".join(line.removeprefix("    ") for line in COUNTER.splitlines()[4:]) + "\nCounter.add = add"
    assert judged([COUNTER, "Counter.note = 1"], counting(), own=1).points == 2
    assert judged([without, patch], counting(), own=1).points < 2
    base = f"{COUNTER.replace('Counter', 'Base')}\nclass Counter(Base): pass"
    assert judged([base, "Base.add = None"], counting(), own=1).points == 2


def test_an_answer_that_uses_another_gets_what_its_check_got() -> None:
    """Between the two cells somebody may give the name another meaning, and mean it or not."""
    cases = [case("two", torch.tensor([1.0, 2.0])), case("one", torch.ones(1))]
    quadruple = Exercise("quadruple", 2, 1, 1, reference=lambda x: 4 * x, cases=cases)

    def points(*cells: str, own: dict[str, int]) -> list[float]:
        found = examined(cells, [doubling(), quadruple], launcher=ForkLauncher(), answer_cells=own)
        return [report.points for report in found.reports.values()]

    uses = "def quadruple(x):\n    return double(double(x))"
    assert points(RIGHT, uses, WRONG, own={"double": 1, "quadruple": 2}) == [2, 2]
    assert points(WRONG, RIGHT, uses, own={"double": 1, "quadruple": 3}) == [0, 2]
    assert points(uses, RIGHT, WRONG, own={"quadruple": 1, "double": 2}) == [2, 2]
    assert points(RIGHT, uses, "del double", own={"double": 1, "quadruple": 2}) == [2, 2]


RULES = ("torch.softmax", "struct")
CLEAN, FORBIDDEN = "def f(x):\n    return x", "import torch\ndef f(x):\n    return torch.softmax(x, -1)"
CLEAN_G, FORBIDDEN_G, USES_G = (CLEAN.replace("f(", "g("), FORBIDDEN.replace("f(", "g("), "def f(x):\n    return g(x)")


@pytest.mark.parametrize(
    ("cells", "own", "broken"),
    [
        ([FORBIDDEN, CLEAN], {"f": 1}, True),
        ([CLEAN, FORBIDDEN], {"f": 1}, False),
        ([FORBIDDEN, CLEAN], {"f": 2}, False),
        ([USES_G, FORBIDDEN_G, CLEAN_G], {"f": 1}, False),
        ([USES_G, FORBIDDEN_G], {"f": 1}, True),
        ([USES_G, FORBIDDEN_G, CLEAN_G], {"f": 1, "g": 2}, True),
        ([USES_G, CLEAN_G, FORBIDDEN_G], {"f": 1, "g": 2}, False),
        ([CLEAN_G, USES_G, FORBIDDEN_G], {"f": 2, "g": 1}, False),
        ([FORBIDDEN], {}, True),
    ],
)
def test_rules_are_judged_on_what_counts(cells: list[str], own: dict[str, int], broken: bool) -> None:
    assert bool(NotebookSource(cells_of(cells), own).forbidden("f", RULES)) == broken


def test_a_clean_text_in_another_cell_hides_no_broken_rule() -> None:
    exercise = doubling(forbid=["torch.add"])
    own = "import torch\ndef double(x):\n    return torch.add(x, x)"
    report = judged([own, RIGHT], exercise, own=1)
    assert report.points == 0
    assert "torch.add" in report.diagnosis


LIARS = {
    "a class that refuses": "class Meta(type):\n    def __setattr__(self, *_): raise TypeError\n"
    "    __delattr__ = __setattr__\nclass Counter(metaclass=Meta):\n    pass",
    "a class that lies about itself": "class Liar:\n    __class__ = type\nCounter = Liar()",
    "a module": "import sys as Counter",
}


@pytest.mark.parametrize("own", LIARS.values(), ids=LIARS)
def test_strange_answers_cost_their_own_points_only(own: str) -> None:
    found = examined(
        [RIGHT, own], [counting(), doubling()], launcher=ForkLauncher(), answer_cells={"double": 1, "Counter": 2}
    )
    assert [report.points for report in found.reports.values()] == [0, 2]
    assert found.evidence == ()
