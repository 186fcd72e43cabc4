"""Whether a gradebook can be opened with this nbgrader, and how often it is made ready for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from lmcourse.errors import CourseError
from lmcourse.grading.storage import storage_problem

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

BACKUP = "Back it up first."


def check_gradebook(url: str) -> None:
    """Look at a gradebook before anything is written into it. One that is not there yet, or empty, will be made.

    Raises:
        CourseError: it cannot be opened, or is of another version of nbgrader.
    """
    from sqlalchemy import create_engine, inspect, text

    try:
        engine = create_engine(url)
        try:
            with engine.connect() as connection:
                if "alembic_version" not in inspect(connection).get_table_names():
                    return
                version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        finally:
            engine.dispose()
    except Exception as error:  # whatever a database, its driver or its address leads to
        raise cannot_be_opened(error) from error
    if version == gradebook_version():
        return
    if version in {script.revision for script in _scripts().walk_revisions()}:
        raise CourseError(f"The gradebook is of an older nbgrader: run `nbgrader db upgrade`. {BACKUP}")
    raise CourseError(f"The gradebook is of a newer nbgrader (version {version!r}): install that one. {BACKUP}")


def gradebook_version() -> str:
    """The version of this nbgrader's gradebooks. nbgrader itself starts a program to ask, which takes two seconds."""
    return str(_scripts().get_current_head())


@contextmanager
def keeping_engines() -> Iterator[None]:
    """Have nbgrader keep what SQLAlchemy has compiled for a gradebook while the block lasts.

    It opens the gradebook a dozen times for each submission. Each time it makes an engine for it, with which all
    compiled statements go, asks for each table whether it is there, and looks for the course. What it closes is closed
    as ever: an engine without connections opens new ones.
    """
    from nbgrader import api
    from sqlalchemy.orm import scoped_session, sessionmaker

    new_engine, open_first = api.create_engine, api.Gradebook.__init__
    ready: set[tuple[str, str]] = set()

    def open_again(book: Any, db_url: str, course_id: str = "default_course", authenticator: Any = None) -> None:
        if (db_url, course_id) not in ready:
            open_first(book, db_url, course_id, authenticator)
            ready.add((db_url, course_id))
            return
        book.engine = api.create_engine(db_url, echo=False, future=True)
        book.db = scoped_session(sessionmaker(autoflush=True, bind=book.engine, future=True))
        book.course_id, book.authenticator = course_id, authenticator

    api.create_engine, api.Gradebook.__init__ = cache(new_engine), open_again
    try:
        yield
    finally:
        api.create_engine, api.Gradebook.__init__ = new_engine, open_first


def cannot_be_opened(error: Exception) -> CourseError:
    """What to say of a gradebook, unless it is the disk that fails."""
    why = str(error).partition("\n")[0]
    return CourseError(
        storage_problem(error, "the gradebook")
        or f"The gradebook cannot be opened ({why}): put a good copy in its place, or name another with --db."
    )


def _scripts() -> ScriptDirectory:
    """nbgrader's steps from one version of its gradebooks to the next."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    return ScriptDirectory(ALEMBIC_DIR)
