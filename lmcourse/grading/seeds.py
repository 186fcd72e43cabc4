"""Which seed each submission of an assignment is judged with, however earlier runs ended.

A class is asked the same hidden cases. Only what is handed in again is judged with another seed: its author may know
the cases of the first time.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmcourse.grading.cells import METADATA_KEY
from lmcourse.grading.environment import SEED, fresh_seed
from lmcourse.grading.intake.submissions import Submission


@dataclass(frozen=True)
class Judged:
    """What a graded notebook says of itself: the seed, and the digest of the file that was handed in."""

    seed: int
    digest: str


@dataclass(frozen=True)
class ForcedRun:
    """A run that grades again what is recorded, and is not finished.

    Attributes:
        seed: of all in the end.
        pending: the students that it has not come to yet, and where their work is.
    """

    seed: int
    pending: Mapping[str, str]


def judged_in(autograded: Path, assignment: str, name: str) -> dict[str, Judged]:
    """What is recorded of an assignment, by student; without notebooks that cannot be read.

    Args:
        autograded: the folder of graded notebooks.
        assignment, name: the assignment's id and its notebook's file name.
    """
    found = {path.parent.parent.name: _judged(path) for path in autograded.glob(f"*/{assignment}/{name}")}
    return {student: judged for student, judged in found.items() if judged}


def _judged(path: Path) -> Judged | None:
    try:
        notes: Any = json.loads(path.read_bytes())["metadata"][METADATA_KEY]
        return Judged(int(notes["seed"]), str(notes["submission_digest"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


class Seeds:
    """The seeds of one assignment.

    Args:
        file: where a forced run is noted until it is finished.
        judged: what is recorded, by student.
        force: whether to grade again what is recorded.
        submissions: those of this run.
    """

    def __init__(
        self, file: Path, judged: Mapping[str, Judged], submissions: Sequence[Submission], *, force: bool
    ) -> None:
        self._file, self._judged, self._force = file, judged, force
        self._students = {each.student for each in submissions}
        self._forced = _read(file)
        if force and self._forced is None and judged.keys() <= self._students:
            places = {each.student: str(each.notebook) for each in submissions if each.notebook}
            self._forced = ForcedRun(fresh_seed(), {name: place for name, place in places.items() if name in judged})
            _write(file, self._forced)
        common = Counter(one.seed for one in judged.values()).most_common(1)
        self._common = common[0][0] if common and SEED not in os.environ else fresh_seed()
        self._again = fresh_seed()

    def is_recorded(self, submission: Submission) -> bool:
        """Whether just this submission is recorded, and need not be judged."""
        seed = self._seed_of_just_this(submission)
        return seed is not None and (seed == self._forced.seed if self._forced else not self._force)

    def seed_for(self, submission: Submission) -> int:
        """The seed to judge a submission with."""
        before, seed = self._judged.get(submission.student), self._seed_of_just_this(submission)
        if self._forced:
            is_new = before is not None and seed is None and before.seed == self._forced.seed
            return self._again if is_new else self._forced.seed
        if seed is not None:  # some are graded again, with what the others were asked
            return seed if SEED not in os.environ else fresh_seed()
        return self._again if before else self._common

    def finish(self) -> None:
        """Note that all submissions of this run are judged. A forced run is finished when nobody is left."""
        if self._forced:
            left = {name: place for name, place in self._forced.pending.items() if name not in self._students}
            left = {name: place for name, place in left.items() if Path(place).exists()}
            if left:
                _write(self._file, ForcedRun(self._forced.seed, left))
            else:
                self._file.unlink()

    def _seed_of_just_this(self, submission: Submission) -> int | None:
        judged = self._judged.get(submission.student)
        return judged.seed if judged and submission.digest and judged.digest == submission.digest else None


def _read(file: Path) -> ForcedRun | None:
    try:
        data = json.loads(file.read_bytes())
        return ForcedRun(int(data["seed"]), dict(data["pending"]))
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return None


def _write(file: Path, run: ForcedRun) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"seed": run.seed, "pending": dict(run.pending)}))
    new.replace(file)
