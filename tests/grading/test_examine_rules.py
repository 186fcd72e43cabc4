"""Rules judged on a text that is not run find what they find in the notebook; magics do not hide a text."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from types import ModuleType

import pytest

from lmcourse.exercises.forbidden_names import forbidden_in_source
from lmcourse.grading.examination import source_rules
from lmcourse.grading.examination.code_cells import MAX_CELL_CHARS, MAX_NOTEBOOK_CHARS, cells_of, python_source
from lmcourse.grading.examination.source_rules import NotebookSource

RULES = ("torch.softmax", ".softmax", "torch.nn", "struct", "lmcourse", "builtins.sum")


def rules_broken(texts: Sequence[str], name: str, rules: tuple[str, ...]) -> list[str]:
    """What is found in a notebook that has these cells, and no cells for answers."""
    return NotebookSource(cells_of(texts), {}).forbidden(name, rules)


TEXTS = {
    "honest": "import torch\ndef f(x):\n    return x.exp() / x.exp().amax()",
    "directly": "import torch\ndef f(x):\n    return torch.softmax(x, -1)",
    "a method": "def f(x):\n    return x.softmax(-1)",
    "another name": "import torch as t\ndef f(x):\n    return t.softmax(x, -1)",
    "a module's alias": "import torch.nn.functional as F\ndef f(x):\n    return F.silu(x)",
    "an import": "from torch.nn import functional\ndef f(x):\n    return functional.silu(x)",
    "an import inside": "def f(x):\n    import struct\n    return struct.pack('f', x)",
    "a helper": "import torch\ndef g(x):\n    return torch.softmax(x, -1)\ndef f(x):\n    return g(x)",
    "a lambda": "import torch\ng = lambda x: torch.softmax(x, -1)\nf = lambda x: g(x)\nf.__name__ = 'f'",
    "a builtin": "def f(x):\n    return sum(x)",
    "a class": "import torch\nclass f:\n    def go(self, x):\n        return torch.softmax(x, -1)",
    "a base": "import torch\nclass f(torch.nn.Module):\n    pass",
    "a default": "import torch\ndef f(x, g=torch.softmax):\n    return g(x, -1)",
    "a decorator": "import struct\ndef d(g):\n    return g\n@d\ndef f(x):\n    return struct.pack('f', x)",
    "only an annotation": "from torch.nn import Module\ndef f(x: Module) -> Module:\n    return x",
    "an import that it does not use": "import struct\nimport math\ndef f(x):\n    return math.exp(x)",
    "a variable of that name": "import torch.nn.functional as F\ndef f(x):\n    F = 3\n    return x * F",
    "an import of somebody else": "def g():\n    import struct as s\ndef f(x):\n    s = 2\n    return s * x",
    "a forbidden first attempt": "import torch\ndef f(x):\n    return torch.softmax(x, -1)\ndef f(x):\n    return x",
    "recursion": "def f(x):\n    return f(x - 1) if x else 0",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_breaks_the_rules_that_its_function_breaks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, file = TEXTS[name], f"<{name}>"
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), vars(notebook))
    when_run = forbidden_in_source(vars(notebook)["f"], RULES)
    honest = ("honest", "only an", "an import that", "a variable", "an import of", "a forbidden first", "recursion")
    assert bool(when_run) != name.startswith(honest)
    assert bool(rules_broken([text], "f", RULES)) == bool(when_run)
    assert not rules_broken([text], "f", ())
    assert not rules_broken([text], "another", RULES)


@pytest.mark.parametrize(
    "text",
    [
        "from torch import *\ndef f(x):\n    return softmax(x, -1)",
        "import torch\ng = torch.softmax\ndef f(x):\n    return g(x, -1)",
        "import torch\nif True:\n    def f(x):\n        return torch.softmax(x, -1)",
        "import torch\ntry:\n    g = torch.softmax\nexcept NameError:\n    pass\nf = g",
        "import torch\nclass f:\n    weigh = staticmethod(torch.softmax)",
        "import asyncio, torch\nf = await asyncio.sleep(0, torch.softmax)",
        "import torch\nwith torch.no_grad():\n    f = torch.softmax",
    ],
)
def test_more_ways_to_the_same_function_are_found(text: str) -> None:
    assert rules_broken([text], "f", RULES)


def test_rules_reach_over_cells_and_nothing_is_run() -> None:
    cells = ["import torch\nopen('/nowhere/at/all')\n1 / 0", "def g(x):\n    return torch.softmax(x, -1)"]
    assert rules_broken([*cells, "def f(x=1 / 0):\n    return g(x)"], "f", RULES)


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("x = 1", "x = 1"),
        ("", ""),
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if x:\n    !ls\n    y = 1", "if x:\n    pass\n    y = 1"),
        ("x?\ny = 1", "pass\ny = 1"),
        ("x = (5\n% 3)", "x = (5\n% 3)"),
        ("%%time\ndef f():\n    return 1", "\ndef f():\n    return 1"),
        ("%%bash\nls", ""),
        ("await f()", "await f()"),
        ("this is not Python!", None),
        ("x = " + "(" * 500, None),
        ("x = " + " + ".join(["1"] * 5_000), None),
        ("\0", None),
        ("#" * (MAX_CELL_CHARS + 1), None),
    ],
)
def test_what_is_run_of_a_cell(source: str, python: str | None) -> None:
    assert python_source(source) == python


def test_a_text_that_takes_for_ever_to_read_breaks_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does what was read of it before it was given up pass for all there is to read."""
    cells = [
        "import torch\ndef f(x):\n    return h(x)",
        "def h(x):\n    return k(x)",
        "def k(x):\n    return torch.softmax(x, -1)",
        "def honest(x):\n    return x",
    ]
    assert rules_broken(cells, "f", RULES)
    monkeypatch.setattr(source_rules, "MAX_STAND_IN_CHARS", 100)
    source = NotebookSource(cells_of(cells), {})
    assert source.forbidden("honest", RULES) == []
    for name in ("f", "h", "k", "honest"):
        assert "too long" in source.forbidden(name, RULES)[0]


def test_of_a_notebook_without_end_the_beginning_is_read() -> None:
    sources = ["x = 1", "#" * (MAX_CELL_CHARS - 1) + "\n", "y = 2", *(["#" * (MAX_CELL_CHARS - 1) + "\n"] * 2), "z = 3"]
    assert [cell.number for cell in cells_of(sources)] == [1, 2, 3, 4]
    assert len(sources[1]) * 3 > MAX_NOTEBOOK_CHARS > len(sources[1]) * 2
