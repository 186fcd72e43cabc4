"""The build numbers headings, and references follow; it writes facts, totals and the README's row."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.authoring.build import build, check_built
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.numbering import changed_lines, numbered, with_references, with_row
from lmcourse.authoring.problems import find_problems
from lmcourse.base.errors import CourseError
from tests.authoring.tiny import SOURCE, TINY, source_of, write_source

ONE, TWO = "### Exercise 1 · Twice  (2 points · 1 min · ●)", "### Exercise 2 · A half  (1 point · 2 min · ●●)"
TOTALS = "**3 min · 2 exercises · 3 points**"
ROW = "IV | [98 Old](notebooks/98-tiny/tiny.ipynb) | what it shows | 1 | 1 | 1"
README = f"Part | Notebook\n:--- | :---\n{ROW}\nIV | [98 Tiny](notebooks/98-tiny/another.ipynb) | x | 1 | 1 | 1\n"


def built(text: str, folder: Path) -> str:
    """Return the source that the build makes of a source without problems."""
    source = source_of(text, folder)
    assert find_problems(source, TINY) == []
    return numbered(source, TINY).text


def problems(text: str, folder: Path) -> list[str]:
    return [problem.message for problem in find_problems(source_of(text, folder), TINY)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ONE, TWO),
        ("### Exercise · Twice", "### Exercise · A half"),
        ("### Exercise 7 · Twice (1 point)", "### Exercise 7 · A half  (9 points · 9 min · ●●●)"),
        ("### Exercise 1 · Twice", "### Exercise 1 · A half  (1 point · 2 min · ●● · differentiable) "),
    ],
)
def test_headings_and_totals_are_written(one: str, two: str, tmp_path: Path) -> None:
    text = SOURCE.replace(ONE, one).replace(TWO, two).replace(TOTALS, "**3 min · 1 exercise · 1 point**")
    assert built(text, tmp_path) == SOURCE


def test_titles_in_brackets_and_other_headings_stay(tmp_path: Path) -> None:
    task = '# %% [markdown] task="why" points="4"\n# ### Exercise 5 · Why?  (4 points)\n# ### BEGIN MARK SCHEME\n'
    text = SOURCE.replace(ONE, "### Exercise · Twice (or more)").replace(
        "# %% [markdown]\n# ### Exercise 2", f"{task}# ### END MARK SCHEME\n\n# %% [markdown]\n# ### Exercise 2"
    )
    found = built(text, tmp_path)
    assert "# ### Exercise 1 · Twice (or more)  (2 points · 1 min · ●)\n" in found
    assert "# ### Exercise 2 · Why?  (4 points)\n" in found
    assert "# ### Exercise 3 · A half  (1 point" in found


INSERTED = SOURCE.replace(ONE, "### Exercise · Twice").replace("Exercise 2 ·", "Exercise 1 ·")
"""The second exercise was the first one before another was inserted above it."""


@pytest.mark.parametrize(
    ("words", "then"),
    [
        ("in Exercise 4.", "in Exercise 5."),
        ("exercise 5 and notebook 5", "exercise 6 and notebook 5"),
        ("Exercises 3, 4 and 5", "Exercises 3, 5 and 6"),
        ("Exercise\n# 4", "Exercise\n# 5"),
        ("Exercises 4–5", "Exercises 5–6"),
        ("Exercises 4 to 6", "Exercises 5 to 7"),
        ("Exercises 6 to 4", "Exercises 7 and 5"),
        ("Exercises 3 to 5", "Exercises 3, 5 and 6"),
        ("Exercises 3\n# to 5", "Exercises 3, 5 and\n# 6"),
        ("| Exercises 5 and 1 | 4 |", "| Exercises 6 and 1 | 4 |"),
        *((same, same) for same in ("Exercise 4 of notebook 08", "exercise 4\n# in the notebook on tensors")),
        *((same, same) for same in ("exercise 4 there", "Notebook 08, exercise 4", "exercise 4000", "Exercise 4.5")),
        ("# ### Exercise 4 · Title", "# ### Exercise 4 · Title"),
    ],
)
def test_references_follow_their_exercise(words: str, then: str) -> None:
    assert with_references(f"Look {words}, at 4.", {4: 5, 5: 6, 6: 7}) == f"Look {then}, at 4."


def test_references_in_code_and_reasons_follow(tmp_path: Path) -> None:
    tags = 'tags=["hide-input", "because Exercise {}"]'
    text = INSERTED.replace('print("three', 'print("Exercise 1, three').replace('tags=["hide-input"]', tags.format(1))
    found = built(text, tmp_path)
    assert 'print("Exercise 2, three' in found
    assert tags.format(2) in found


def test_exercises_that_change_places_change_numbers(tmp_path: Path) -> None:
    text = SOURCE.replace("Exercise 1 ·", "Exercise 2 ·").replace(
        TWO, "### Exercise 1 · A half\n#\n# Exercises 1 and 2"
    )
    assert "# Exercises 2 and 1\n" in built(text, tmp_path)


def test_references_that_have_two_meanings_or_none_are_reported(tmp_path: Path) -> None:
    copied = INSERTED.replace("### Exercise · Twice", "### Exercise 1 · Twice")
    twice = copied.replace("Return twice", "See Exercise 1: return twice")
    assert problems(copied, tmp_path) == []
    assert problems(twice, tmp_path) == ["two headings have the number 1: remove the number from the new one"]
    deleted = SOURCE.replace("Exercise 2 ·", "Exercise 3 ·").replace("Return twice", "See exercise 2: return twice")
    assert problems(deleted, tmp_path) == ["there is no exercise 2 any more: correct this reference"]


def test_where_exercises_are_left_out_numbers_stay(tmp_path: Path) -> None:
    first, second = (SOURCE.index(f"# %% [markdown]\n# ### Exercise {number}") for number in (1, 2))
    text = (SOURCE[:first] + SOURCE[second:]).replace("Exercise 2 ·", "Exercise 7 ·").replace("· 2 min", "· 9 min")
    assert "# ### Exercise 7 · A half  (1 point · 2 min · ●●)" in built(text, tmp_path)
    (problem,) = problems(text.replace("Exercise 7 ·", "Exercise ·"), tmp_path)
    assert problem == "number this heading: exercises are left out, so the build does not number them"


def test_the_row_of_the_readme_is_written(tmp_path: Path) -> None:
    source = source_of(SOURCE, tmp_path)
    row = "Tests | [98 Tiny](notebooks/98-tiny/tiny.ipynb) | what it shows | 3 | 2 | 3"
    assert with_row(README, source, TINY) == README.replace(ROW, row)
    left_out = source_of(SOURCE[: SOURCE.index("# %% [markdown]\n# ### Exercise 2")], tmp_path)
    assert with_row(README, left_out, TINY) == README


def test_a_long_line_is_shown_around_its_change() -> None:
    assert changed_lines("a.md", "x\nold\nz", "x\nnew\nz") == ["a.md:2: new"]
    (line,) = changed_lines("a.md", f"{'a' * 500}1{'b' * 500}", f"{'a' * 500}2{'b' * 500}")
    assert line.startswith("a.md:1: …" + "a" * 40 + "2b")
    assert len(line) < 140


@pytest.mark.prove
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_build_rewrites_the_source_and_the_readme_once(newline: str, tmp_path: Path) -> None:
    text = INSERTED.replace("Return twice", "As in Exercise 1: return twice")
    right = SOURCE.replace("Return twice", "As in Exercise 2: return twice")
    path = write_source(tmp_path)
    path.write_text(text, newline=newline)
    (tmp_path / "README.md").write_text(README)
    other = tmp_path / "solutions" / "97-other" / "other.py"
    other.parent.mkdir()
    other.write_text("# %% [markdown]\n# Exercise 1\n# Exercise 1 of notebook 98\n")
    wrong = "has numbers or totals that are not right: run `lmcourse build 98`"
    stale = check_built([TINY], tmp_path)
    assert stale[:2] == [f"solutions/98-tiny/tiny.py {wrong}", f"README.md {wrong}"]
    said: list[str] = []
    build([TINY], tmp_path, say=said.append)
    assert path.read_bytes() == right.replace("\n", newline).encode()
    assert said[0] == f"{path}:{text[: text.index('### Ex')].count(chr(10)) + 1}: # {ONE}"
    assert [line.split(": ", 1)[1] for line in said[1:4]] == [
        "# As in Exercise 2: return twice `x`.",
        f"# {TWO}",
        "Tests | [98 Tiny](notebooks/98-tiny/tiny.ipynb) | what it shows | 3 | 2 | 3",
    ]
    assert f"{other}:3: look here: exercise 1 is now exercise 2" in said
    assert not any(line.startswith((f"{other}:2:", f"{path}:1:")) for line in said)
    assert check_built([TINY], tmp_path) == []
    build([TINY], tmp_path, say=pytest.fail)


@pytest.mark.prove
def test_a_refused_build_rewrites_nothing(tmp_path: Path) -> None:
    text = INSERTED.replace("x + x", "x +")
    path = write_source(tmp_path, text)
    with pytest.raises(CourseError):
        build([TINY], tmp_path, say=pytest.fail)
    assert path.read_text() == text
    assert not ChapterFiles.of(TINY, tmp_path).solution.exists()
