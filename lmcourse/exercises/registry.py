"""Look up exercises by chapter or by name."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from functools import cache

from lmcourse.course import Chapter, available_chapters
from lmcourse.errors import CourseError
from lmcourse.exercises.exercise import Exercise


@cache
def exercises_of(chapter: Chapter) -> tuple[Exercise, ...]:
    """The exercises of a chapter, in the order of its notebook; none while it is only planned."""
    if not chapter.available:
        return ()
    exercises: tuple[Exercise, ...] = importlib.import_module(chapter.module).EXERCISES
    return exercises


@cache
def all_exercises() -> dict[str, Exercise]:
    """Every exercise of the course by name.

    Raises:
        CourseError: two exercises have one name.
    """
    found: dict[str, Exercise] = {}
    for chapter in available_chapters():
        for exercise in exercises_of(chapter):
            if exercise.name in found:
                raise CourseError(f"Two exercises are called {exercise.name!r}; names are the course's ids.")
            found[exercise.name] = exercise
    return found


def find_exercise(name: str) -> Exercise:
    """The exercise with this name.

    Raises:
        CourseError: there is none; the message names the nearest.
    """
    known = all_exercises()
    if name in known:
        return known[name]
    nearest = get_close_matches(name, known, n=1)
    meant = f" Did you mean `{nearest[0]}`?" if nearest else ""
    raise CourseError(f"There is no exercise called `{name}`.{meant}")
