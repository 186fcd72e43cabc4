"""Names with scripts in a gradebook and in folders do not run in formgrader."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from nbformat import write
from nbformat.v4 import new_markdown_cell, new_notebook

from lmcourse.grading.gradebook import nbgrader_configuration
from tests.browser.driver import COURSE, free_port, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.prove

NAMES = ("<img src=x onerror=pwned=1>", 'x";pwned=1;"', "</script><script>pwned=1<", "\\")
"""Names of students, assignments and notebooks that end an element, a string or a script, or keep a string open."""

PLAIN = "ada"

FILES = {
    "a.HTML": "<title>quiet</title><script>document.title = 'ran'</script>",
    "a.xml": "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>quiet</title></head>"
    "<body><script>document.title = 'ran'</script></body></html>",
}
"""Files next to a submitted notebook whose text links to them."""


@pytest.fixture(scope="module")
def submissions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Create a course with such names on disk and in the gradebook; yield the ids of the graded notebooks."""
    from nbgrader.api import Gradebook

    course = tmp_path_factory.mktemp("course")
    shutil.copy(COURSE / "nbgrader_config.py", course)
    nbgrader_configuration(course)  # finds alembic, which creates gradebooks
    ids = []
    with Gradebook(f"sqlite:///{course}/gradebook.db", "lmcourse") as book:
        for name in NAMES:
            book.add_assignment(name)
            book.add_notebook(name, name)
        for student in (*NAMES, PLAIN):
            book.add_student(student, first_name=student, last_name=student, email=student)
            for assignment in NAMES:
                ids.append(book.add_submission(assignment, student).notebooks[0].id)
                for step in ("submitted", "autograded"):
                    place = course / step / student.replace("/", "") / assignment.replace("/", "")
                    place.mkdir(parents=True, exist_ok=True)
                    notebook = new_notebook(cells=[new_markdown_cell("work")])
                    write(notebook, place / f"{assignment.replace('/', '')}.ipynb")
    place = course / "autograded" / NAMES[0] / NAMES[0]
    for name, text in FILES.items():
        (place / name).write_text(text)
    return course, ids


@contextmanager
def formgrader(course: Path, folder: Path) -> Iterator[str]:
    """Start a Jupyter server with formgrader on a course, and yield its address without a path."""
    address, token = f"127.0.0.1:{free_port()}", secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.port_retries=0"]
    command += [f"--ServerApp.port={address.partition(':')[2]}"]
    command += ["--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"]
    env = os.environ | {"PYTHONPATH": str(COURSE), "JUPYTER_TOKEN": token}
    env |= {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    with serving(command, course, env, folder / "log", f"http://{address}/api?token={token}"):
        yield f"http://{address}/{{path}}?token={token}"


def test_no_name_in_formgrader_runs_as_script(
    browser: Browser, submissions: tuple[Path, list[str]], tmp_path: Path
) -> None:
    course, ids = submissions
    paths = ["manage_assignments", "gradebook", "manage_students"]
    paths += [f"submissions/{one}/" for one in ids[: len(NAMES)]]
    for one in (quote(name, safe="") for name in NAMES):
        paths += [f"manage_submissions/{one}", f"gradebook/{one}", f"gradebook/{one}/{one}", f"manage_students/{one}"]
    paths.append(f"manage_students/%5C/{quote(';pwned=1<!--')}")
    paths += [f"manage_students/{quote(NAMES[0], safe='')}/{quote(NAMES[1], safe='')}"]
    ran = []
    with formgrader(course, tmp_path) as address:
        page = browser.new_page()
        for path in paths:
            page.goto(address.format(path=f"formgrader/{path}"), wait_until="networkidle")
            for box in page.locator("input[type=search]").all():
                box.fill("pwned")
            if page.evaluate("typeof pwned !== 'undefined'"):
                ran.append(path)
        titles = {}
        for name in FILES:
            answer = page.goto(address.format(path=f"formgrader/submissions/{ids[0]}/{name}"))
            titles[name] = answer.status if answer else 0, page.title()
        page.goto(address.format(path="formgrader/manage_students"), wait_until="networkidle")
        shown = page.locator("#main-table td.id").all_inner_texts()
        page.close()
    assert ran == []
    assert titles == dict.fromkeys(FILES, (200, "quiet"))
    assert {*shown} >= {*NAMES, PLAIN}
