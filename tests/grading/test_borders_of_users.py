"""The borders around a notebook while a class is graded: by root, and by an ordinary user, who has bubblewrap only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from tests.grading.ordinary_user import NOBODY, as_ordinary_user
from tests.grading.real_course import COMMAND, RealCourse
from tests.grading.sandboxed import needs_bubblewrap

pytestmark = needs_bubblewrap

SPY = """
import os
found = []
for path in {places!r}:
    try:
        with open(path, "rb") as file:
            found.append((path, file.read(30)))
    except OSError:
        pass
    try:
        found += [(path, os.listdir(os.path.dirname(path)))]
    except OSError:
        pass
print("FOUND", found)
"""


@dataclass(frozen=True)
class School:
    """A machine with a class on it, and whoever grades it."""

    course: RealCourse
    secrets: list[Path]
    ordinary: bool

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the course's folder as whoever grades."""
        environment = self.course.environment | {"HOME": str(self.secrets[0].parent)}
        if self.ordinary:
            command = as_ordinary_user(command)
        return subprocess.run(
            command, cwd=self.course.root, env=environment, capture_output=True, text=True, timeout=240, check=False
        )


@pytest.fixture(params=["root", "ordinary"])
def school(request: pytest.FixtureRequest) -> Iterator[School]:
    """Everything readable by the grader, in the places where schools have it."""
    ordinary = request.param == "ordinary"
    if os.geteuid() != 0 and not ordinary:
        pytest.skip("only root is root")
    among_programs = Path(sys.prefix, "lib")
    if not os.access(among_programs, os.W_OK):
        pytest.skip(f"this user may not write to {among_programs}")
    with (
        tempfile.TemporaryDirectory(prefix="school-") as folder,
        tempfile.TemporaryDirectory(prefix="exchange-", dir=among_programs) as exchange,
    ):
        (root := Path(folder, "course")).mkdir()
        course = RealCourse(root)
        with (root / "nbgrader_config.py").open("a") as config:
            config.write(f"c.Exchange.root = {exchange!r}\n")
        secrets = [
            Path(folder, "home", "diary.txt"),
            root / "gradebook.db",
            root / "submitted" / "bob" / course.chapter.id / course.name,
            root / "autograded" / "cyd" / course.chapter.id / course.name,
            Path(exchange, "lmcourse", "inbound", "bob+01-floating-point", course.name),
            Path(folder, "srv", "nbgrader", "exchange", "lmcourse", "inbound", "bob", course.name),
        ]
        for path in secrets[:1] + secrets[2:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("what bob handed in")
        secrets.append(root / "solutions" / course.chapter.id / course.name)
        spy = course.solved()
        spy.cells.insert(0, new_code_cell(SPY.format(places=[*map(str, secrets)])))
        course.submit("ada", spy)
        for place in (folder, exchange):
            Path(place).chmod(0o755)
            for path in [Path(place), *Path(place).rglob("*")] if ordinary and os.geteuid() == 0 else []:
                os.chown(path, NOBODY, NOBODY)
        yield School(course, secrets, ordinary and os.geteuid() == 0)


def test_a_class_is_graded_and_a_notebook_sees_nothing_of_it(school: School) -> None:
    course = school.course
    ran = school.run([*COMMAND, "submitted", "--record", "--json", "--workers", "1"])
    assert ran.returncode == 0, ran.stderr
    ada, _ = json.loads(ran.stdout)
    assert ada["score"] == sum(course.points.values())
    assert course.graded("ada").stat().st_uid == (NOBODY if school.ordinary else os.geteuid())
    graded = json.loads(course.graded("ada").read_text())
    spied = graded["cells"][0]["outputs"]
    assert [output["text"] for output in spied] == [["FOUND []\n"]]
    outside = school.run([sys.executable, "-c", SPY.format(places=[*map(str, school.secrets)])])
    assert [path for path in school.secrets if f"'{path}', b" not in outside.stdout] == []
