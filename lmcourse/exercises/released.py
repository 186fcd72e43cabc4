"""The exercises of a teacher's own notebook in the form for learners: data in the notebook's metadata, no references.

`check` compares with outcomes that were recorded when the notebook was built: for each public case, the outcome of the
reference and of each known mistake. Of hidden cases the data have only the names. Reading them does not run code, but
a check runs the scripts of the cases.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from safetensors.torch import load, save
from torch import Tensor

from lmcourse.base.errors import CourseError
from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Answer, Exercise, Misconception
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.exercises.outcomes import outcomes_of
from lmcourse.exercises.plain_json import from_json_tree, to_json_tree
from lmcourse.exercises.values import NotPlainError, copy_input

CARRIED = "exercises"
"""The key of the exercises in the part of a notebook's metadata that is the course's."""

FORMAT = 2
_MARK = '"expected":'  # in every notebook that carries exercises; other files need not be parsed


@dataclass(eq=False, kw_only=True)
class ReleasedExercise(Exercise):
    """An exercise without code, but with the outcomes of the reference, and of each known mistake."""

    expected: Sequence[Outcome]
    given: Sequence[Sequence[Outcome]]

    @property
    def public(self) -> tuple[Case, ...]:
        """The public cases; the file already includes derived cases."""
        return tuple(self.cases)

    def recorded(self) -> Mapping[tuple[Answer | Misconception, Case], Outcome]:
        """Return the outcomes of the reference and of each known mistake in each public case."""
        answers: list[tuple[Answer | Misconception, Sequence[Outcome]]] = [(self.reference, self.expected)]
        answers += zip(self.misconceptions, self.given, strict=True)
        return {
            (answer, case): outcome
            for answer, outcomes in answers
            for case, outcome in zip(self.cases, outcomes, strict=True)
        }


def released(exercises: Sequence[Exercise], digest: str) -> dict[str, Any]:
    """Return exercises as data for a notebook's metadata; `digest` tells the build later whether they are up to date.

    Raises CourseError if an exercise cannot be written as data.
    """
    tensors: dict[str, Tensor] = {}
    written = [_written(one, tensors) for one in exercises]
    data: dict[str, Any] = {"format": FORMAT, "digest": digest, "exercises": written}
    data["tensors"] = base64.b64encode(save(tensors)).decode()
    return data


def _written(exercise: Exercise, tensors: dict[str, Tensor]) -> dict[str, Any]:
    if exercise.view is not None:
        raise CourseError(f"`{exercise.name}` has a `view`, which is code: a notebook cannot carry it")
    if exercise.task is not None:
        raise CourseError(f"`{exercise.name}` is an open task, which code measures: a notebook cannot carry it")
    parts = ("name", "points", "minutes", "difficulty", "value", "may_use_package", "seconds", "new")
    tolerance = exercise.tolerance

    table = outcomes_of(exercise)

    try:
        return {
            **{part: getattr(exercise, part) for part in parts},
            **{part: list(getattr(exercise, part)) for part in ("forbid", "uses", "hints", "given_methods")},
            "tolerance": tolerance and [float(tolerance.relative), float(tolerance.absolute)],
            "cases": [_case_to_json(case, tensors) for case in exercise.public],
            "expected": [_outcome_to_json(table.expected(case), tensors) for case in exercise.public],
            "hidden": [case.name for case in exercise.hidden],
            "mistakes": [
                {
                    "sentence": wrong.sentence,
                    "outcomes": [_outcome_to_json(table.of_mistake(wrong, case), tensors) for case in exercise.public],
                }
                for wrong in exercise.misconceptions
            ],
        }
    except (ValueError, NotPlainError) as error:
        raise CourseError(f"`{exercise.name}`: {error}: a notebook cannot carry it") from error


def read_released(notebook: Path) -> tuple[ReleasedExercise, ...]:
    """Return the exercises that a notebook file carries, none if it has none or cannot be opened; raise CourseError if
    they are damaged."""
    try:
        state = notebook.stat()
        return _read(notebook, state.st_mtime_ns, state.st_size)
    except OSError:  # another program's file, or one that was just removed
        return ()
    except Exception as error:  # for any content, the learner needs only one message
        raise CourseError(
            f"The exercises in {notebook.name} are damaged ({type(error).__name__}): get the assignment again."
        ) from error


@lru_cache(maxsize=256)
def _read(notebook: Path, *state: int) -> tuple[ReleasedExercise, ...]:
    text = notebook.read_text(encoding="utf-8", errors="surrogateescape")
    data = json.loads(text)["metadata"].get("lmcourse", {}).get(CARRIED) if _MARK in text else None
    if data is None:
        return ()
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r}")
    tensors = load(base64.b64decode(data["tensors"], validate=True))
    return tuple(_exercise(one, tensors) for one in data["exercises"])


def _exercise(data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ReleasedExercise:
    cases = [_case_from_json(case, tensors) for case in data["cases"]]
    hidden = [Case(name) for name in data["hidden"]]
    outcomes = [
        [_outcome_from_json(outcome, tensors) for outcome in of_one]
        for of_one in (data["expected"], *(wrong["outcomes"] for wrong in data["mistakes"]))
    ]
    if any(len(of_one) != len(cases) for of_one in outcomes):
        raise ValueError("the outcomes do not match the cases")
    as_written = ("name", "points", "minutes", "difficulty", "value", "may_use_package", "forbid", "uses", "hints")
    exercise = ReleasedExercise(
        **{part: data[part] for part in as_written},
        reference=_not_here,
        cases=cases,
        hidden_cases=(lambda random: hidden) if hidden else None,
        tolerance=data["tolerance"] and Tolerance(*data["tolerance"]),
        seconds=float(data["seconds"]),
        new=data["new"],
        given_methods=data.get("given_methods", ()),
        expected=outcomes[0],
        given=outcomes[1:],
    )
    exercise.misconceptions += [
        Misconception(str(place), wrong["sentence"], lambda: _not_here) for place, wrong in enumerate(data["mistakes"])
    ]
    return exercise


def _not_here(*inputs: object, **named: object) -> NoReturn:
    raise CourseError("Reference answers are not part of a released assignment; only the teacher has them.")


def _case_to_json(case: Case, tensors: dict[str, Tensor]) -> dict[str, Any]:
    inputs = to_json_tree([copy_input(case.args), copy_input(case.kwargs)], tensors)
    run = {"edge": case.edge, "of": case.of, "layout": case.layout, "gradients": list(case.gradients)}
    return {"name": case.name, "inputs": inputs, "script": case.script, **run}


def _case_from_json(data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Case:
    args, kwargs = from_json_tree(data["inputs"], tensors)
    run = data["edge"], data["of"], data["layout"], tuple(data["gradients"])
    return Case(data["name"], tuple(args), kwargs, data["script"], *run)


def _outcome_to_json(outcome: Outcome, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Return the parts of an outcome that a check compares, as JSON data."""
    failure = outcome.failure and {"kinds": list(outcome.failure.kinds), "message": outcome.failure.message}
    return {"value": to_json_tree(outcome.value, tensors), "failure": failure, "changed": list(outcome.changed)}


def _outcome_from_json(data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Outcome:
    failure = data["failure"]
    raised = failure and Failure(tuple(failure["kinds"]), failure["message"])
    return Outcome(from_json_tree(data["value"], tensors), raised, changed=tuple(data["changed"]))
