"""How fast a class is graded, and that locking it in changes no mark.

    python benchmarks/grading.py                        # 40 submissions of notebook 08, some minutes
    python benchmarks/grading.py --submissions 10 --notebook 01
    python benchmarks/grading.py --ours-only

The same honest submissions are graded three times on this machine, one after the other, with the same seed:

- "nbgrader": `nbgrader autograde` as it comes, with nothing of the course plugged in. Each submission is a kernel that
  can do what you can, and the hidden checks are in it.
- "nbgrader, locked in": the same command with the course's `nbgrader_config.py`: each submission in a jail, judged from
  outside of it.
- "lmcourse grade": `lmcourse grade submitted --record`, which also works on several submissions at once.

Each fills a gradebook of its own, and the three are compared, exercise by exercise. Making the assignment is not timed;
starting the program is. Prints a table, every difference, and as the last line one JSON object. Exit status 1 if a mark
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from honest_class import hand_in
from watched import Watched, watch

from lmcourse.course import Chapter, find_chapter

REPOSITORY = Path(__file__).resolve().parents[1]
NBGRADER = [sys.executable, "-m", "nbgrader"]

PLAIN = """
c = get_config()
c.CourseDirectory.course_id = "plain"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
"""

Marks = dict[str, dict[str, float | None]]
"""Points by student and exercise; None where there are none."""


@dataclass(frozen=True)
class Contestant:
    """A way to grade a class.

    Attributes:
        name: for the table.
        config: the text of its `nbgrader_config.py`.
        command: what is timed; ASSIGNMENT stands for the assignment.
    """

    name: str
    config: str
    command: tuple[str, ...]


def contestants() -> list[Contestant]:
    """The first is what the others are compared with."""
    ours = (REPOSITORY / "nbgrader_config.py").read_text(encoding="utf-8")
    autograde = (*NBGRADER, "autograde", "ASSIGNMENT")
    record = (sys.executable, "-m", "lmcourse", "grade", "submitted", "--record", "--json")
    return [
        Contestant("nbgrader", PLAIN, autograde),
        Contestant("nbgrader, locked in", ours, autograde),
        Contestant("lmcourse grade", ours, record),
    ]


def compete(
    contestant: Contestant, chapter: Chapter, folder: Path, submitted: Path, seed: int
) -> tuple[Watched, Marks]:
    """Grade the class in a fresh course."""
    folder.mkdir()
    (folder / "nbgrader_config.py").write_text(contestant.config, encoding="utf-8")
    shutil.copytree(REPOSITORY / "solutions" / chapter.id, folder / "solutions" / chapter.id)
    shutil.copytree(submitted, folder / "submitted")
    environment = environment_with(seed)
    subprocess.run(
        [*NBGRADER, "generate_assignment", chapter.id], cwd=folder, env=environment, check=True, capture_output=True
    )
    command = [chapter.id if word == "ASSIGNMENT" else word for word in contestant.command]
    log = folder / "log.txt"
    watched = watch(command, folder, environment, log)
    if watched.status:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:]
        print(f"{contestant.name} ended with status {watched.status}:", *last, sep="\n    ", file=sys.stderr)
    return watched, marks_in(folder / "gradebook.db", chapter)


def environment_with(seed: int) -> dict[str, str]:
    """The same seed for all; programs of this Python and this checkout are found, wherever they are run."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"LMCOURSE_SEED": str(seed), "PATH": programs, "PYTHONPATH": str(REPOSITORY)}


def marks_in(gradebook: Path, chapter: Chapter) -> Marks:
    """What nbgrader's gradebook holds."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{gradebook}") as book:
        return {
            submission.student.id: {
                grade.name.removeprefix("check_"): None if grade.auto_score is None else grade.score
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in book.assignment_submissions(chapter.id)
        }


def differences(name: str, marks: Marks, first: str, expected: Marks, students: list[str]) -> list[str]:
    """One line for every mark that is missing or another one than in the first gradebook."""
    found = []
    for student in students:
        mine, theirs = marks.get(student, {}), expected.get(student, {})
        if not mine or not theirs:
            found.append(f"{student}: no marks from {name if theirs else first}")
        found += [
            f"{student}, {exercise}: {mine.get(exercise)} from {name}, {theirs.get(exercise)} from {first}"
            for exercise in sorted(mine.keys() | theirs.keys())
            if mine and theirs and mine.get(exercise) != theirs.get(exercise)
        ]
    return found


def show(rows: list[Mapping[str, object]]) -> None:
    print(f"{'who':22} {'seconds':>8} {'per minute':>11} {'times nbgrader':>15} {'peak MiB':>9} {'other marks':>12}")
    for row in rows:
        who, seconds, rate, relative, peak, others = row.values()
        print(f"{who:22} {seconds:8.1f} {rate:11.1f} {relative:15.2f} {peak:9.0f} {others:12}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--notebook", default="08")
    parser.add_argument("--seed", type=int, default=1806, help="of the class, and of the hidden cases")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--plain-only", action="store_true", help="nbgrader as it comes, nothing else")
    only.add_argument("--ours-only", action="store_true", help="the two that lock submissions in")
    arguments = parser.parse_args()
    chapter = find_chapter(arguments.notebook)
    chosen = contestants()
    chosen = chosen[:1] if arguments.plain_only else chosen[1:] if arguments.ours_only else chosen

    with tempfile.TemporaryDirectory(prefix="lmcourse-benchmark-") as folder:
        submitted = Path(folder) / "submitted"
        hand_in(chapter, REPOSITORY, submitted, arguments.submissions, arguments.seed)
        students = sorted(path.name for path in submitted.iterdir())
        rows: list[Mapping[str, object]] = []
        told: list[str] = []
        ran: list[tuple[Watched, Marks]] = []
        for number, contestant in enumerate(chosen):
            ran.append(compete(contestant, chapter, Path(folder) / str(number), submitted, arguments.seed))
            watched, marks = ran[-1]
            others = differences(contestant.name, marks, chosen[0].name, ran[0][1], students)
            told += others
            rows.append(
                {
                    "who": contestant.name,
                    "seconds": round(watched.seconds, 1),
                    "per_minute": round(60 * len(students) / watched.seconds, 1),
                    "relative_to_first": round(ran[0][0].seconds / watched.seconds, 2),
                    "peak_mib": round(watched.peak / 2**20),
                    "other_marks": len(others),
                }
            )
    show(rows)
    print("\n".join(told) or f"All marks of {len(students)} submissions are the same.")
    print(json.dumps({"notebook": chapter.id, "submissions": len(students), "seed": arguments.seed, "results": rows}))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
