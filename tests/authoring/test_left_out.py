"""If a teacher deletes the cells of an exercise, the notebook still builds, and its totals change."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.authoring.build import build
from lmcourse.authoring.document import load_notebook
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.problems import find_problems, read_sources
from lmcourse.base.errors import CourseError
from lmcourse.exercises.exercise import Exercise
from tests.authoring import tiny
from tests.authoring.tiny import SOURCE, TINY, source_of, write_source

pytestmark = pytest.mark.prove

FIRST, SECOND = SOURCE.index("# %% [markdown]\n# ### Exercise 1"), SOURCE.index("# %% [markdown]\n# ### Exercise 2")
LAST = SOURCE.index('# %% tags=["hide-input"]')
WITHOUT_DOUBLE = SOURCE[:FIRST] + SOURCE[SECOND:LAST]
WITHOUT_HALF = SOURCE[:SECOND]


def totals(text: str, root: Path) -> str:
    write_source(root, text)
    (source,) = read_sources([TINY], root).values()
    return source.cells[0].text.split("\n")[2]


def test_the_totals_match_the_existing_cells(tmp_path: Path) -> None:
    assert totals(SOURCE.replace("2 exercises · 3 points", "9 exercises · 1 point"), tmp_path) == (
        "**3 min · 2 exercises · 3 points**"
    )
    assert totals(WITHOUT_HALF, tmp_path) == "**3 min · 1 exercise · 2 points**"
    assert totals(WITHOUT_DOUBLE.replace("**3 min", "**45 min"), tmp_path) == "**45 min · 1 exercise · 1 point**"
    assert totals(SOURCE[:FIRST], tmp_path) == "**3 min · 0 exercises · 0 points**"
    assert totals(SOURCE.replace("**3 min · 2 exercises · 3 points**", "No totals."), tmp_path) == "No totals."


def test_another_order_and_free_headings_are_fine(tmp_path: Path) -> None:
    turned = SOURCE[:FIRST] + SOURCE[SECOND:LAST] + SOURCE[FIRST:SECOND]
    for text in (turned, SOURCE.replace("# ### Exercise 1 · Twice  (2 points · 1 min · ●)", "# ## Twice")):
        assert find_problems(source_of(text, tmp_path), TINY) == []


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second exercise use the first."""
    half = Exercise("half", 1, 2, 2, reference=lambda: 0.5, cases=tiny.half.cases, value=True, uses=["double"])
    monkeypatch.setattr(tiny, "EXERCISES", (tiny.double, half))


@pytest.mark.usefixtures("used")
def test_a_left_out_answer_is_reported_only_if_another_calls_it(tmp_path: Path) -> None:
    called = WITHOUT_DOUBLE.replace("half = 1 / 2", "half = double(0.25)")
    defined = called.replace("import math\n", "import math\n\ndouble = (2).__mul__\n")
    (problem,) = find_problems(source_of(called, tmp_path), TINY)
    assert problem.message == "'half' calls 'double', which is left out: define it in a cell above"
    assert problem.line == 1 + called[: called.index('# %% exercise="half"')].count("\n")
    assert find_problems(source_of(WITHOUT_DOUBLE, tmp_path), TINY) == []
    assert find_problems(source_of(defined, tmp_path), TINY) == []


def test_build_leaves_an_exercise_out_and_keeps_an_answer_that_is_used(tmp_path: Path) -> None:
    write_source(tmp_path, SOURCE.replace('tags=["hide-input"]\n', 'tags=["hide-input"]\nprint(double(3))\n'))
    for name, used in (("double", True), ("half", False)):
        build([TINY], tmp_path, without=[name])
        notebook = load_notebook(ChapterFiles.of(TINY, tmp_path).release)
        assert notebook is not None
        texts = [cell.source for cell in notebook.cells]
        assert f"**{2 if used else 1} min · 1 exercise ·" in texts[0]
        assert sum(f'left_out("{name}")' in text and "return x + x" in text for text in texts) == used
        assert not any(text.startswith("### Exercise 1" if used else "### Exercise 2") for text in texts)
        assert f"check_{name}" not in [cell.id for cell in notebook.cells]
    with pytest.raises(CourseError, match="it has no exercise 'third' to leave out, only double, half"):
        build([TINY], tmp_path, without=["third"])
    write_source(tmp_path, SOURCE.replace("# ### Exercise 1", "# Some words.\n#\n# ### Exercise 1"))
    with pytest.raises(CourseError, match="the text of 'double' shares a cell"):
        build([TINY], tmp_path, without=["double"])
