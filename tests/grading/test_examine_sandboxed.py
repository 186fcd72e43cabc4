"""The whole way: a notebook in the sandbox, its marks outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lmcourse.exercises import Exercise, case
from lmcourse.grading.fork_server import ForkServer
from tests.exercises.toy import answering, doubling
from tests.grading.examining import ForkLauncher, examined, reports_of
from tests.grading.sandboxed import needs_bubblewrap
from tests.grading.test_stand_ins import quadrupling

pytestmark = needs_bubblewrap
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


def test_honest_work_earns_everything(server: ForkServer) -> None:
    cells = ["answer = 42", "import torch\ndef double(x): return 2 * x"]
    reports = reports_of(cells, [answering(), doubling()], seed=3, launcher=server)
    assert {name: report.points / report.max_points for name, report in reports.items()} == {"answer": 1, "double": 1}


def test_the_solutions_cannot_be_read(server: ForkServer) -> None:
    """The same cell finds them where there is no sandbox, so it is the sandbox that hides them."""
    look = f"import os\ndef found(): return os.path.exists({str(ROOT / 'solutions')!r})"
    there = Exercise("found", points=1, minutes=1, difficulty=1, reference=lambda: True, cases=[case("look")])
    assert reports_of([look], [there], seed=1, launcher=ForkLauncher())["found"].points == 1
    assert reports_of([look], [there], seed=1, launcher=server)["found"].points == 0


def test_what_torch_loads_late_takes_no_time_from_a_case(server: ForkServer) -> None:
    """The first operator on the meta device loads sympy: seconds, where every processor is busy."""
    cell = "import sys\ndef loaded(): return 'sympy' in sys.modules"
    loaded = Exercise("loaded", points=1, minutes=1, difficulty=1, reference=lambda: True, cases=[case("look")])
    for launcher in (None, server):
        assert reports_of([cell], [loaded], launcher=launcher)["loaded"].points == 1


def test_nothing_is_left_behind(server: ForkServer, tmp_path: Path) -> None:
    spoil = f"open({str(tmp_path / 'mark')!r}, 'w').write('was here')"
    reports_of([spoil, "answer = 42"], [answering()], seed=1, launcher=server)
    assert list(tmp_path.iterdir()) == []


def test_what_stands_in_for_an_answer_holds_no_reference(server: ForkServer) -> None:
    """Only a name and a connection are in that process: a search of all its functions does not find the course's."""
    marked = doubling(reference=lambda x, marker="the course's own": 2 * x)
    looks = (
        "import gc\ndef quadruple(x):\n"
        "    functions = [o for o in gc.get_objects() if type(o).__name__ == 'function']\n"
        "    assert not any(f.__defaults__ == (\"the course's\" + ' own',) for f in functions)\n"
        "    assert set(vars(double)) == {'__name__', '__qualname__', '__module__', '_channel'}\n"
        "    return double(double(x))"
    )
    stub = "def double(x):\n    raise NotImplementedError"
    reports = reports_of([stub, looks], [marked, quadrupling()], launcher=server)
    assert (reports["double"].points, reports["quadruple"].points) == (0, 2)


DOWN = "def down(n):\n    return n and down(n - 1)\n"


@pytest.mark.parametrize("limit", ["", "import sys\nsys.setrecursionlimit(20000)\n"], ids=["as it is", "raised"])
def test_recursion_without_end_is_no_tampering(server: ForkServer, limit: str) -> None:
    """There Python drops the profiler that watches an answer's calls."""
    watched = doubling(forbid=["torch.fft"])
    for answer in ("down(10**6)", "[down(n) for n in range(900, 1000)]"):
        cell = f"{limit}{DOWN}def double(x):\n    try: {answer}\n    except RecursionError: pass\n    return 2 * x"
        assert examined([cell], [watched], launcher=server).evidence == ()
