"""Requests to grade an answer again, which learners write into a cell of the next notebook that they hand in.

regrade 08 causal_mask: a mask of one token is right, I think
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from nbformat import NotebookNode

from lmcourse.course import find_chapter
from lmcourse.errors import CourseError
from lmcourse.exercises.registry import exercises_of
from lmcourse.text import one_line

MAX_REQUESTS = 10
"""Requests in one notebook that are listed."""

MAX_REASON_CHARS = 300
"""Characters of a reason that are listed."""

_REQUEST = re.compile(r"[\s#>*`-]*regrade\s+(\d{1,2})[\w-]*[\s,·]+`?(\w{1,64})`?\s*:\s*(\S.*)", re.IGNORECASE)


@dataclass(frozen=True)
class RegradeRequest:
    """A request to grade an answer again.

    Attributes:
        assignment: the id of the notebook that it is about; as the learner wrote it, if there is none.
        exercise: the name of the exercise.
        reason: the learner's words, in one line.
        known: whether there is such an exercise.
    """

    assignment: str
    exercise: str
    reason: str
    known: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def regrade_requests(graded: NotebookNode) -> tuple[RegradeRequest, ...]:
    """The requests in the cells of a notebook that the learner added, each once, up to `MAX_REQUESTS`."""
    return tuple(dict.fromkeys(_requests(graded)))[:MAX_REQUESTS]


def _requests(graded: NotebookNode) -> Iterator[RegradeRequest]:
    for cell in graded.cells:
        if not cell.metadata.get("nbgrader"):
            for line in cell.source.splitlines():
                if found := _REQUEST.fullmatch(line):
                    yield _request(*found.groups())


def _request(number: str, exercise: str, reason: str) -> RegradeRequest:
    said = one_line(reason.strip(), MAX_REASON_CHARS)
    try:
        chapter = find_chapter(number.zfill(2))
    except CourseError:
        return RegradeRequest(number, exercise, said, known=False)
    return RegradeRequest(chapter.id, exercise, said, exercise in {each.name for each in exercises_of(chapter)})
