"""Measure how fast a class is graded, and check that the sandbox does not change marks.

    python benchmarks/grading.py                        # 40 submissions of notebook 08; at least 15 minutes
    python benchmarks/grading.py --submissions 10 --notebook 01
    python benchmarks/grading.py --ours-only            # without unmodified nbgrader, which takes most of the time
    python benchmarks/grading.py --plain-submissions 5  # let it grade only 5 submissions

The same honest submissions are graded three times on this machine, one after the other:

- "nbgrader": unmodified `nbgrader autograde`. Each submission is a kernel with all rights of the user, and it contains
  the hidden checks.
- "nbgrader, locked in": the same command with the course's `nbgrader_config.py`: each submission runs in a sandbox and
  is judged from outside.
- "lmcourse grade": `lmcourse grade submitted --record`, which also works on several submissions at once.

Each method fills a separate gradebook, and the three gradebooks are compared by exercise. If an answer calls an earlier
answer that is missing or wrong, the course replaces it by its own version, and nbgrader does not; so the course may
give more points. Times are wall-clock and CPU time per submission; CPU time depends little on other programs. Creating
the assignment is not timed, but starting the program is. Memory is the sum over all processes, and shared memory counts
for each. Prints a table, every difference and, as the last line, one JSON object. The exit status is 1 if a mark
differs or is missing. Needs bubblewrap.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from honest_class import hand_in
from watched import Watched, watch

from lmcourse.course import Chapter, find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.report import CHECK_PREFIX

REPOSITORY = Path(__file__).resolve().parents[1]
NBGRADER = [sys.executable, "-m", "nbgrader"]

PLAIN = """
c = get_config()
c.CourseDirectory.course_id = "plain"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
"""

LINE = "{:22} {:>4} {:>8} {:>11} {:>12} {:>12} {:>12} {:>6} {:>12}"

Marks = dict[str, dict[str, float | None]]
"""Points by student and exercise; None if there are no points."""


@dataclass(frozen=True)
class GradingMethod:
    """A way to grade a class.

    Attributes:
        name: the name in the table.
        config: the text of its `nbgrader_config.py`.
        command: the timed command; ASSIGNMENT stands for the assignment.
    """

    name: str
    config: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Graded:
    """The result of grading with one method."""

    who: str
    watched: Watched
    marks: Marks


def grading_methods() -> list[GradingMethod]:
    """Return the methods. The first is the baseline for the others."""
    ours = (REPOSITORY / "nbgrader_config.py").read_text(encoding="utf-8")
    autograde = (*NBGRADER, "autograde", "ASSIGNMENT")
    record = (sys.executable, "-m", "lmcourse", "grade", "submitted", "--record", "--json")
    return [
        GradingMethod("nbgrader", PLAIN, autograde),
        GradingMethod("nbgrader, locked in", ours, autograde),
        GradingMethod("lmcourse grade", ours, record),
    ]


def grade_class(
    method: GradingMethod, chapter: Chapter, folder: Path, submitted: Path, students: Sequence[str]
) -> Graded:
    """Grade these students of a class in a new course folder."""
    folder.mkdir()
    (folder / "nbgrader_config.py").write_text(method.config, encoding="utf-8")
    shutil.copytree(REPOSITORY / "solutions" / chapter.id, folder / "solutions" / chapter.id)
    for student in students:
        shutil.copytree(submitted / student, folder / "submitted" / student)
    environment = environment_of_commands()
    subprocess.run(
        [*NBGRADER, "generate_assignment", chapter.id], cwd=folder, env=environment, check=True, capture_output=True
    )
    command = [chapter.id if word == "ASSIGNMENT" else word for word in method.command]
    log = folder / "log.txt"
    watched = watch(command, folder, environment, log)
    if watched.status:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:]
        print(f"{method.name} ended with status {watched.status}:", *last, sep="\n    ", file=sys.stderr)
    return Graded(method.name, watched, marks_in(folder / "gradebook.db", chapter))


def environment_of_commands() -> dict[str, str]:
    """Return an environment in which programs of this Python and this checkout are found from any folder."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PATH": programs, "PYTHONPATH": str(REPOSITORY)}


def marks_in(gradebook: Path, chapter: Chapter) -> Marks:
    """Return the marks in nbgrader's gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{gradebook}") as book:
        return {
            submission.student.id: {
                grade.name.removeprefix(CHECK_PREFIX): None if grade.auto_score is None else grade.score
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in book.assignment_submissions(chapter.id)
        }


def differences(graded: Graded, first: Graded, students: Sequence[str], uses_others: Collection[str]) -> list[str]:
    """Return one line for every mark that is missing or differs from the first method's mark.

    Args:
        uses_others: exercises that call other answers, for which the course may give more points.
    """
    found = []
    for student in students:
        mine, theirs = graded.marks.get(student, {}), first.marks.get(student, {})
        found += [
            f"{student}, {exercise}: {mine.get(exercise)} from {graded.who}, {theirs.get(exercise)} from {first.who}"
            for exercise in sorted(mine.keys() | theirs.keys())
            if mine
            and mine.get(exercise) != theirs.get(exercise)
            and not (exercise in uses_others and (mine.get(exercise) or 0) > (theirs.get(exercise) or 0))
        ]
    return found


def row(graded: Graded, first: Graded, others: int) -> dict[str, Any]:
    """Return the method's row for the table and the JSON."""
    mine, theirs = len(graded.marks), len(first.marks)
    return {
        "who": graded.who,
        "submissions": mine,
        "seconds": round(graded.watched.seconds, 1),
        "per_minute": round(60 * mine / graded.watched.seconds, 1),
        "relative_to_first": round(first.watched.seconds / theirs * mine / graded.watched.seconds, 2),
        "cpu_seconds": round(graded.watched.cpu_seconds, 1),
        "cpu_relative_to_first": round(first.watched.cpu_seconds / theirs * mine / graded.watched.cpu_seconds, 2),
        "peak_mib": round(graded.watched.peak / 2**20),
        "other_marks": others,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument(
        "--plain-submissions", type=int, help="so many of them for nbgrader as it comes; all by default"
    )
    parser.add_argument("--notebook", default="08")
    parser.add_argument("--seed", type=int, default=1806, help="of the class")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--plain-only", action="store_true", help="nbgrader as it comes, nothing else")
    only.add_argument("--ours-only", action="store_true", help="the two that lock submissions in")
    arguments = parser.parse_args()
    chapter, seed, count = find_chapter(arguments.notebook), arguments.seed, arguments.submissions
    plain, *ours = grading_methods()
    chosen = [plain] if arguments.plain_only else ours if arguments.ours_only else [plain, *ours]

    rows, found_differences, first = [], [], None
    uses_others = {exercise.name for exercise in exercises_of(chapter) if exercise.uses}
    heads = ("who", "of", "seconds", "per minute", "× the first", "CPU seconds", "× the first", "MiB", "other marks")
    print(LINE.format(*heads))
    with tempfile.TemporaryDirectory(prefix="lmcourse-benchmark-") as folder:
        submitted = Path(folder) / "submitted"
        hand_in(chapter, REPOSITORY, submitted, count, seed)
        students = sorted(path.name for path in submitted.iterdir())
        for number, method in enumerate(chosen):
            some = students[: arguments.plain_submissions] if method is plain else students
            graded = grade_class(method, chapter, Path(folder) / str(number), submitted, some)
            first = first or graded
            others = differences(graded, first, [one for one in students if one in first.marks], uses_others)
            others += [f"{one}: no marks from {graded.who}" for one in some if one not in graded.marks]
            found_differences += others
            rows.append(row(graded, first, len(others)))
            print(LINE.format(*map(str, rows[-1].values())), flush=True)
    print("\n".join(found_differences) or f"No mark of {count} submissions differs or is missing.")
    print(json.dumps({"notebook": chapter.id, "submissions": count, "seed": seed, "results": rows}))
    return 1 if found_differences else 0


if __name__ == "__main__":
    sys.exit(main())
