"""JupyterLab starts with options for the machine, and the user's options override them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from lmcourse.jupyter import lab

ROOT = Path(__file__).parents[2]

NOTEBOOKS = Path("/course/notebooks")
DESKTOP = {"DISPLAY": ":0"}


def arguments(*args: str, env: dict[str, str] | None = None, platform: str = "linux", root: bool = False) -> list[str]:
    env = DESKTOP if env is None else env
    return lab.jupyter_arguments(args, NOTEBOOKS, env=env, platform=platform, is_root=root, page="welcome.ipynb")


def test_lab_opens_the_notebooks_on_the_welcome_page() -> None:
    assert f"--ServerApp.root_dir={NOTEBOOKS}" in arguments()
    assert "--LabApp.default_url=/lab/tree/welcome.ipynb" in arguments()


def test_our_settings_come_first_and_replace_no_others() -> None:
    made = lab.environment({"PATH": "/usr/bin", "JUPYTER_CONFIG_PATH": "/mine"})
    assert made["JUPYTER_CONFIG_PATH"].split(os.pathsep) == [str(lab.JUPYTER), "/mine"]
    assert made["JUPYTER_PATH"] == str(lab.JUPYTER)
    assert made["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    assert made["PYTHONSTARTUP"] == str(lab.STARTUP)
    assert lab.environment({"PYTHONSTARTUP": "/mine.py"})["PYTHONSTARTUP"] == "/mine.py"
    assert (lab.JUPYTER / "labconfig" / "default_setting_overrides.json").is_file()


@pytest.mark.parametrize(
    ("env", "platform", "opens"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, "linux", False),
        ({}, "darwin", True),
        ({"SSH_TTY": "/dev/ttys001"}, "darwin", False),
        ({}, "win32", True),
    ],
)
def test_a_browser_opens_only_on_a_machine_with_a_display(env: dict[str, str], platform: str, opens: bool) -> None:
    assert ("--no-browser" not in arguments(env=env, platform=platform)) is opens


def test_root_is_allowed_and_only_root() -> None:
    assert "--allow-root" in arguments(root=True)
    assert "--allow-root" not in arguments(root=False)


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("--no-browser", "--no-browser"),
        ("--ServerApp.root_dir=/elsewhere", "--LabApp.default_url="),
        ("--notebook-dir=/elsewhere", "--ServerApp.root_dir="),
        ("--LabApp.default_url=/tree", "--LabApp.default_url=/lab"),
        ("--debug", "--Application.log_level="),
        ("--allow-root", "--allow-root"),
    ],
)
def test_an_option_given_by_hand_replaces_ours(given: str, ours: str) -> None:
    made = arguments(given, env={}, root=True)
    assert made[-1] == given
    assert not any(a.startswith(ours) for a in made[:-1])


def test_a_missing_notebook_is_reported_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "course_folder", lambda named: tmp_path)
    assert lab.main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "make build" in line


@pytest.mark.prove
def test_the_server_really_starts_shows_its_address_and_opens_our_page(tmp_path: Path) -> None:
    """Only JupyterLab itself can show that it still accepts these options."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    (tmp_path / "nbgrader_config.py").touch()
    command = [sys.executable, "-m", "lmcourse.jupyter.lab", "--no-browser", "--port", "0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    log = tmp_path / "log"
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = None
        deadline = time.monotonic() + 60
        while url is None and server.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            url = re.search(r"http://localhost:\d+/lab/tree/welcome\.ipynb\?token=\w+", log.read_text())
        shown = log.read_text()
        assert url is not None, shown
        assert len(shown.splitlines()) < 15, f"the address drowns in:\n{shown}"
        with urllib.request.urlopen(url.group(), timeout=20) as page:
            assert page.status == 200
        assert "Unrecognized" not in shown
    finally:
        server.terminate()
        server.wait(timeout=20)
