"""A chapter that builds in a second: one function and one value, in which tests can make mistakes."""

from __future__ import annotations

from pathlib import Path

from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.source import Source, read_source
from lmcourse.course.chapters import Chapter
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise, value_exercise

double = Exercise(
    "double",
    points=2,
    minutes=1,
    difficulty=1,
    reference=lambda x: 2 * x,
    cases=[case("three", 3.0), case("minus two", -2.0)],
    hidden_cases=lambda random: [case("any number", -1.5), case("any number", random.random())],
    hints=["Multiply."],
    forbid=["math.ldexp"],
)
half = value_exercise("half", points=1, minutes=2, difficulty=2, reference=lambda: 0.5)
half.right_value("1 / 2", "0.25 + 0.25", "2**-1")


@double.variant
def times_two(x: float) -> float:
    return 2 * x


EXERCISES = (double, half)
PREDICTIONS = ()


class TinyChapter(Chapter):
    """A chapter with the exercises of this module."""

    module = __name__


TINY = TinyChapter("98-tiny", "Tiny", "Tests")

SOURCE = '''"""What an author's editor shows first."""

# %% [markdown]
# # Tiny
#
# **3 min · 2 exercises · 3 points**

# %%
import math


def check(answer=None, hidden=False, **values):
    return 1.0


# %% [markdown]
# ### Exercise 1 · Twice  (2 points · 1 min · ●)
#
# Return twice `x`.

# %% exercise="double"
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return x + x
    ### END SOLUTION


# %% check="double"
check(double)
### BEGIN HIDDEN TESTS
check(double, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2 · A half  (1 point · 2 min · ●●)

# %% exercise="half"
half = None  # a number in place of None
### BEGIN SOLUTION
half = 1 / 2
### END SOLUTION

# %% check="half"
check(half=half)
### BEGIN HIDDEN TESTS
check(half=half, hidden=True)
### END HIDDEN TESTS

# %% tags=["hide-input"]
assert double(half) == 1 and math.pi > 3
print("three lines end here")
'''


USE = """# %%
try:
    print("twice 21 is", double(21))
except NotImplementedError:
    print("not written yet")

"""
"""A cell that runs before and after the exercise is solved."""

FURTHER = """# %% tags=["hide-input"]
assert math.pi > 3

# %% [markdown]
# ## Further

# %% [markdown]
# ### A · Halves  (2 min)

"""
SECOND = "# %% [markdown]\n# ### Exercise 2"
IN_PARTS = SOURCE.replace(SECOND, f"{USE}{FURTHER}{SECOND}").replace(
    "**3 min · 2 exercises · 3 points**",
    "**Core · 2 min · 1 exercise · 2 points** · **Further · 2 min · 1 exercise · 1 point**",
)
"""The source with its second exercise in Further."""


def write_source(root: Path, text: str = SOURCE, chapter: Chapter = TINY) -> Path:
    """Write the source to its place in a course folder."""
    path = ChapterFiles.of(chapter, root).source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def source_of(text: str, folder: Path) -> Source:
    """Return the source read from a file with this text."""
    path = folder / "some.py"
    path.write_bytes(text.encode())
    return read_source(path)


def line_of(text: str, part: str) -> int:
    """Return the number of the first line of `text` that equals `part` or, if there is none, contains it."""
    lines = text.split("\n")
    return 1 + (lines.index(part) if part in lines else next(n for n, line in enumerate(lines) if part in line))
