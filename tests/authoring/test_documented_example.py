"""The example in docs/authoring.md is a valid chapter that passes the answer checks and gives the shown report."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmcourse import chapters, course
from lmcourse.authoring.document import document, dumps
from lmcourse.authoring.problems import find_problems
from lmcourse.authoring.release import release
from lmcourse.authoring.source import OPTIONS, read_source
from lmcourse.course import Chapter
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.registry import all_exercises, exercises_of
from lmcourse.proof.answers import answer_cells
from lmcourse.proof.prove import prove
from tests.authoring.tiny import write_source

pytestmark = pytest.mark.prove

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "authoring.md").read_text(encoding="utf-8")
(LINE,) = re.findall(r"^```console\n(.*?)^```", TEXT, re.M | re.S)
EXERCISES, FIGURES, SOURCE, *_ = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
(REPORT,) = re.findall(r"^```text\n(.*?)\n```", TEXT, re.M | re.S)


EXAMPLE: Chapter = eval(LINE.strip().removesuffix(","), vars(course).copy())
ROOM = f"lmcourse.chapters.{EXAMPLE.topic}"


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the example to the course as a chapter: its package, and its line in the map."""
    folder = tmp_path / "chapters" / EXAMPLE.topic
    folder.mkdir(parents=True)
    for name, text in (("__init__", ""), ("exercises", EXERCISES), ("figures", FIGURES)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(chapters, "__path__", [*chapters.__path__, str(folder.parent)])
    monkeypatch.setattr(course, "CHAPTERS", (*course.CHAPTERS, EXAMPLE))
    all_exercises.cache_clear()
    yield
    for name in [name for name in sys.modules if name == ROOM or name.startswith(f"{ROOM}.")]:
        del sys.modules[name]
    vars(chapters).pop(EXAMPLE.topic, None)
    all_exercises.cache_clear()


def test_documented_example_is_a_module_of_its_package() -> None:
    assert EXAMPLE.module == f"{ROOM}.exercises"


def test_documented_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(SOURCE, names)
    assert "so 4 choices" in capsys.readouterr().out
    assert names["perplexity"]([0.5, 0.125]) == pytest.approx(4.0)  # type: ignore[operator]


def test_documented_example_has_no_problem_and_is_released(tmp_path: Path) -> None:
    source = read_source(write_source(tmp_path, SOURCE, EXAMPLE))
    assert find_problems(source, EXAMPLE) == []
    assert "raise NotImplementedError" in dumps(release(document(source, EXAMPLE), EXAMPLE))


def test_documented_example_passes_the_matrix(tmp_path: Path) -> None:
    write_source(tmp_path, SOURCE, EXAMPLE)
    proof = prove(answer_cells([EXAMPLE], tmp_path))
    assert proof.proved, proof.to_json()
    assert proof.mutants
    for exercise in exercises_of(EXAMPLE):
        assert len(exercise.misconceptions) >= 3
        assert len(exercise.variants) >= 3


def test_documented_report_matches_the_real_one() -> None:
    exercise, *_ = exercises_of(EXAMPLE)
    wrong = next(wrong for wrong in exercise.misconceptions if wrong.name.startswith("averaged"))
    assert str(check_exercise(exercise, wrong.answer, enforce=False)) == REPORT


def test_the_document_names_every_option_of_a_cell() -> None:
    assert [option for option in OPTIONS if f"{option}=" not in TEXT] == []
