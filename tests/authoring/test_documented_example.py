"""The example in docs/authoring.md is a valid chapter that passes the answer checks and gives the shown report."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmcourse import chapters
from lmcourse.authoring.document import document, dumps
from lmcourse.authoring.numbering import numbered
from lmcourse.authoring.problems import find_problems
from lmcourse.authoring.release import release
from lmcourse.authoring.source import OPTIONS, read_source
from lmcourse.check_tests.answers import answer_cells
from lmcourse.check_tests.prove import prove
from lmcourse.course import chapters as course
from lmcourse.course.chapters import Chapter
from lmcourse.exercises import registry
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.registry import all_exercises, exercises_of
from tests.authoring.tiny import write_source

pytestmark = pytest.mark.prove

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
(LINE,) = re.findall(r"^```console\n(.*?)^```", TEXT, re.M | re.S)
EXERCISES, FIGURES, SOURCE, *_ = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
(REPORT,) = re.findall(r"^```text\n(.*?)\n```", TEXT, re.M | re.S)


EXAMPLE: Chapter = eval(LINE.strip().removesuffix(","), vars(course).copy())
ROOM = EXAMPLE.module.removesuffix(".exercises")


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the example to the course as a chapter: its package, and its line in the map."""
    folder = tmp_path / "chapters" / EXAMPLE.topic
    folder.mkdir(parents=True)
    for name, text in (("__init__", ""), ("exercises", EXERCISES), ("figures", FIGURES)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(chapters, "__path__", [*chapters.__path__, str(folder.parent)])
    monkeypatch.setattr(course, "CHAPTERS", (*course.CHAPTERS, EXAMPLE))
    monkeypatch.setattr(registry, "_started", [])  # `start` in the example's notebook makes it the first to be searched
    all_exercises.cache_clear()
    yield
    for name in [name for name in sys.modules if name == ROOM or name.startswith(f"{ROOM}.")]:
        del sys.modules[name]
    vars(chapters).pop(EXAMPLE.topic, None)
    all_exercises.cache_clear()


def test_documented_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(SOURCE, names)
    assert "so 4 choices" in capsys.readouterr().out
    assert names["perplexity"]([0.5, 0.125]) == pytest.approx(4.0)  # type: ignore[operator]


def test_documented_example_passes_ruff_and_strict_mypy(tmp_path: Path) -> None:
    """Run what `make lint` runs, in a clone that has the example in place of the other chapters."""
    clone = tmp_path / "clone"
    skipped = shutil.ignore_patterns("__pycache__", "chapters", "*.safetensors")
    shutil.copytree(ROOT / "lmcourse", clone / "lmcourse", ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", clone)
    shutil.copytree(tmp_path / "chapters", clone / "lmcourse" / "chapters")
    for place in (clone / "lmcourse" / "chapters", clone / "lmcourse" / "chapters" / EXAMPLE.topic):
        (place / "__init__.py").write_text('"""What this is about."""\n')
    write_source(clone, SOURCE, EXAMPLE)
    places = ["lmcourse/chapters", "solutions"]
    mypy = ["mypy", "--follow-imports", "silent", places[0]]
    for words in (["ruff", "check", *places], ["ruff", "format", "--check", *places], mypy):
        run = subprocess.run([sys.executable, "-m", *words], cwd=clone, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr


def test_documented_example_has_no_problem_and_is_released(tmp_path: Path) -> None:
    source = read_source(write_source(tmp_path, SOURCE, EXAMPLE))
    assert find_problems(source, EXAMPLE) == []
    assert numbered(source, EXAMPLE) == source
    assert "raise NotImplementedError" in dumps(release(document(source, EXAMPLE), EXAMPLE))


def test_documented_example_passes_the_matrix(tmp_path: Path) -> None:
    write_source(tmp_path, SOURCE, EXAMPLE)
    proof = prove(answer_cells([EXAMPLE], tmp_path))
    assert proof.proved, proof.to_json()
    assert proof.mutants


def test_documented_report_matches_the_real_one() -> None:
    exercise, *_ = exercises_of(EXAMPLE)
    wrong = next(wrong for wrong in exercise.misconceptions if "1 / p" in wrong.name)
    assert str(check_exercise(exercise, wrong.answer, enforce=False)) == REPORT


def test_the_document_names_every_option_of_a_cell() -> None:
    assert [option for option in OPTIONS if f"{option}=" not in TEXT] == []
