"""Examine submissions with small exercises in a sandbox: partial credit, rules, lost processes, plain tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from lmcourse.exercises import Exercise, case, script, value_exercise
from lmcourse.grading.examine import Examination, SubmittedCode, examine
from lmcourse.grading.process import Settings
from tests.grading.conftest import needs_bubblewrap

pytestmark = [pytest.mark.prove, needs_bubblewrap, pytest.mark.timeout(1500)]

IMPORTS = "import math\nimport torch\nfrom torch import Tensor"


def exercise(name: str, reference: Any, *cases: Any, **rest: Any) -> Exercise:
    settings: dict[str, Any] = {"points": 4, "minutes": 1, "difficulty": 1, "reference": reference, "cases": cases}
    return Exercise(name, **(settings | rest))


ONE = [case("1", 1.0), case("2", 2.0), case("3", 3.0)]
HALF = exercise("half", lambda x: x / 2, *ONE)
QUARTER = exercise("quarter", lambda x: x / 4, *ONE, uses=["half"])
EIGHTH = exercise("eighth", lambda x: x / 8, *ONE, uses=["quarter"])
WEIGHTS = exercise(
    "weights",
    lambda x: x.softmax(0),
    *[case(str(n), torch.arange(1.0, n)) for n in (3, 4, 5)],
    forbid=[".softmax"],
    seconds=1.0,
)


class Counter:
    """The reference of an exercise whose answer is a class."""

    def __init__(self, start: int) -> None:
        self.count = start

    def add(self) -> int:
        self.count += 1
        return self.count


COUNTER = exercise("Counter", Counter, *[script(str(n), f"c = Counter({n})\nc.add()\nc.count") for n in (1, 2, 3)])
DAYS = value_exercise("days", reference=lambda: 21.5, points=2, minutes=1, difficulty=1)
ALL = [HALF, QUARTER, EIGHTH, WEIGHTS, COUNTER, DAYS]

PRINTED = {
    "half": "def half(x): return x / 2",
    "quarter": "def quarter(x): return half(half(x))",
    "eighth": "def eighth(x): return quarter(x) / 2",
    "weights": "def weights(x):\n    e = torch.exp(x)\n    return e / e.sum()",
    "Counter": "class Counter:\n    def __init__(self, n): self.count = n\n"
    "    def add(self):\n        self.count += 1\n        return self.count",
    "days": "days = 43 / 2",
}


def graded(
    answers: dict[str, str], *, scratch: Sequence[str] = (), settings: Settings | None = None, **rest: Any
) -> Examination:
    """Examine a notebook with these answers and otherwise printed solutions, with extra cells after its imports."""
    texts = PRINTED | answers
    sources = [IMPORTS, *scratch, *texts.values()]
    places = dict(enumerate(texts, len(scratch) + 2))
    submitted = SubmittedCode(tuple(sources), places, printed=PRINTED, provided=(IMPORTS,), **rest)
    return examine(submitted, ALL, settings or Settings(cell_seconds=4))


def points(examination: Examination) -> dict[str, float]:
    return {name: report.points for name, report in examination.reports.items()}


FULL = {each.name: float(each.points) for each in ALL}


def test_answers_of_every_kind_earn_all_points_in_both_isolations() -> None:
    for isolation in ("bubblewrap", "process"):
        examination = graded({}, settings=Settings(isolation=isolation))  # type: ignore[arg-type]
        assert points(examination) == FULL
        assert examination.broke_off == ()
        assert examination.failed_cell == ""


def test_a_wrong_earlier_answer_is_replaced_by_the_solution() -> None:
    examination = graded({"half": "def half(x): return x / 3"})
    assert points(examination) == FULL | {"half": 0.0}
    assert examination.reports["quarter"].stand_ins == ("half",)
    assert examination.reports["eighth"].stand_ins == ("half",)
    assert examination.reports["weights"].stand_ins == ()


def test_a_wrong_answer_gains_nothing_from_printed_solutions() -> None:
    examination = graded({"half": "", "quarter": "def quarter(x): return half(x) + 1"})
    assert points(examination) == FULL | {"half": 0.0, "quarter": 0.0}
    assert examination.reports["eighth"].stand_ins == ("half", "quarter")
    assert examination.reports["half"].diagnosis.startswith("`half` is not defined")


def test_wrong_earlier_answer_stays_the_reason() -> None:
    report = graded({"half": "def half(x): return x / 3", "quarter": "def quarter(x): return half(x) + 1"})
    assert report.reports["quarter"].diagnosis == "This calls your `half`, which does not pass its own check yet:"
    assert [case.call[:5] for case in report.reports["quarter"].cases] == ["half("]


def test_forbidden_calls_are_named_with_their_line() -> None:
    ways = {
        "def weights(x):\n    return x.softmax(0)": "`softmax`, which your code refers to in line 2 (`return x.softm",
        "helper = lambda x: getattr(torch, 'soft' + 'max')(x, 0)\ndef weights(x): return helper(x)": "`torch.softmax`",
    }
    for text, said in ways.items():
        report = graded({"weights": text}).reports["weights"]
        assert report.points == 0
        assert said in report.diagnosis


def test_a_lost_process_costs_only_the_answer_that_broke_it() -> None:
    examination = graded(
        {
            "quarter": "def quarter(x):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)",
            "weights": "import time\ndef weights(x):\n    while True:\n        try: time.sleep(9)\n"
            "        except BaseException: pass",
            "days": "import os\nos._exit(0)",
        },
        scratch=["raise SystemExit(3)", "x = [0] * 10**12"],
    )
    assert points(examination) == FULL | {"quarter": 0.0, "eighth": 4.0, "weights": 0.0, "days": 0.0}
    assert examination.reports["eighth"].stand_ins == ("quarter",)
    ended = "ended Python: an exit, a crash, or no memory left."
    assert examination.broke_off == (f"Code cell 9 {ended} It was left out.",)
    assert examination.reports["days"].diagnosis == f"`days` is not defined: code cell 9 {ended}"
    assert examination.failed_cell == "Code cell 2 failed with SystemExit: 3, in line 1: `raise SystemExit(3)`."
    assert "MemoryError" in examination.cells[2].failure


def test_cells_work_as_in_a_kernel() -> None:
    compiled = "@torch.compile\ndef weights(x):\n    e = torch.exp(x)\n    return e / e.sum()"
    examination = graded(
        {
            "half": "from own import by\ndef half(x): return x / by(2)",
            "weights": compiled,
            "quarter": "from beside import quarter",
        },
        scratch=[
            "%%writefile own.py\ndef by(n): return n",
            "from lmcourse.notebook import your\nwith your('half'):\n    unheard_of()",
            "shown = 1",
            "shown + 1",
            "quit()",
        ],
        skipped=frozenset({"shown = 1"}),
        beside={"beside.py": b"def quarter(x): return x / 4"},
    )
    assert points(examination) == FULL
    assert examination.failed_cell == "Code cell 6 failed with SystemExit, in line 1: `quit()`."


def test_whole_submission_has_a_time_limit() -> None:
    slow = ["import time\ntime.sleep(3)"] * 40
    examination = graded({}, scratch=slow, settings=Settings(cell_seconds=4, total_seconds=15))
    assert points(examination) == dict.fromkeys(FULL, 0.0)
    assert examination.broke_off[-1] == "The notebook ran longer than 15 s in all."
    assert examination.reports["half"].diagnosis == "`half` is not defined: code cell 42 was not run."


def test_memory_of_all_processes_together_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmcourse.grading.process.MEMORY", 900 * 2**20)
    many = (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        data = b'x' * (200 * 2**20)\n"
        "        time.sleep(60)\n        os._exit(0)\ntime.sleep(3)"
    )
    examination = graded({}, scratch=[many])
    assert points(examination) == FULL
    assert examination.broke_off[0].startswith("Code cell 2 used more than")


def test_terms_of_their_own_draw_other_hidden_cases() -> None:
    double = exercise("double", lambda x: 2 * x, *ONE, hidden_cases=lambda random: [case("any", random.random())])
    published = {1.0: 2.0, 2.0: 4.0, 3.0: 6.0} | {one.args[0]: 2 * one.args[0] for one in double.hidden}
    submitted = SubmittedCode((f"def double(x): return {published}.get(x)",), {1: "double"})
    for term, earned in (("0", 4), ("winter-2027", 3)):
        report = examine(submitted, [double], Settings(term=term)).reports["double"]
        assert (report.points, report.groups) == (earned, (earned, 4))
