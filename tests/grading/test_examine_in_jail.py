"""The whole way: a notebook in the jail, its marks outside."""

from __future__ import annotations

from pathlib import Path

from lmcourse.exercises import Exercise, case
from lmcourse.grading.examination import PlainHost
from lmcourse.grading.jail import Jail
from tests.exercises.toy import answering, doubling
from tests.grading.examining import reports_of
from tests.grading.jailed import needs_bubblewrap

pytestmark = needs_bubblewrap
ROOT = Path(__file__).resolve().parents[2]


def test_honest_work_earns_everything() -> None:
    cells = ["answer = 42", "import torch\ndef double(x): return 2 * x"]
    reports = reports_of(cells, [answering(), doubling()], seed=3, host=PlainHost(Jail().prefix()))
    assert {name: report.points / report.max_points for name, report in reports.items()} == {"answer": 1, "double": 1}


def test_the_solutions_cannot_be_read() -> None:
    """The same cell finds them where there is no jail, so it is the jail that hides them."""
    look = f"import os\ndef found(): return os.path.exists({str(ROOT / 'solutions')!r})"
    there = Exercise("found", points=1, minutes=1, difficulty=1, reference=lambda: True, cases=[case("look")])
    assert reports_of([look], [there], seed=1)["found"].points == 1
    assert reports_of([look], [there], seed=1, host=PlainHost(Jail().prefix()))["found"].points == 0


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    spoil = f"open({str(tmp_path / 'mark')!r}, 'w').write('was here')"
    reports_of([spoil, "answer = 42"], [answering()], seed=1, host=PlainHost(Jail().prefix()))
    assert list(tmp_path.iterdir()) == []
