"""All mistakes of authors are reported together, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lmcourse.authoring.build import build, check_built
from lmcourse.authoring.problems import find_problems
from lmcourse.base.errors import CourseError
from lmcourse.check_tests.answers import answer_cells
from tests.authoring.tiny import SOURCE, TINY, line_of, source_of, write_source

EXERCISE = '# %% exercise="double"'
CHECK = '# %% check="double"'
AFTER = "# %% [markdown]\n# ### Exercise 2"
DOUBLE = SOURCE[SOURCE.index(EXERCISE) : SOURCE.index(CHECK)]
CHECKED = SOURCE[SOURCE.index(CHECK) : SOURCE.index(AFTER)]
HEADING = "# ### Exercise 1 · Twice  (2 points · 1 min · ●)"
TAGS = 'tags=["hide-input"]'
TASK = 'task="why"'
ITEMS = "# - 1½ · a cause\n# - 1 · a unit\n"
SCHEME = f"# ### BEGIN MARK SCHEME\n{ITEMS}# ### END MARK SCHEME\n\n{AFTER}"

MISTAKES: dict[str, tuple[str, str, str, str]] = {
    # name: the replaced text, its replacement, a part of the reported line, and the message
    "unknown exercise": ('exercise="double"', 'exercise="duble"', "duble", "unknown exercise 'duble'"),
    "two exercise cells": (CHECK, f"{DOUBLE}{CHECK}", EXERCISE, "'double' has 2 exercise cells"),
    "two check cells": (AFTER, f"{CHECKED}{AFTER}", CHECK, "'double' has 2 check cells"),
    "a task of code": (AFTER, f'# %% {TASK} points="2"\nx = 1\n{SCHEME}', TASK, "a task is a cell of Markdown"),
    "a task without points": (AFTER, f"# %% [markdown] {TASK}\n# Why?\n{SCHEME}", TASK, 'points="3"'),
    "a task without a rubric": (AFTER, f'# %% [markdown] {TASK} points="2"\n# Why?\n\n{AFTER}', TASK, "what earns the"),
    "items with other points": (
        AFTER,
        f'# %% [markdown] {TASK} points="2"\n# - 5 · no item\n{SCHEME}',
        TASK,
        "have 2.5 points, not 2",
    ),
    "a rubric without a task": (
        AFTER,
        f"# %% [markdown] {TAGS}\n# Why?\n{SCHEME}",
        "[markdown] tags",
        "belong to a task",
    ),
    "points in another heading": (HEADING, "# ## Twice (3 points)", "## Twice", "3 points, and `double` has 2"),
    "heading without exercise": (AFTER, f"# %% [markdown]\n{HEADING}\n\n{AFTER}", "", "without its cell"),
    "missing end": ("    ### END SOLUTION\n", "", "    ### BEGIN SOLUTION", "missing ### END SOLUTION"),
    "misspelt marker": ("    ### BEGIN SOLUTION", "    ## begin solution", "## begin", "is no marker"),
    "solution elsewhere": (
        "import math\n",
        "### BEGIN SOLUTION\n### END SOLUTION\n",
        "### BEGIN",
        "a solution outside",
    ),
    "hidden tests elsewhere": (
        "import math\n",
        "### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS\n",
        "",
        "hidden tests outside",
    ),
    "no solution region": (DOUBLE, f"{EXERCISE}\ndef double(x):\n    return 2 * x\n\n", EXERCISE, "has no ### BEGIN"),
    "no stub": ("half = None  # a number in place of None\n", "", '# %% exercise="half"', "leaves no stub"),
    "no check": (CHECKED, "", EXERCISE, "is not followed by its check"),
    "check first": (f"{DOUBLE}{CHECKED}", f"{CHECKED}{DOUBLE}", CHECK, "does not follow its exercise"),
    "the last check missing": ('# %% check="half"', "# %%", '# %% exercise="half"', "is not followed by its check"),
    "another check": ("check(double)\n", "check(double)  # please\n", CHECK, "write it exactly so:\ncheck(double)\n"),
    "check of a function": ("check(half=half)\n", "check(half)\n", '# %% check="half"', "\ncheck(half=half)\n"),
    "syntax error": ("    return x + x", "    return x +", "    return x +", "syntax error: invalid syntax"),
    "magic": ("import math", "%matplotlib inline", "%matplotlib", "syntax error"),
    "unknown option": (TAGS, 'tag="hide-input"', "# %% tag=", "unknown option 'tag'"),
    "a word for a list": (TAGS, 'tags="hide"', "# %% tags", 'tags is a list of words, not "hide"'),
    "unknown kind": ("# %%\nimport", "# %% [raw]\nimport", "# %% [raw]", "unknown kind of cell [raw]"),
    "exercise and check": ('exercise="double"', 'exercise="double" check="half"', EXERCISE, "not both"),
    "exercise in markdown": (EXERCISE, '# %% [markdown] exercise="double"', "[markdown] ex", "not of Markdown"),
    "empty cell": ("# %%\nimport", "# %%\n\n# %%\nimport", "# %%", "an empty cell"),
}


def spoilt(mistake: str) -> str:
    """Return the tiny source with this mistake."""
    old, new, *_ = MISTAKES[mistake]
    assert old in SOURCE
    return SOURCE.replace(old, new, 1)


def test_a_source_without_mistakes_has_no_problem(tmp_path: Path) -> None:
    assert find_problems(source_of(SOURCE, tmp_path), TINY) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_reported_with_its_file_and_line(mistake: str, tmp_path: Path) -> None:
    text = spoilt(mistake)
    _, _, where, told = MISTAKES[mistake]
    problems = find_problems(source_of(text, tmp_path), TINY)
    fitting = [problem for problem in problems if told in problem.message]
    assert fitting, [str(problem) for problem in problems]
    assert str(fitting[0]).startswith(f"{tmp_path / 'some.py'}:{fitting[0].line}: ")
    if where:
        assert fitting[0].line == line_of(text, where), str(fitting[0])


@pytest.mark.parametrize("use", [build, check_built, answer_cells])
def test_all_mistakes_of_all_sources_are_reported_together(use: Callable[..., object], tmp_path: Path) -> None:
    another = type(TINY)("99-another", TINY.title, TINY.part)
    third = type(TINY)("97-unwritten", TINY.title, TINY.part)
    text = SOURCE.replace("import math", "import").replace("x + x", "x +")
    first = write_source(tmp_path, text)
    second = write_source(tmp_path, spoilt("misspelt marker"), another)
    with pytest.raises(CourseError) as told:
        use([TINY, another, third], tmp_path)
    lines = str(told.value).split("\n")
    places = [line.split(" ")[0].removesuffix(":") for line in lines]
    assert places[:2] == [f"{first}:{line_of(text, part)}" for part in ("import", "x +")]
    assert sum(place.startswith(str(second)) for place in places) == len(places) - 3 >= 2
    assert (
        lines[-1]
        == f"{tmp_path}/solutions/97-unwritten/unwritten.py:1: the source of notebook 97-unwritten cannot be read"
    )


def test_a_source_that_is_not_text_is_reported(tmp_path: Path) -> None:
    write_source(tmp_path).write_bytes(b"# %%\n\xff\xfe")
    with pytest.raises(CourseError, match=r"tiny\.py:1: the source of notebook 98-tiny cannot be read"):
        check_built([TINY], tmp_path)
