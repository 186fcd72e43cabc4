"""Look up exercises by chapter, by folder or by name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.base.text import one_line
from lmcourse.course import chapters as course
from lmcourse.course.chapters import Chapter, FolderChapter
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.released import read_released

BESIDE = "exercises.py"
"""The file next to a teacher's source that defines `EXERCISES`."""

MAX_ERROR_CHARS = 200


_started: list[Chapter] = []


def look_first_in(chapter: Chapter) -> None:
    """Make every search begin with a chapter. Importing all chapters takes seconds, importing one a twentieth."""
    _started[:] = [chapter]


def chapters() -> Iterator[Chapter]:
    """Yield the chapters of the course, the one of `look_first_in` first."""
    yield from _started
    yield from (chapter for chapter in course.CHAPTERS if chapter not in _started)


def exercises_of(chapter: Chapter) -> tuple[Exercise, ...]:
    """Return the exercises of a chapter, in the order of its notebook."""
    if isinstance(chapter, FolderChapter):
        return exercises_beside(chapter.source)
    exercises: tuple[Exercise, ...] = importlib.import_module(chapter.module).EXERCISES
    return exercises


def exercises_beside(source: Path) -> tuple[Exercise, ...]:
    """Return the exercises of an assignment, given its solution notebook, its source or its folder.

    They are defined in the folder's `exercises.py`. If that file does not exist, they are the exercises of the course's
    chapter with the folder's name, if there is one. Raises CourseError if the file cannot be loaded.
    """
    folder = source.resolve() if source.is_dir() else source.resolve().parent
    file = folder / BESIDE
    try:
        state = file.stat()
    except OSError:
        return next((exercises_of(chapter) for chapter in course.CHAPTERS if chapter.id == folder.name), ())
    return _load(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _load(file: Path, *state: int) -> tuple[Exercise, ...]:
    """Run a teacher's `exercises.py` as a separate module; `state` changes when the file changes."""
    linecache.checkcache(str(file))
    name = f"lmcourse_exercises_{hashlib.sha256(f'{file}{state}'.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses, for example, look up the module that defines them
    try:
        # do not write a .pyc next to a teacher's files
        code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        said = one_line(f"{type(error).__name__}: {error}", MAX_ERROR_CHARS)
        raise CourseError(f"{file}:{_line_of(error, file)}: {said}") from error
    exercises = getattr(module, "EXERCISES", None)
    if not isinstance(exercises, tuple | list) or not all(isinstance(one, Exercise) for one in exercises):
        raise CourseError(f"{file}:1: it defines no EXERCISES = (...), a tuple of exercises")
    names = [exercise.name for exercise in exercises]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise CourseError(f"{file}:1: two exercises are called {twice!r}")
    return tuple(exercises)


def _line_of(error: BaseException, file: Path) -> int:
    """Return the number of the last line of a file in an error's traceback; for a syntax error, the error's line."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 1
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(file)]
    return lines[-1] if lines else 1


@cache
def all_exercises() -> dict[str, Exercise]:
    """Return all exercises of the course, by name; raise CourseError if two have the same name."""
    found: dict[str, Exercise] = {}
    for chapter in course.CHAPTERS:
        for exercise in exercises_of(chapter):
            if exercise.name in found:
                raise CourseError(f"Two exercises are called {exercise.name!r}; each name must be unique.")
            found[exercise.name] = exercise
    return found


def notebook_of(exercise: Exercise) -> tuple[Exercise, ...]:
    """Return all exercises of the notebook that contains an exercise."""
    here = tuple(exercises_here().values())
    notebooks = chain([here], map(exercises_of, chapters()))
    return next((found for found in notebooks if exercise in found), ())


def exercises_here() -> Mapping[str, Exercise]:
    """Return the exercises of a teacher's own notebook, by name, if the working folder belongs to such a notebook.

    A learner's notebook carries them, a teacher's folder has `exercises.py`; raises CourseError if they are damaged. If
    several notebooks in the folder carry exercises of one name, the newest file counts.
    """
    try:
        folder = Path.cwd()
    except OSError:  # the file was removed in the meantime
        return {}
    if _is_ours(folder / BESIDE):
        return {exercise.name: exercise for exercise in exercises_beside(folder)}
    notebooks = sorted(filter(Path.is_file, folder.glob("*.ipynb")), key=lambda path: path.stat().st_mtime_ns)
    return {exercise.name: exercise for path in notebooks for exercise in read_released(path)}


def _is_ours(file: Path) -> bool:
    """Return True if a file defines exercises, because an unrelated file with this name must not be run."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return "lmcourse.exercises" in text and "EXERCISES" in text


def find_exercise(name: str) -> Exercise:
    """Return the exercise with this name, from the working folder or the course; raise CourseError if none has it."""
    known = exercises_here()
    if name in known:
        return known[name]
    for chapter in chapters():
        for exercise in exercises_of(chapter):
            if exercise.name == name:
                return exercise
    nearest = get_close_matches(name, [*known, *all_exercises()], n=1)
    meant = f" Did you mean `{nearest[0]}`?" if nearest else ""
    raise CourseError(f"There is no exercise called `{name}`.{meant}")
