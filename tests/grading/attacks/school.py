"""A course folder with secrets, three honest learners and attackers, and the detection of damage."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, cast

import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from lmcourse.course.chapters import find_chapter
from lmcourse.exercises.registry import exercises_of
from lmcourse.grading.notebooks import new_code_cell
from tests.grading.attacks.attack import COURSE, HOME, PLAIN, PORT, START, Attack, bare, is_answer
from tests.grading.learners import REPOSITORY

ASSIGNMENT = "01-floating-point"
NAME = "floating_point.ipynb"
RELEASE = REPOSITORY / "notebooks" / ASSIGNMENT / NAME
SOLUTION = REPOSITORY / "solutions" / ASSIGNMENT / NAME
# The open tasks of the notebook
OPEN = {exercise.name for exercise in exercises_of(find_chapter(ASSIGNMENT)) if exercise.task}
# Honest learners: one solved everything, one solved half, one did nothing. None did the open task, because it is
# measured for longer than the grader's time limits here.
HONEST = ("ada", "bob", "cy")
SECRET = "PLANTED-SECRET"  # A text in every file that must not be read. It does not occur in the attacks' own texts.
HEARD = "HEARD"  # the text that a successful attack prints. In the attack's code it is spelled differently.
# Files that grading itself creates in the folder; the last belongs to matplotlib in the home folder
MADE = ("autograded", "feedback", "gradebook.db", "report", ".grading", ".cache")
NAMES = ("accomplice.txt", "left-behind.txt", "lmcourse-pickle-ran")
# Files that attacks would leave on the machine
LEFT = [Path(folder, name) for folder in ("/tmp", "/var/tmp", "/dev/shm") for name in NAMES]


@dataclass
class School:
    """The folder, and a server that attacks must not reach."""

    root: Path  # with the folders `course` and `home`
    port: int = 0  # of the server
    visits: list[str] = field(default_factory=list)  # the received connections

    @property
    def course(self) -> Path:
        return self.root / "course"

    @property
    def release(self) -> NotebookNode:
        return cast(NotebookNode, nbformat.read(self.course / "notebooks" / ASSIGNMENT / NAME, as_version=4))

    def plant(self, solution: Path = SOLUTION, release: Path = RELEASE) -> Self:
        """Create the course, its secrets and the three honest learners."""
        for original, folder in ((solution, "solutions"), (release, "notebooks")):
            place = self.course / folder / ASSIGNMENT
            place.mkdir(parents=True)
            nbformat.write(with_plain_test(nbformat.read(original, as_version=4)), place / NAME)
        secrets = ("home/secret.txt", "course/notes.txt", f"course/submitted/ada/{ASSIGNMENT}/mine.txt")
        for name in secrets:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(f"{SECRET} of {name}")
        released = self.release
        answers = {cell["id"]: cell.source for cell in nbformat.read(solution, as_version=4).cells if is_answer(cell)}
        for student, share in zip(HONEST, (1.0, 0.5, 0.0), strict=True):
            self.write(student, honest(released, answers, share))
        return self

    def hand_in(self, attack: Attack) -> None:
        """Submit an attacker's folder."""
        built = attack.build(self.release)
        folder = self.write(attack.name, built).parent
        if attack.link:
            link = Path(*[part.replace("@ID@", ASSIGNMENT).replace("@NAME@", NAME) for part in attack.link.parts])
            (folder / NAME).unlink()
            (folder / NAME).symlink_to(link)
        for name, content in attack.beside.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                (folder / name).symlink_to(content)
            else:
                (folder / name).write_text(content)

    def write(self, student: str, notebook: NotebookNode | bytes) -> Path:
        """Submit a notebook and return its path."""
        place = self.course / "submitted" / student / ASSIGNMENT / NAME
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(notebook, bytes):
            place.write_bytes(notebook)
        else:
            text = json.dumps(notebook).replace(COURSE, str(self.course)).replace(HOME, str(self.root / "home"))
            place.write_text(text.replace(PORT, str(self.port)).replace(HEARD, r"\\x48EARD"))
        return place

    def listen(self) -> None:
        """Start the server, reachable only from this machine."""
        server = socket.create_server(("127.0.0.1", 0))
        self.port = server.getsockname()[1]

        def serve() -> None:
            while True:
                line, caller = server.accept()
                self.visits.append(str(caller))
                line.close()

        threading.Thread(target=serve, daemon=True).start()

    def digests(self) -> dict[str, str]:
        """Return the hashes of all files that grading must not change, including submissions."""
        places = [each for each in self.root.rglob("*") if each.is_file() and not each.is_symlink()]
        kept = [each for each in places if not set(each.relative_to(self.root).parts[1:2]) & set(MADE)]
        return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in kept}

    def printed(self, student: str) -> str:
        """Return the outputs of a graded notebook; "" if it does not exist."""
        path = self.course / "autograded" / student / ASSIGNMENT / NAME
        if not path.is_file():
            return ""
        return "\n".join(json.dumps(cell.get("outputs", [])) for cell in nbformat.read(path, as_version=4).cells)

    def pages(self, student: str) -> list[Path]:
        """Return the feedback pages."""
        return sorted((self.course / "feedback" / student).rglob("*.html"))


def with_plain_test(nb: NotebookNode) -> NotebookNode:
    """Add a plain nbgrader test, which runs in the learner's process together with the answers."""
    marks = {"schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False}
    marks |= {"grade_id": PLAIN, "points": 1}
    nb.cells.append(new_code_cell("assert ulp(1.0, 8, 23) > 0", metadata={"nbgrader": marks}))
    return nb


def honest(release: NotebookNode, answers: dict[str, str], share: float) -> NotebookNode:
    """Return a learner's notebook in which the first exercises are solved, up to a fraction, but no open task."""
    nb = bare(release)
    places = [cell for cell in nb.cells if is_answer(cell)]
    for cell in places[: int(share * len(places))]:
        cell.source = cell.source if cell["id"] in OPEN else answers[cell["id"]]
    start = nbformat.v4.new_code_cell(f"{START}\nfrom torch import Tensor")
    nb.cells = [start, *nb.cells]
    return nb


def scripts_in(page: str) -> list[str]:
    """Return the parts of attacks that a browser would run on this page."""
    soup = BeautifulSoup(page, "html.parser")
    found = [str(tag)[:80] for tag in soup.find_all("script") if "owned" in tag.text]
    for tag in soup.find_all(True):
        attributes = {name for name, value in tag.attrs.items() if "owned" in str(value)} - {"alt"}
        found += [f"{name} on {tag.name}" for name in attributes]
    return found
