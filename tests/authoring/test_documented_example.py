"""The example in docs/authoring.md is a notebook: without mistakes, proved, and with the report that it shows."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmcourse.authoring import answers
from lmcourse.authoring.document import document, dumps
from lmcourse.authoring.problems import find_problems
from lmcourse.authoring.release import release
from lmcourse.authoring.source import OPTIONS, read_source
from lmcourse.course import Chapter
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.matrix import prove
from lmcourse.exercises.registry import exercises_of
from tests.authoring.tiny import write_source

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "authoring.md").read_text(encoding="utf-8")
MODULE, SOURCE, *_ = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
(REPORT,) = re.findall(r"^```text\n(.*?)\n```", TEXT, re.M | re.S)


class Example(Chapter):
    """The chapter of the example."""

    module = "perplexity_of_the_docs"


EXAMPLE = Example("21-perplexity", "Perplexity", 20, "Docs")


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The exercises of the example, where they can be imported."""
    (tmp_path / f"{Example.module}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    sys.modules.pop(Example.module, None)
    exercises_of.cache_clear()


def test_it_has_no_mistake_and_is_released(tmp_path: Path) -> None:
    source = read_source(write_source(tmp_path, SOURCE, EXAMPLE))
    assert find_problems(source, EXAMPLE) == []
    assert "raise NotImplementedError" in dumps(release(document(source, EXAMPLE), EXAMPLE))


def test_it_is_proved(tmp_path: Path) -> None:
    write_source(tmp_path, SOURCE, EXAMPLE)
    proof = prove([EXAMPLE], *answers([EXAMPLE], tmp_path))
    assert proof.proved, proof.to_json()
    assert all(len(exercise.misconceptions) >= 3 for exercise in exercises_of(EXAMPLE))


def test_the_report_is_the_one_it_shows() -> None:
    exercise, *_ = exercises_of(EXAMPLE)
    wrong = next(wrong for wrong in exercise.misconceptions if wrong.name.startswith("averaged"))
    assert str(check_exercise(exercise, wrong.answer, enforce=False)) == REPORT


def test_the_document_names_every_option_of_a_cell() -> None:
    assert [option for option in OPTIONS if f"{option}=" not in TEXT] == []
