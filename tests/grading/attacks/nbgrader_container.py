"""nbgrader alone, on one attacker, in a container: run by `nbgrader_alone`.

It prints what harm came of it as a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

from traitlets.config import Config

import lmcourse
from lmcourse.units import GIB
from tests.grading.attacks.pages import PAGES
from tests.grading.attacks.school import ASSIGNMENT, HEARD, HONEST, NAME, SECRET, School, scripts_in


def main() -> None:
    """Make the course's gradebook (`prepare`), or grade one student."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    root, what = Path(sys.argv[1]), sys.argv[2]
    del os.environ["PYTHONPATH"]  # ours; an instructor has none
    resource.setrlimit(resource.RLIMIT_DATA, (3 * GIB, 3 * GIB))
    resource.setrlimit(resource.RLIMIT_FSIZE, (GIB, GIB))
    print(json.dumps(prepare(School(root)) if what == "prepare" else attacked(School(root), sys.argv[3])), file=out)


def prepare(school: School) -> dict[str, Any]:
    """The assignment and the honest learners, as an instructor has them before the attacker comes."""
    from nbgrader.converters import Autograde, GenerateAssignment

    config = configuration(school)
    GenerateAssignment(coursedir=_course(config, "."), config=config, force=True).start()
    for student in HONEST:
        Autograde(coursedir=_course(config, student), config=config).start()
    return {student: marks(school, student) for student in HONEST}


def attacked(school: School, student: str) -> dict[str, Any]:
    """Grade the attacker and tell what came of it."""
    school.port = int(os.environ["ATTACK_PORT"])
    listening(school)
    before, others = digests(school), {name: marks(school, name) for name in HONEST}
    trouble = graded(school, student)
    earned = marks(school, student)
    after = digests(school)
    text = school.printed(student)
    files = [each for each in (school.course / "autograded" / student).rglob("*") if each.is_file()]
    pages = [page for each in school.pages(student) for page in scripts_in(each.read_text())]
    return {
        "points": earned,
        "trouble": trouble,
        "secrets": SECRET in text or any(SECRET.encode() in each.read_bytes()[: 10**6] for each in files),
        "gradebook": any(each.read_bytes()[:6] == b"SQLite" for each in files),
        "heard": HEARD in text,
        "wrote": sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))[:5]
        + [str(path) for folder in ("/tmp", "/var/tmp", "/dev/shm") for path in Path(folder).glob("*") if path.suffix],
        "others": others != {name: marks(school, name) for name in HONEST},
        "connected": len(school.visits),
        "running": left_running(),
        "megabytes": sum(each.stat().st_blocks * 512 for each in files) // 10**6,
        "files": len(files),
        "scripts": pages[:3],
    }


def digests(school: School) -> dict[str, str]:
    """Every file that grading has no business with, the installed course included."""
    package = Path(lmcourse.__path__[0])
    return school.digests() | {str(each): each.read_text(encoding="utf-8") for each in package.rglob("*.py")}


def graded(school: School, student: str) -> str:
    """Autograde, and make the feedback of those who have something to show; what went wrong."""
    from nbgrader.converters import Autograde, GenerateFeedback

    config = configuration(school)
    shown = student in {attack.name for attack in PAGES}
    for converter in (Autograde, GenerateFeedback)[: 1 + shown]:
        try:
            converter(coursedir=_course(config, student), config=config).start()
        except BaseException as error:
            return f"{converter.__name__}: {type(error).__name__}"
    return ""


def configuration(school: School) -> Config:
    """As little as possible: nbgrader's own defaults, on this layout of folders."""
    config = Config()
    config.CourseDirectory.root = str(school.course)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "notebooks"
    return config


def _course(config: Config, student: str) -> Any:
    from nbgrader.coursedir import CourseDirectory

    course = CourseDirectory(config=config)
    course.assignment_id, course.student_id = ASSIGNMENT, student
    return course


def marks(school: School, student: str) -> float | None:
    """The points in the gradebook, or None if the student has none."""
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(f"sqlite:///{school.course}/gradebook.db") as book:
        try:
            notebook = book.find_submission_notebook(NAME.removesuffix(".ipynb"), ASSIGNMENT, student)
        except MissingEntry:
            return None
        given = [grade.score for grade in notebook.grades]
        clear = all(grade.auto_score is not None for grade in notebook.grades)
        return float(sum(given)) if clear else None


def listening(school: School) -> None:
    """Serve on the port that the attack knows."""
    import socket

    server = socket.create_server(("127.0.0.1", school.port))

    def serve() -> None:
        while True:
            line, caller = server.accept()
            school.visits.append(str(caller))
            line.close()

    threading.Thread(target=serve, daemon=True).start()


def left_running() -> int:
    """Processes in the container that should have ended with the kernel."""
    time.sleep(0.5)
    return len(
        {int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()} - {1, os.getpid(), os.getppid()}
    )


if __name__ == "__main__":
    main()
