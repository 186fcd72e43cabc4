"""nbgrader alone against the attacks, each in a container of its own: it runs them with the rights of its user."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import lmcourse
from lmcourse.grading.sandbox import filesystem
from tests.grading.attacks.attack import Attack
from tests.grading.attacks.school import School
from tests.grading.tiny_course import REPOSITORY

ROOT, HOME, PORT = "/school", "/school/home", 39_211
WHERE = "import lmcourse, os; print(os.path.realpath(lmcourse.__path__[0]))"
SECONDS = 100
"""After which somebody would look why grading does not go on. nbgrader itself gives a cell 30 s."""


def outcomes(attacks: Sequence[Attack]) -> Iterator[tuple[Attack, dict[str, Any]]]:
    """What comes of each attack, as `nbgrader_container.attacked` tells it.

    It is `{"ended": True}` if the attack took nbgrader with it.
    """
    with tempfile.TemporaryDirectory(prefix="plain-", ignore_cleanup_errors=True) as folder:
        fresh = Path(folder, "fresh")
        School(fresh / "school").plant()
        shutil.copytree(Path(lmcourse.__file__).parent, fresh / "lmcourse")
        told = contained(fresh, "prepare")
        assert told.get("ada") == 28, told
        for attack in attacks:
            place = Path(folder, "now")
            shutil.copytree(fresh, place, symlinks=True)
            school = School(Path(ROOT), port=PORT)
            hand_in(school, attack, place)
            yield attack, contained(place, "attack", attack.name)
            shutil.rmtree(place, ignore_errors=True)


@cache
def installed() -> str:
    """Where Python finds the course by itself: behind the folder of the notebook, unlike what PYTHONPATH names."""
    found = subprocess.run([sys.executable, "-I", "-c", WHERE], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def hand_in(school: School, attack: Attack, place: Path) -> None:
    """Hand in as if the course lay where the container shows it."""
    outside = School(place / "school", port=PORT)
    outside.hand_in(attack)
    for path in (outside.course / "submitted" / attack.name).rglob("*.ipynb"):
        if not path.is_symlink():
            path.write_bytes(path.read_bytes().replace(str(outside.root).encode(), str(school.root).encode()))


def contained(place: Path, *arguments: str) -> dict[str, Any]:
    """Run `nbgrader_container` in a container that can write to `place` only."""
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    command += ["--new-session", "--cap-drop", "ALL", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
    command += [*filesystem.system_mounts(), "--size", str(2**29), "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]
    for path in filesystem.python_folders(package=Path("/nowhere")):
        command += ["--ro-bind", str(path), str(path)] if path.exists() else []
    command += ["--bind", str(place / "school"), ROOT, "--bind", str(place / "lmcourse"), installed()]
    command += ["--ro-bind", str(REPOSITORY / "tests"), "/tests-of/tests"]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": HOME,
        "PYTHONPATH": "/tests-of",
        "GRADER_SECRET": "PLANTED-SECRET of the environment",
        "ATTACK_PORT": str(PORT),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name, value in environment.items():
        command += ["--setenv", name, value]
    command += [
        "--chdir",
        f"{ROOT}/course",
        sys.executable,
        "-m",
        "tests.grading.attacks.nbgrader_container",
        ROOT,
        *arguments,
    ]
    try:
        ran = subprocess.run(command, capture_output=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"ended": "still running"}
    lines = ran.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else {"ended": f"status {ran.returncode}"}
