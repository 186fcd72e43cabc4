"""A source with a heading `## Further` has two parts: both are counted, and the core is built alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.authoring.build import build, check_built
from lmcourse.authoring.document import load_notebook
from lmcourse.authoring.execute import execute
from lmcourse.authoring.folders import ChapterFiles
from lmcourse.authoring.numbering import core_alone, numbered, with_plans, with_row
from lmcourse.authoring.problems import find_problems
from lmcourse.authoring.source import read_source
from tests.authoring.tiny import FURTHER, IN_PARTS, SECOND, SOURCE, TINY, USE, source_of, write_source

CORE, LAST = "2 min · 1 exercise · 2 points", "2 min · 1 exercise · 1 point"
TEXT = "# %% [markdown]\n# " + 540 * "word " + "\n\n"
EIGHT = "".join(f"x{number} = {number}\n" for number in range(8))
IN_CORE, IN_FURTHER, ABOVE = "# %% tags=", SECOND, "# %% [markdown]\n# ### A"


def totals(text: str, folder: Path) -> str:
    """Return the third line of the first cell, which a second build must not change."""
    once = numbered(source_of(text, folder), TINY)
    assert numbered(once, TINY) == once
    return once.cells[0].text.split("\n")[2]


def put(part: str, where: str) -> str:
    """Return the source in parts with more cells above the first place that begins with `where`."""
    assert where in IN_PARTS
    return IN_PARTS.replace(where, f"{part}{where}", 1)


def test_both_parts_are_written_in_place_of_the_totals(tmp_path: Path) -> None:
    expected = f"**Core · {CORE}** · **Further · {LAST}**"
    plain = IN_PARTS.replace(expected, "**9 min · 9 exercises · 9 points**")
    assert totals(IN_PARTS, tmp_path) == totals(plain, tmp_path) == expected
    assert find_problems(source_of(IN_PARTS, tmp_path), TINY) == []
    assert totals(IN_PARTS.replace(FURTHER, ""), tmp_path) == "**4 min · 2 exercises · 3 points**"
    shortened = IN_PARTS[: IN_PARTS.index("# %% [markdown]\n# ## Further")]
    assert totals(shortened, tmp_path) == f"**{CORE}**", "a teacher who deletes Further keeps the core's minutes"


@pytest.mark.parametrize(
    ("cells", "minutes"),
    [
        (TEXT, 3),
        (f"# %%\n{EIGHT}{EIGHT}# a comment\nimport re\n\n", 2),
        (f'# %% tags=["hide-input"]\n{EIGHT}\n', 0),
        ("# %%\nfigures.one(2)\nexplore(figures.two)\n\n", 4.25),
        ('# %%\npredict("one")\n\n', 1.125),
    ],
    ids=["words", "given lines", "folded", "figures", "prediction"],
)
@pytest.mark.parametrize(("changed", "where"), [(0, IN_CORE), (1, IN_FURTHER)], ids=["core", "further"])
def test_part_counts_what_it_asks_of_readers(
    cells: str, minutes: float, changed: int, where: str, tmp_path: Path
) -> None:
    before, after = (totals(text, tmp_path).split("** · **") for text in (IN_PARTS, put(cells * 8, where)))
    assert after[1 - changed] == before[1 - changed]
    assert abs(int(after[changed].split(" ")[2]) - 2 - 8 * minutes) <= 1


@pytest.mark.parametrize("heading", ["### A · Halves", "### A · Halves  (9 min)", "## 2 · Halves"])
def test_section_of_further_states_its_minutes(heading: str, tmp_path: Path) -> None:
    text = put(TEXT, IN_FURTHER).replace("### A · Halves  (2 min)", heading)
    assert f"\n# {heading.removesuffix('  (9 min)')}  (5 min)\n" in numbered(source_of(text, tmp_path), TINY).text


def test_row_of_the_readme_shows_both_parts(tmp_path: Path) -> None:
    place = "[98 Tiny](notebooks/98-tiny/tiny.ipynb) | what it shows"
    chapter = type(TINY)(TINY.id, TINY.title, "IV · Tests")
    plain, parts = (f"IV | {place} | {counts}" for counts in ("3 | 2 | 3", "2 + 2 | 1 + 1 | 2 + 1"))
    for row in (plain, parts):
        assert with_row(row, source_of(IN_PARTS, tmp_path), chapter) == parts
        assert with_row(row, source_of(SOURCE, tmp_path), chapter) == plain


def test_plan_adds_up_the_parts_of_the_rows() -> None:
    rows = "I | [01 A](a) | x | 30 | 2 | 3\nIV | [10 B | C](b) | y | 88 + 70 | 6 + 4 | 19 + 11"
    plan = "| notebooks | 01, 10 | 01 |\n| minutes | {} | {} |\n"
    assert with_plans(plan.format("?", "188 + 1"), rows) == plan.format("118 + 70", "30")


THIRDS = "# %% [markdown]\n# ### B · Thirds\n\n"
LONG = "# %%\n" + "x = 1\n" * 26 + "\n"
HEADING = "# %% [markdown]\n# ## Further"
CLOSING = '# %% tags=["hide-input"]\nassert double'
DOUBLE = '# %% exercise="double"'
UNUSED = "no later cell of the core calls 'double': use the answer where readers see it"
MISTAKES: dict[str, tuple[str, str, str]] = {
    # name: the source, the beginning of the reported place, and the message
    "a long core": (put(TEXT * 32, IN_CORE), HEADING, "the core above takes 98 minutes: shorten it to 95 or less"),
    "an answer without a use": (IN_PARTS.replace(USE, ""), DOUBLE, UNUSED),
    "an answer used in a folded cell": (
        IN_PARTS.replace(USE, '# %% tags=["hide-input"]\nprint(double)\n\n'),
        DOUBLE,
        UNUSED,
    ),
    "an answer used only in Further": (IN_PARTS.replace(USE, "").replace(SECOND, f"{USE}{SECOND}"), DOUBLE, UNUSED),
    "a long given cell": (
        put(LONG, IN_CORE),
        LONG,
        "26 lines of given code in the core, where 25 are allowed: move code into the chapter's package, or fold the "
        "cell",
    ),
    "a section that needs another": (
        put(f"{THIRDS}# %%\ndef third():\n    return half\n\n", CLOSING),
        "# %%\ndef third",
        "'half' comes from another section of Further: define it in this one or in the core",
    ),
    "no sections": (
        IN_PARTS.replace("### A · Halves", "### Halves"),
        HEADING,
        "give Further sections with numbers or letters: `## 9 · Title` or `### A · Title`",
    ),
    "a heading twice": (
        put("# %% [markdown]\n# Again\n#\n# ## Further\n\n", IN_FURTHER),
        "# ## Further\n\n# %% [markdown]\n# ### Ex",
        "`## Further` occurs once, below the core, and begins its cell",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_a_part_is_reported_with_its_line(mistake: str, tmp_path: Path) -> None:
    text, where, message = MISTAKES[mistake]
    line = 1 + text[: text.index(where)].count("\n")
    assert [(one.line, one.message) for one in find_problems(source_of(text, tmp_path), TINY)] == [(line, message)]


@pytest.mark.parametrize(
    "text",
    [
        IN_PARTS.replace(USE, "").replace('# %% check="double"', f'{USE}# %% check="double"'),
        IN_PARTS.replace("double(21)", 'your("double")'),
        put(LONG.replace("# %%", '# %% tags=["hide-input"]'), IN_CORE),
        put(LONG, IN_FURTHER),
        IN_PARTS.replace("    return x + x\n", "    x = x + 0\n" * 30 + "    return x + x\n"),
        put(f"{THIRDS}# %%\nhalf = 3\nprint(half, math)\n\n", CLOSING),
        put("# %%\nshared = 4\n\n", ABOVE) + f"\n{THIRDS}# %%\nprint(shared, double)\n",
        put(f"{THIRDS.replace('### B', '## 2')}# %%\nimport math\n\n", ABOVE) + "\n# %%\nprint(math)\n",
        f"{IN_PARTS.replace(FURTHER, '').replace(USE, '')}\n{LONG}",
    ],
    ids=["tried", "passed on", "folded", "long", "answer", "own name", "shared", "imports", "no Further"],
)
def test_source_that_is_fine_in_parts_has_no_problem(text: str, tmp_path: Path) -> None:
    assert find_problems(source_of(text, tmp_path), TINY) == []


@pytest.mark.prove
def test_core_is_built_alone_and_further_comes_back(tmp_path: Path) -> None:
    files = ChapterFiles.of(TINY, tmp_path)
    path = write_source(tmp_path, IN_PARTS)
    build([TINY], tmp_path)
    whole = files.solution.read_bytes(), files.release.read_bytes()
    assert build([TINY], tmp_path, core=True)[0].changed
    for place in (files.solution, files.release):
        notebook = load_notebook(place)
        assert notebook is not None
        assert notebook.cells[0].source.endswith(f"**{CORE}**")
        assert [cell.id for cell in notebook.cells if "nbgrader" in cell.metadata] == ["double", "check_double"]
        assert "Further" not in place.read_text()
    assert check_built([TINY], tmp_path, core=True) == []
    assert check_built([TINY], tmp_path) == [
        "notebooks/98-tiny/tiny.ipynb is a release of the core alone; for all of it: run `lmcourse build 98`"
    ]
    assert path.read_text() == IN_PARTS
    path.write_text(IN_PARTS.replace("Return twice", "Return two times"))
    stale = " is not what tiny.py builds: run `lmcourse build 98"
    assert [stale in line for line in check_built([TINY], tmp_path)] == [True, True]
    assert [f"{stale} --core`" in line for line in check_built([TINY], tmp_path, core=True)] == [True, True]
    path.write_text(IN_PARTS)
    build([TINY], tmp_path)
    assert (files.solution.read_bytes(), files.release.read_bytes()) == whole
    assert len(check_built([TINY], tmp_path, core=True)) == 2


@pytest.mark.prove
def test_release_of_the_core_runs_unsolved_and_solved(tmp_path: Path) -> None:
    files = ChapterFiles.of(TINY, tmp_path)
    source = read_source(write_source(tmp_path, IN_PARTS))
    build([TINY], tmp_path, core=True)
    solution, release = load_notebook(files.solution), load_notebook(files.release)
    assert solution is not None
    assert release is not None
    execute(release, core_alone(source, TINY))
    # the last cells of the core: the one that uses the answer, and the folded one, which prints nothing
    assert [each.cells[-2].outputs[0].text for each in (solution, release)] == ["twice 21 is 42\n", "not written yet\n"]
