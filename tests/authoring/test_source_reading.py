"""Sources are read as in jupytext, but with line numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.authoring.source import read_source
from tests.authoring.tiny import SOURCE, source_of

REPOSITORY = Path(__file__).resolve().parents[2]
AUTHORED = sorted((REPOSITORY / "solutions").glob("*/*.py"))

TEXT = """# A comment above the first cell,
#
# in two paragraphs.

# %% [markdown]
# # Title
#
#     indented
# last

# %%


x = 1


# %% tags=["hide-input", "because it is long"]
y = '''
#%% not a marker'''
# %%timeit, which is none either
# %% exercise="ulp"
def ulp():
    ...
# %% check="ulp" tags=["a"]
check(ulp)"""


def test_cells_with_their_options_and_text(tmp_path: Path) -> None:
    cells = source_of(TEXT, tmp_path).cells
    assert [(cell.kind, cell.options) for cell in cells] == [
        ("markdown", {}),
        ("code", {}),
        ("code", {"tags": ["hide-input", "because it is long"]}),
        ("code", {"exercise": "ulp"}),
        ("code", {"check": "ulp", "tags": ["a"]}),
    ]
    assert cells[0].text == "# Title\n\n    indented\nlast"
    assert cells[1].text == "\n\nx = 1"
    assert (cells[3].exercise, cells[3].check, cells[4].exercise, cells[4].check) == ("ulp", None, None, "ulp")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [TEXT, SOURCE], ids=["text", "tiny"])
def test_every_line_of_a_cell_has_its_number_in_the_file(text: str, newline: str, tmp_path: Path) -> None:
    written = text.split("\n")
    for cell in source_of(text.replace("\n", newline), tmp_path).cells:
        assert written[cell.line - 1].startswith("# %%")
        for number, line in enumerate(cell.text.split("\n")):
            found = written[cell.line_of(number) - 1]
            assert found == (line if cell.kind == "code" else f"# {line}".rstrip())


def test_a_form_feed_or_a_line_separator_is_not_a_new_line(tmp_path: Path) -> None:
    cells = source_of('# %%\nx = "a\u2028b\x0cc"\n# %%\ny', tmp_path).cells
    assert [cell.line for cell in cells] == [1, 3]
    assert cells[0].text == 'x = "a\u2028b\x0cc"'


@pytest.mark.prove
@pytest.mark.parametrize("path", AUTHORED, ids=lambda path: path.parent.name)
def test_jupytext_reads_the_same_cells(path: Path) -> None:
    """So an author can open a source as a notebook in JupyterLab."""

    import jupytext

    ours = read_source(path)
    theirs = jupytext.read(path, fmt="py:percent").cells
    pairs = zip(ours.cells, theirs, strict=True)
    written = [(mine, other) for mine, other in pairs if other.source or not mine.check]  # the build writes a check
    assert [(mine.kind, mine.text) for mine, _ in written] == [(other.cell_type, other.source) for _, other in written]
    names = ("exercise", "check", "task", "points", "tags")
    told = [{name: cell.metadata[name] for name in names if name in cell.metadata} for cell in theirs]
    assert [cell.options for cell in ours.cells] == told


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("# note\nimport math\n# %%\nx", 2, "code above the first cell"),
        ("x = 1\n", 1, "code above the first cell"),
        ("'''open\n# %%\nx", 1, "syntax error"),
        ("# %% exercise=ulp\nx", 1, "'exercise=ulp' is not an option"),
        ("# %%\nx\n# %% A title\nx", 3, "'A title' is not an option"),
        ("# %% tags=[a]\nx", 1, "is not a list of words in double quotes"),
        ("# %%\nx\n# %% [markdown]\n# a\nb = 1", 5, "a line of Markdown starts with '# '"),
        ('# %% [markdown]\n"""\na\n"""', 2, "a line of Markdown starts with '# '"),
        ("# %% [markdown]\n#a", 2, "a line of Markdown starts with '# '"),
    ],
)
def test_unreadable_parts_are_reported_with_their_line(text: str, line: int, told: str, tmp_path: Path) -> None:
    number, message = source_of(text, tmp_path).unreadable[0]
    assert (number, told in message) == (line, True), message


@pytest.mark.parametrize("text", ["", "\n\n", '"""Doc."""\n', "# only words\n", SOURCE, TEXT])
def test_docstrings_comments_and_empty_files_are_accepted(text: str, tmp_path: Path) -> None:
    assert source_of(text, tmp_path).unreadable == ()
