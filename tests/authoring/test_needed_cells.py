"""Grading skips cells that no printed solution needs, but runs cells that change a needed name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.authoring.document import SKIPPED, document
from lmcourse.authoring.needed_cells import Code, unneeded_cells
from lmcourse.authoring.release import release
from tests.authoring.tiny import SOURCE, TINY, source_of

IMPORTS = "import math\nimport torch"
ANSWER = "def answer(x):\n    return x + data[0] * helper(x)"
HELPER = "def helper(x):\n    return scale * x"

TABLE: dict[str, tuple[list[str], set[int]]] = {
    # name: the cells (those that define `answer` are answers), and the indices of skipped cells
    "a figure": ([IMPORTS, "data, helper = [1], abs", "plot(answer)", ANSWER, "plot(answer(2))"], {2, 4}),
    "through a helper": ([IMPORTS, "data = [1]", "scale = 3", HELPER, "other = scale + 1", ANSWER], set()),
    "a helper below what it needs": ([HELPER, "data = [1]", "scale = 3", ANSWER, "scale = 4"], {4}),
    "what it needs is changed": (["data = []", "data.append(helper(2))", "helper = abs", ANSWER], set()),
    "an item is assigned": (["data = [1]", "data[0] = 2", "n = 3", ANSWER], {2}),
    "it is handed to a function": (["data = [1]", "train(data)", "train(other)", ANSWER], {2}),
    "an import of a needed cell": (["from random import Random as R", "n = 1", "data = [R(0)]", ANSWER], {1}),
    "an import with a demonstration": (["import time\nprint(time.time())", "import time as scale", ANSWER], {0}),
    "a module is used": (
        [IMPORTS, "torch.manual_seed(0)\nprint(torch.rand(3))", ANSWER.replace("x +", "math.e +")],
        {1},
    ),
    "a module is changed": ([IMPORTS, "math.e = 3", "n = math.e", ANSWER.replace("x +", "math.e +")], {2}),
    "setattr": ([IMPORTS, "setattr(math, 'e', 3)", "n = math.e", ANSWER.replace("x +", "math.e +")], {2}),
    "an answer is used": (["print(answer(1))", ANSWER, "def answer2(x):\n    return answer(x)"], {0, 2}),
    "an answer is replaced": (["data = [1]", "n = 3", ANSWER, "answer = abs", "check(answer)"], {1}),
    "a loop binds it": (["for data in range(3):\n    n = data", "for n in range(3):\n    pass", ANSWER], {1}),
    "a function binds it": (["def f():\n    global data\n    data = [1]", "f()", "n = 3", ANSWER], {1, 2}),
    "a local name is no global": (["def f(data):\n    data[0] = 1", "def g():\n    helper = 3", ANSWER], {1}),
    "annotations and defaults": (["Row = list[int]", "size = 3", "n = 3", "def answer(x: Row = size): ..."], {2}),
    "eval": (["data = [1]", "n = 3", "def answer(x):\n    return eval('n')"], set()),
    "import *": (["from math import *", "data = [1]", "n = 3", ANSWER], {2}),
    "the start": (["import math\n\nstart('98-tiny')", "import torch", "n = 3", ANSWER], {2}),
    "a name of Python's own": (["print(abs(3))", "abs = 3", "n = 3", "def answer(x):\n    return abs"], {2}),
    "calls of one function": (["def make():\n    return 1", "data = make()", "n = make()", ANSWER], {2}),
    "a counter of a class": (["class A: ...", "data = A()", "A.n = 1", "n = A()", ANSWER], {3}),
}


def skipped(texts: list[str]) -> set[int]:
    cells = [Code(text, graded="def answer(" in text or "check(" in text) for text in texts]
    return unneeded_cells(cells, ["answer"])


@pytest.mark.parametrize("name", TABLE)
def test_cells_that_no_answer_needs_are_skipped(name: str) -> None:
    cells, wanted = TABLE[name]
    assert skipped(cells) == wanted


@pytest.mark.prove
def test_marks_reach_both_notebooks(tmp_path: Path) -> None:
    text = SOURCE.replace("    return x + x", "    return math.fsum([x, x])").replace(
        "# %% [markdown]\n# ### Exercise 1", "# %%\nn = 3\nprint(n)\n\n# %% [markdown]\n# ### Exercise 1"
    )
    solution = document(source_of(text, tmp_path), TINY)
    for notebook in (solution, release(solution, TINY)):
        marked = [cell.source for cell in notebook.cells if cell.metadata.get("lmcourse") == SKIPPED]
        assert [text.split("\n")[0] for text in marked] == ["n = 3", "assert double(half) == 1 and math.pi > 3"]
