"""Every notebook has the same parts in the same order."""

from __future__ import annotations

import ast
import importlib
import re
from string import ascii_uppercase

from lmcourse.course.chapters import Chapter
from lmcourse.exercises.prediction import Prediction
from tests.course.chapters import EACH, code, prose, solution, source

ALT = "Figure without a description"


def sections(chapter: Chapter) -> tuple[list[str], list[str]]:
    """Return the headings of the core and of Further, whose sections may have headings of the third level."""
    core, _, further = prose(chapter).partition("\n## Further\n")
    return re.findall(r"^## (.+)$", core, re.M), re.findall(r"^###? (?!Exercise)(.+)$", further, re.M)


def section(chapter: Chapter, title: str) -> str:
    """Return the text from a heading to the next."""
    found = re.search(rf"^###? {title}\n(.*?)(?=^###? |\Z)", prose(chapter), re.M | re.S)
    assert found, f"no section {title}"
    return found[1]


def calls(chapter: Chapter, name: str) -> list[ast.Call]:
    """Return the calls of a function by its plain name."""
    nodes = (node for node in ast.walk(ast.parse(code(chapter))) if isinstance(node, ast.Call))
    return [node for node in nodes if isinstance(node.func, ast.Name) and node.func.id == name]


@EACH
def test_the_first_cell_names_topic_and_reader(chapter: Chapter) -> None:
    first = source(chapter).cells[0]
    assert first.kind == "markdown"
    assert first.text.startswith(f"# {chapter.number} · {chapter.title}\n")
    aims = [r"\*[^*]+\?\*", "^At the end,? "] if sections(chapter)[1] else [r"^\*\*You will be able to\*\*\n\n(- .+\n)"]
    assert all(re.search(aim, first.text, re.M) for aim in aims)
    assert "**You need**" in first.text
    assert prose(chapter).count("\n# ") == 0, "a second title"


@EACH
def test_the_second_cell_starts_the_notebook(chapter: Chapter) -> None:
    second = source(chapter).cells[1]
    assert second.kind == "code"
    assert f'start("{chapter.id}")' in second.text
    assert "from lmcourse.notebook import" in second.text


@EACH
def test_sections_are_numbered_and_the_last_three_are_always_the_same(chapter: Chapter) -> None:
    core, further = sections(chapter)
    *numbered, keep, check = core if further else core[:-1]
    assert [keep, check, [*core, *further][-1]] == ["What to keep", "Check yourself", "Further reading"]
    assert [title.split(" · ")[0] for title in numbered] == [str(number) for number in range(1, len(numbered) + 1)]
    assert len(numbered) >= 3


@EACH
def test_sections_of_further_are_numbered_or_lettered(chapter: Chapter) -> None:
    core, further = sections(chapter)
    marks = [title.split(" · ")[0] for title in further if " · " in title]
    numbers = map(str, range(len(core) - 1, len(core) + len(marks)))
    assert marks in ([*ascii_uppercase[: len(marks)]], [*numbers][: len(marks)])
    assert bool(marks) is bool(further)


@EACH
def test_the_summary_is_a_table_and_the_questions_are_numbered(chapter: Chapter) -> None:
    rows = re.findall(r"^\|.+\|$", section(chapter, "What to keep"), re.M)
    assert len(rows) >= 2 + 4, "a head and at least four lines"
    assert len(re.findall(r"^\d+\. ", section(chapter, "Check yourself"), re.M)) >= 3
    assert len(re.findall(r"^- ", section(chapter, "Further reading"), re.M)) >= 3


@EACH
def test_every_notebook_has_a_slip_and_real_models(chapter: Chapter) -> None:
    assert "**Spot the slip.**" in prose(chapter)
    assert "**In real models.**" in prose(chapter)


@EACH
def test_the_reader_predicts_and_every_prediction_is_asked_once(chapter: Chapter) -> None:
    asked = [ast.literal_eval(call.args[0]) for call in calls(chapter, "predict")]
    known = importlib.import_module(chapter.module).PREDICTIONS
    assert asked
    assert sorted(asked) == sorted(prediction.name for prediction in known)
    options = [option for one in known if isinstance(one, Prediction) for option in one.options]
    assert [option for option in options if re.search(r"[`*]\w", option)] == [], "a button shows no marks"


@EACH
def test_every_notebook_has_a_figure_with_controls(chapter: Chapter) -> None:
    assert calls(chapter, "explore")


@EACH
def test_each_part_ends_with_a_folded_cell_of_asserts(chapter: Chapter) -> None:
    cells = source(chapter).cells
    for last in (cells[source(chapter).core - 1], cells[-1]):
        assert last.options.get("tags") == ["hide-input"]
        assert any(isinstance(statement, ast.Assert) for statement in ast.parse(last.text).body)


@EACH
def test_every_figure_has_alt_text(chapter: Chapter) -> None:
    pictures = [
        output.get("metadata", {}).get(kind, {}).get("alt", "")
        for cell in solution(chapter).cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
        if kind.startswith("image/")
    ]
    assert pictures
    assert [alt for alt in pictures if len(alt) < 20 or alt == ALT] == []


@EACH
def test_every_picture_in_the_text_has_alt_text(chapter: Chapter) -> None:
    shown = [prose(chapter)]
    shown += [
        "".join(o.get("data", {}).get("text/html", "")) for c in solution(chapter).cells for o in c.get("outputs", [])
    ]
    for text in shown:
        assert re.findall(r"!\[\s*\]\(", text) == []
        assert [tag for tag in re.findall(r"<img\b[^>]*>", text) if not re.search(r'\balt="[^"]+"', tag)] == []
