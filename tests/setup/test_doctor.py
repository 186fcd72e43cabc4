"""The doctor finds problems: each test breaks one part and checks the report."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from lmcourse.base import device
from lmcourse.jupyter import doctor

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("minor", [10, 11, 13, 14])
def test_the_pythons_that_pass_match_pyproject(minor: int) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = SpecifierSet(project["requires-python"]).contains(f"3.{minor}.1")
    check = doctor.check_python(("3", str(minor), "1"))
    assert (check.status == "ok") is allowed
    assert bool(check.advice) is not allowed


def test_a_package_in_its_version_range_passes() -> None:
    assert doctor.check_package(Requirement("numpy>=1")).status == "ok"


@pytest.mark.parametrize(("wanted", "told"), [("numpy<1", "the course needs <1"), ("no-such-package", "missing")])
def test_a_missing_or_outdated_package_fails(wanted: str, told: str) -> None:
    check = doctor.check_package(Requirement(wanted))
    assert check.status == "failed"
    assert told in check.value
    assert "make lab" in check.advice


def test_every_dependency_is_checked_but_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy>=1", "no-such-package", 'transformers; extra == "parity"']
    monkeypatch.setattr(doctor, "requires", lambda name: lines)
    monkeypatch.setattr(
        doctor, "version", lambda name: "1.0.0" if name == "lmcourse" else importlib.metadata.version(name)
    )
    assert [c.label for c in doctor.check_packages()] == ["lmcourse", "numpy", "no-such-package"]


def test_a_missing_installation_of_the_package_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", absent)
    (check,) = doctor.check_packages()
    assert (check.label, check.status) == ("lmcourse", "failed")


def test_the_kernel_check_accepts_this_python() -> None:
    assert doctor.check_kernel().status == "ok"


def test_a_kernel_of_another_python_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A python3 kernel of another environment is in the first folder in which Jupyter looks."""
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n", encoding="utf-8")
    other.chmod(0o755)
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [str(other), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    check = doctor.check_kernel()
    assert check.status == "failed"
    assert str(other) in check.value
    assert "kernelspec remove" in check.advice


def test_two_environments_over_one_python_are_not_the_same(tmp_path: Path) -> None:
    """Both link to the same program, so only their folders differ."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python").symlink_to(sys.executable)
    one, two = (str(tmp_path / name / "python") for name in ("one", "two"))
    assert doctor.same_python(one, one)
    assert not doctor.same_python(one, two)
    assert not doctor.same_python("no-such-python", one)


def test_nbgrader_check_passes_if_enabled() -> None:
    assert doctor.check_nbgrader().status == "ok"


def test_nbgrader_disabled_in_the_server_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"ServerApp": {"jpserver_extensions": {"nbgrader.server_extensions.validate_assignment": False}}}
    # The server reads JSON files from folders named after its configuration file; later files override earlier ones.
    folder = tmp_path / "jupyter_server_config.d"
    folder.mkdir()
    (folder / "nbgrader.json").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    check = doctor.check_nbgrader()
    assert check.status == "failed"
    assert "jupyter server extension enable" in check.advice


def test_nbgrader_disabled_in_jupyterlab_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "labconfig").mkdir()
    page = {"disabledExtensions": {"@jupyter/nbgrader:validate-assignment": True}}
    (tmp_path / "labconfig" / "page_config.json").write_text(json.dumps(page), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    check = doctor.check_nbgrader()
    assert check.status == "failed"
    assert "labextension enable" in check.advice


def test_a_full_disk_is_reported() -> None:
    assert doctor.check_disk(doctor.DISK_NEEDED).status == "ok"
    check = doctor.check_disk(doctor.DISK_NEEDED - 1)
    assert check.status == "failed"
    assert "2.0 GiB" in check.advice


def test_no_gpu_passes_and_an_unused_gpu_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "may_have_gpu", lambda: True)
    monkeypatch.setattr(device, "accelerators", tuple)
    monkeypatch.setattr(device, "unused_nvidia_gpu", lambda: None)
    assert [c.status for c in doctor.check_compute()] == ["optional", "ok"]
    monkeypatch.setattr(device, "unused_nvidia_gpu", lambda: "NVIDIA L4")
    gpu, _ = doctor.check_compute()
    assert gpu.status == "optional"
    assert "NVIDIA L4" in gpu.value
    assert "driver" in gpu.advice


def test_a_gpu_is_reported_with_memory_and_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    h200 = device.DetectedAccelerator("NVIDIA H200", 140 * device.GIB, "570.86")
    monkeypatch.setattr(device, "may_have_gpu", lambda: True)
    monkeypatch.setattr(device, "accelerators", lambda: (h200,))
    assert str(doctor.check_compute()[0]) == "✓ GPU: NVIDIA H200, 140.0 GiB, driver 570.86"


def test_tools_for_maintainers_never_fail_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    checks = [doctor.check_bubblewrap("linux"), doctor.check_bubblewrap("darwin"), doctor.check_chromium()]
    assert [c.status for c in checks] == ["optional"] * 3


def test_a_check_that_raises_is_reported_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[doctor.Check]:
        raise ImportError("libcudart.so.13: cannot open shared object file")

    monkeypatch.setattr(doctor, "check_compute", broken)
    (found,) = [c for c in doctor.run() if c.label == "compute"]
    assert found.status == "failed"
    assert "libcudart" in found.value


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("optional", 0), ("failed", 1)])
def test_exit_status_and_json_report_failures(
    status: doctor.Status, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = doctor.Check("disk", status, "1 GiB", "make room")
    monkeypatch.setattr(doctor, "run", lambda: [check])
    assert doctor.main(json=True) == code
    document = json.loads(capsys.readouterr().out)
    row = {"label": "disk", "status": status, "value": "1 GiB", "advice": "make room"}
    assert document == {"ok": code == 0, "checks": [row]}
    assert doctor.main() == code
    assert f"{doctor.MARKS[status]} disk: 1 GiB → make room" in capsys.readouterr().out


@pytest.mark.prove
def test_the_command_prints_one_document() -> None:
    command = [sys.executable, "-m", "lmcourse.jupyter.doctor", "--json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    document = json.loads(result.stdout)
    assert result.returncode == (0 if document["ok"] else 1)
    labels = [check["label"] for check in document["checks"]]
    for wanted in ("Python", "lmcourse", "kernel", "nbgrader", "GPU", "CPU", "free disk", "bubblewrap"):
        assert wanted in labels
