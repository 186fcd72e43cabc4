"""Grade a class of honest learners with `lmcourse grade --record` and with `nbgrader autograde`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from nbformat import NotebookNode

from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import exercises_of
from tests.grading.conftest import Course, make_course, needs_bubblewrap
from tests.grading.learners import ASSIGNMENT, WRONG, Learner

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(3600)]

POINTS = {
    exercise.name: float(exercise.points) for exercise in exercises_of(find_chapter(ASSIGNMENT)) if not exercise.task
}
HALF = dict([*POINTS.items()][:5])

SECONDS = 8  # the time limit of a cell in seconds
# Learners who are also graded by nbgrader. Both ways examine in the same way, but they read submissions and restore
# cells differently.
BOTH_WAYS = ("mistaken", "deleted", "muddled", "moved", "bare", "late")
IPYTHON = r"""
%matplotlib inline
!pip install \
    einops
%time seconds = sum(range(10))
timed = %timeit -o -n 1 -r 1 sum(range(10))
files = !echo one two
text = '''
%time this is no magic
'''
import asyncio
await asyncio.sleep(0)
assert seconds == 45 and timed.best > 0 and list(files) == ["one two"] and text.count("%time") == 1
print("all of it ran")
"""


def half_done(nb: NotebookNode) -> None:
    for cell in nb.cells:
        if cell["id"] in POINTS and cell["id"] not in HALF:
            cell.source = Learner.stub(cell["id"])


def without(*names: str) -> Any:
    def delete(nb: NotebookNode) -> None:
        nb.cells = [cell for cell in nb.cells if cell["id"] not in names]

    return delete


def muddled(nb: NotebookNode) -> None:
    """Copy, edit and retype cells, and clear their Jupyter metadata."""
    cells = {cell["id"]: cell for cell in nb.cells}
    place = nb.cells.index(cells["check_ulp"])
    nb.cells.insert(place + 1, NotebookNode(cells["check_ulp"] | {"id": "a-copy"}))
    nb.cells.append(NotebookNode(cells["ulp"] | {"id": "b-copy", "source": WRONG.format(name="ulp")}))
    cells["check_round_to"].source = "3  # full marks"
    cells["check_max_finite"].cell_type = "markdown"
    del cells["check_max_finite"]["outputs"], cells["check_max_finite"]["execution_count"]
    cells["stable_softmax"].metadata = {"nbgrader": {"grade_id": "stable_softmax", "points": 99}}


def split_and_moved(nb: NotebookNode) -> None:
    """Split an answer into two cells, as JupyterLab does, and move a check above its answer."""
    cells = {cell["id"]: cell for cell in nb.cells}
    answer = cells["ulp"]
    head, rest = answer.source.split("\n", 1)
    answer.source = "offset = 0"
    nb.cells.insert(nb.cells.index(answer) + 1, NotebookNode(answer | {"id": "second", "source": f"{head}\n{rest}"}))
    nb.cells.remove(cells["check_round_to"])
    nb.cells.insert(2, cells["check_round_to"])


def without_metadata(nb: NotebookNode) -> None:
    for cell in nb.cells:
        cell.metadata = NotebookNode()


@dataclass
class Expected:
    """A learner: the notebook, the exercises that lose points, and the reason."""

    learner: Learner
    reason: str
    lost: dict[str, float] = field(default_factory=dict)
    timestamp: str = ""

    @property
    def points(self) -> dict[str, float]:
        return POINTS | self.lost


PASSED = "Every check passed."

CLASS: dict[str, Expected] = {
    "half": Expected(
        Learner().do(half_done),
        "5 of 9 exercises earn all their points. Not answered: max_finite, dot_product_error, "
        "tensor_bytes, stable_softmax.",
        {name: 0.0 for name in POINTS if name not in HALF},
    ),
    "mistaken": Expected(
        Learner()
        .answer("stable_softmax", "def stable_softmax(x, dim=-1):\n    e = x.exp()\n    return e / e.sum(dim, True)")
        .answer(
            "max_finite",
            "def max_finite(e, m, has_infinity=True):\n    return 2.0 ** (2 ** (e - 1) + (not has_infinity))",
        )
        .answer("tensor_bytes", "def tensor_bytes(*args, **kwargs):\n    return 0.0"),
        "6 of 9 exercises earn all their points. max_finite: Your results fit a known mistake. That is the power "
        "of two just above. A significand is "
        "always below 2. “fp64” fails, too: a number in the line is too large for a float: e⁷¹⁰ is, for example. "
        "tensor_bytes: It gives 0.0 in each of the 10 public cases. stable_softmax: "
        "Your results fit a known mistake. As in softmax by the book, something overflows or ends in 0 / 0: exp(89) is "
        "too large for fp32, exp(12) for fp16. Subtract each row's maximum first.",
        {"stable_softmax": 0.0, "max_finite": 0.0, "tensor_bytes": 0.0},
    ),
    "deleted": Expected(
        Learner().do(without("ulp", "check_round_to")),
        "8 of 9 exercises earn all their points. ulp: `ulp` is not defined: the cell with its answer is "
        "gone or empty, or gives it another name. The check cell was deleted, and has been put back: "
        "round_to.",
        {"ulp": 0.0},
    ),
    "muddled": Expected(
        Learner().do(muddled), "Every check passed. The check cell was edited, and the course's own was used: round_to."
    ),
    "moved": Expected(Learner().do(split_and_moved), PASSED),
    "bare": Expected(Learner().do(without_metadata), PASSED),
    "loops": Expected(
        Learner()
        .scratch("import time\nwhile True:\n    time.sleep(1)", "ulp")
        .scratch("while True:\n    print('x' * 1000)", "decode_bits")
        .answer("dot_product_error", "def dot_product_error(*args, **kwargs):\n    while True:\n        time.sleep(1)"),
        f"Code cell 3 ran longer than {SECONDS} s and was stopped. Code cell 32 ran longer than {SECONDS} s and was "
        "stopped. 8 of 9 exercises earn all their points. dot_product_error: Your code did not come to an end in "
        "time, and the check stopped it.",
        {"dot_product_error": 0.0},
    ),
    "crashes": Expected(
        Learner()
        .scratch("import os\nos._exit(1)", "decode_bits")
        .answer("ulp", "def ulp(*args, **kwargs):\n    import os\n    os._exit(1)"),
        "Code cell 31 ended Python: an exit, a crash, or no memory left. It was left out. 8 of 9 exercises "
        "earn all their points. ulp: While `ulp` was checked, it ended Python: an exit, a crash, or no "
        "memory left.",
        {"ulp": 0.0},
    ),
    "ipython": Expected(
        Learner()
        .scratch(IPYTHON, "ulp")
        .answer("ulp", "%%time\n# größer als 0 → 🙂\n{}\n\nlisting = !ls")
        .scratch("größe = 'Zoë 🙂 \u202e'\nprint(größe, '\\ud800')\nprint('\\x00\\x1b[31m')", "ulp"),
        PASSED,
    ),
    "late": Expected(
        Learner()
        .answer(
            "tensor_bytes",
            "BITS = 8\n{}\n_count = tensor_bytes\n\n"
            "def tensor_bytes(shape, dtype):\n    return _count(shape, dtype) * BITS // 8",
        )
        .scratch("BITS = 16", "stable_softmax")
        .scratch("abs = 3\nfor round in range(2):\n    del_me = round", "stable_softmax"),
        "Every check passed. Late by 2 h, no penalty.",
        timestamp="2026-03-02 03:29:00 +0130",
    ),
    "colab": Expected(
        Learner().on_top("from google.colab import drive\ndrive.mount('/content/drive')\nimport seaborn as sns"),
        "Code cell 1 failed with ModuleNotFoundError: No module named 'google.colab', in line 1: `from google.colab "
        "import drive`. Every check passed.",
    ),
    "star": Expected(
        Learner().scratch("from torch import *", "ulp"),
        "6 of 9 exercises earn all their points. ulp: In 9 of the public cases: a value in the line has a type "
        "that the line cannot use. loss_scales: In 15 of the public cases: a call and the parameters of what it calls "
        "do not fit: compare the two. dot_product_error: In 8 of the public cases: a value in the line has a type "
        "that the line cannot use.",
        {"ulp": 0.0, "loss_scales": 0.0, "dot_product_error": 0.0},
    ),
    "below": Expected(
        Learner()
        .answer("ulp", "def ulp(*args, **kwargs):\n    return helper(*args, **kwargs)")
        .scratch("def helper(*args, **kwargs):\n    return step(*args, **kwargs)")
        .scratch(Learner.printed("ulp").replace("def ulp", "def step"))
        .answer("round_to", "")
        .scratch(Learner.printed("round_to"))
        .answer("stall_point", Learner.printed("stall_point").replace("def stall_point", "def stallpoint")),
        "8 of 9 exercises earn all their points. stall_point: `stall_point` is not defined. This notebook "
        "defines `stallpoint`: give it the name `stall_point` again.",
        {"stall_point": 0.0},
    ),
    "scratch": Expected(
        Learner()
        .scratch("n = 3\nprint(n * 2)", "decode_bits")
        .scratch("name = input('Who? ')", "ulp")
        .scratch(
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "print(sum(1 for _ in DataLoader(TensorDataset(torch.arange(8)), num_workers=2)))",
            "ulp",
        ),
        "Code cell 3 failed with EOFError: EOF when reading a line, in line 1: `name = input('Who? ')`. Every check "
        "passed.",
    ),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Course, dict[str, Any], Course]:
    """The class, graded by our command and partly by nbgrader."""
    ours, theirs = (make_course(tmp_path_factory.mktemp(name) / "course") for name in ("ours", "theirs"))
    for course, students in ((ours, CLASS), (theirs, BOTH_WAYS)):
        for student in students:
            CLASS[student].learner.hand_in(course.submitted, student, CLASS[student].timestamp)
        course.run("nbgrader", "db", "assignment", "add", ASSIGNMENT, "--duedate", "2026-03-01 23:59:00 UTC")
    results = ours.grade("--record", f"--cell-seconds={SECONDS}")
    theirs.run("nbgrader", "generate_assignment", ASSIGNMENT, "--force")
    theirs.run("nbgrader", "autograde", ASSIGNMENT)
    return ours, results, theirs


@pytest.mark.parametrize("student", CLASS)
def test_each_learner_gets_the_expected_marks_and_reason(
    both: tuple[Course, dict[str, Any], Course], student: str
) -> None:
    result = both[1][student]
    assert result["exercises"] == CLASS[student].points, result["reason"]
    assert result["reason"] == CLASS[student].reason


def test_gradebook_has_the_same_marks_by_both_ways(both: tuple[Course, dict[str, Any], Course]) -> None:
    ours, results, theirs = both
    assert ours.marks() == {student: result["exercises"] for student, result in results.items()}
    assert theirs.marks() == {student: results[student]["exercises"] for student in BOTH_WAYS}
