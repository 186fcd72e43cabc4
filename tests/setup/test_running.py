"""Files for other machines agree with the Makefile, the locks, the documents and each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from lmcourse import __version__
from tests.conftest import ELSEWHERE, skipped_on
from tests.setup.test_agreement import PROJECT, PYTHONS, ROOT

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
POST_BUILD = (ROOT / ".binder" / "postBuild").read_text(encoding="utf-8")


def text(*path: str) -> str:
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text(".github", "workflows", name))["jobs"]
    return found


def commands(job: dict[str, Any]) -> list[str]:
    """Return the commands of a job's steps, line by line."""
    return [line for step in job["steps"] for line in step.get("run", "").splitlines()]


def pip_lines() -> list[str]:
    """Return the three pip lines at the beginning of the lock."""
    head = text("requirements.lock").splitlines()
    return [line.removeprefix("#").strip() for line in head if line.startswith("#     python -m pip")]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version_in_a_comment(workflow: Path) -> None:
    used = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_every_action_has_one_version() -> None:
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))}
    assert len({line.split("@")[0] for line in used}) == len(used)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_only_and_have_time_limits(workflow: Path) -> None:
    found = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert found["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in found["jobs"].values())
    assert [name for name, job in found["jobs"].items() if "permissions" in job] in ([], ["publish"])


def test_tests_run_on_every_python_and_system() -> None:
    found = jobs("tests.yml")
    assert found["linux"]["strategy"]["matrix"]["python"] == list(PYTHONS)
    assert {job["runs-on"].split("-")[0] for job in found.values()} == {"ubuntu", "macos", "windows"}
    allowed = SpecifierSet(PROJECT["requires-python"])
    for name in ("tests.yml", "site.yml", "gpu.yml"):
        for step in (step for job in jobs(name).values() for step in job["steps"]):
            python = step.get("with", {}).get("python-version", "3.12")
            assert python == "${{ matrix.python }}" or allowed.contains(f"{python}.0")


def test_windows_and_binder_install_the_lock() -> None:
    assert len(pip_lines()) == 3
    for written in (commands(jobs("tests.yml")["windows"]), POST_BUILD.splitlines()):
        assert [line for line in written if line in pip_lines()] == pip_lines()


def test_the_gpu_job_runs_the_commands_of_the_document() -> None:
    section = text("docs", "gpu.md").split("## Checking it on a GPU")[1]
    listed = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert listed is not None
    run = "\n".join(commands(jobs("gpu.yml")["gpu"]))
    for command in listed[1].splitlines():
        assert command.split(" > ")[0] in run, command


@pytest.mark.parametrize(
    "found",
    [DOCKERFILE, POST_BUILD, text(".github", "workflows", "tests.yml"), text(".github", "workflows", "site.yml")],
    ids=["Dockerfile", "postBuild", "tests.yml", "site.yml"],
)
def test_machines_without_a_gpu_install_the_cpu_build(found: str) -> None:
    assert set(re.findall(r"https://[\w./-]+/whl/\w+", found)) == {CPU_INDEX}


def test_the_container_has_the_programs_and_python_of_the_tests() -> None:
    wanted = set(re.findall(r"missing\+=\((?!python3-venv)([\w+-]+)\)", text(".ci", "run")))
    installed = re.search(r"apt-get install -y --no-install-recommends (.+?) \\", DOCKERFILE)
    assert installed is not None
    assert wanted < set(installed[1].split())
    (python,) = re.findall(r"FROM python:([\d.]+)-slim", DOCKERFILE)
    assert python in PYTHONS


@pytest.mark.prove
@pytest.mark.skipif(sys.platform == "win32", reason="Windows installs with pip, not with make")
def test_every_mentioned_make_target_exists() -> None:
    named = {*re.findall(r'(?:RUN|run:|"postCreateCommand": ") ?make ([\w./-]+)', DOCKERFILE)}
    lines = [line for path in WORKFLOWS for line in re.findall(r"run: make (.+)", path.read_text("utf-8"))]
    named |= {word for line in lines for word in line.split() if not word.startswith("-")}
    named |= set(re.findall(r'"make (\w+)"', text(".devcontainer", "devcontainer.json")))
    assert {"install", "site", "test", ".venv/requirements.lock", ".venv/requirements-test.lock"} <= named
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "--dry-run", *sorted(named)], cwd=ROOT, env=env, capture_output=True, check=True)


def test_the_dev_container_is_a_stage_of_the_dockerfile() -> None:
    found = json.loads(text(".devcontainer", "devcontainer.json"))
    assert f"AS {found['build']['target']}\n" in DOCKERFILE
    assert f" {found['remoteUser']}\n" in DOCKERFILE
    assert (ROOT / ".devcontainer" / found["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"


@pytest.mark.skipif(sys.platform == "win32", reason="Binder runs Linux")
@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_binder_can_run_its_scripts(name: str) -> None:
    script = ROOT / ".binder" / name
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_binder_uses_an_allowed_python() -> None:
    listed = yaml.safe_load(text(".binder", "environment.yml"))["dependencies"]
    assert listed == [f"python={listed[0].removeprefix('python=')}", "pip"]
    assert listed[0].removeprefix("python=") in PYTHONS


def test_all_files_state_the_same_version() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    newest = re.search(r"^## (\S+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


def test_every_skipped_test_exists_and_has_a_reason() -> None:
    for platform, skipped in ELSEWHERE.items():
        for begins, reason in skipped.items():
            found = [path for path in (ROOT / "tests").rglob("test_*.py") if skipped_on(platform, path) == reason]
            assert any(path.relative_to(ROOT).as_posix().startswith(begins) for path in found), begins
    assert not any(skipped_on("linux", path) for path in (ROOT / "tests").rglob("test_*.py"))


def test_the_container_publishes_its_port_on_loopback_only() -> None:
    published = [
        port for page in (DOCKERFILE, text("docs", "running.md")) for port in re.findall(r"--publish (\S+)", page)
    ]
    assert published == ["127.0.0.1:8888:8888"] * 2
