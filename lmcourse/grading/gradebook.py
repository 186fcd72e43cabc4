"""Use nbgrader with the course's configuration: open the gradebook, run converters, foresee changes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import nbformat
from traitlets.config import Config

from lmcourse.base.errors import CourseError
from lmcourse.grading.assignment_changes import changes, points_in_cells, points_of
from lmcourse.grading.config import configure
from lmcourse.grading.restore import cells_in_notebook


def nbgrader_configuration(course: Path, db: str | None = None) -> Config:
    """Return the configuration that `nbgrader autograde` would use in a course; `db` is the address of another
    gradebook."""
    from nbgrader.apps.baseapp import NbGrader

    config = Config()
    configure(config, course)
    with chdir(course):
        app = NbGrader()
        app.initialize([], root=str(course))
    config.merge(app.config)
    config.CourseDirectory.root = str(course)
    if db is not None:
        config.CourseDirectory.db_url = db
    return config


@contextmanager
def open_gradebook(config: Config, *, existing: bool = False) -> Iterator[Any]:
    """Open nbgrader's gradebook; yield None if only an `existing` one is wanted and the file does not exist, because
    opening would create it. Raises CourseError if it cannot be opened."""
    from nbgrader.api import Gradebook
    from nbgrader.coursedir import CourseDirectory

    directory = CourseDirectory(config=config)
    file = directory.db_url.removeprefix("sqlite:///")
    if existing and file != directory.db_url and not Path(file).is_file():
        yield None
        return
    try:
        book = Gradebook(directory.db_url, directory.course_id)
    except Exception as error:  # a database, its driver or its address may raise any exception
        raise CourseError(
            f"The gradebook cannot be opened ({str(error).splitlines()[0]}). Put a good copy in its place, run "
            "`nbgrader db upgrade` if nbgrader is newer than the gradebook, or name another one with --db."
        ) from error
    with book:
        yield book


@contextmanager
def quiet_nbgrader(problem: str) -> Iterator[None]:
    """Drop what nbgrader's converters say; if they fail, raise CourseError with `problem` and their last error."""
    from nbgrader.converters.base import NbGraderException

    log, errors = logging.getLogger("traitlets"), BufferingHandler(1_000)
    errors.setLevel(logging.ERROR)
    before = log.handlers, log.propagate
    log.handlers, log.propagate = [errors], False
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except NbGraderException as error:
        last = [record.getMessage().strip().splitlines()[-1] for record in errors.buffer[-1:]]
        raise CourseError(f"{problem}: {' '.join(last) or error}") from error
    finally:
        log.handlers, log.propagate = before


def coming_changes(course: Path, solutions: Mapping[str, Path]) -> Iterator[str]:
    """Yield a line for each of these assignments whose exercises differ from those that the recorded marks are for."""
    from nbgrader.api import MissingEntry

    unreadable = suppress(Exception)  # a database or its driver may raise any exception, and grading reports it
    with unreadable, open_gradebook(nbgrader_configuration(course), existing=True) as book:
        for name, solution in solutions.items() if book else ():
            with suppress(MissingEntry):
                notebook = book.find_notebook(solution.stem, name)
                built = points_in_cells(cells_in_notebook(nbformat.read(solution, as_version=4)))
                sentences = " ".join(changes(points_of(notebook), built))
                if notebook.submissions and sentences:
                    begin = f"{name} has recorded marks. The next `lmcourse grade … --record` changes the gradebook:"
                    yield f"{begin} {sentences}"
