"""Check the installation, for `lmcourse doctor` and `make doctor`.

Each check tests the real thing: the kernel that Jupyter would start, the extensions that the server would load, the
device that torch can use. Each failure comes with advice. Optional parts are shown, but they never fail.
"""

from __future__ import annotations

import importlib
import importlib.util
import json as jsonlib
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmcourse.base import device
from lmcourse.base.units import GIB
from lmcourse.course.root import CARRIED

if TYPE_CHECKING:  # rich is one of the packages that may be missing
    from packaging.requirements import Requirement

Status = Literal["ok", "failed", "optional"]

MARKS: dict[Status, str] = {"ok": "✓", "failed": "✗", "optional": "–"}
COLOURS: dict[Status, str] = {"ok": "green", "failed": "bold red", "optional": "yellow"}

DISK_NEEDED = 2 * GIB
INSTALL = (
    "`python -m pip install --upgrade lmcourse`"
    if CARRIED.is_dir()
    else "run `make lab` in the folder of the course, or the three pip lines in requirements.lock"
)


@dataclass(frozen=True)
class Check:
    """The result of one check of the installation: the finding, or the problem and how to solve it.

    "optional" parts are missing, but the course does not require them.
    """

    label: str
    status: Status
    value: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" → {self.advice}" if self.advice else ""
        return f"{MARKS[self.status]} {self.label}: {self.value}{advice}"


def main(json: bool = False) -> int:
    """Print all checks as lines or as one JSON document; return 0 if all required checks pass, otherwise 1."""
    checks = list(run())
    ok = all(check.status != "failed" for check in checks)
    if json:
        print(jsonlib.dumps({"ok": ok, "checks": [asdict(check) for check in checks]}, ensure_ascii=False))
    else:
        _print(checks, ok)
    return 0 if ok else 1


def run() -> Iterator[Check]:
    """Run all checks, in the order in which problems should be fixed. A check that raises counts as failed."""
    groups: tuple[tuple[str, Callable[[], list[Check]]], ...] = (
        ("Python", lambda: [check_python(platform.python_version_tuple())]),
        ("packages", check_packages),
        ("kernel", lambda: [check_kernel()]),
        ("nbgrader", lambda: [check_nbgrader()]),
        ("compute", check_compute),
        ("free disk", lambda: [check_disk(shutil.disk_usage(".").free)]),
        ("bubblewrap", lambda: [check_bubblewrap(sys.platform)]),
        ("chromium", lambda: [check_chromium()]),
    )
    for label, look in groups:
        try:
            yield from look()
        except Exception as error:
            yield Check(label, "failed", f"{type(error).__name__}: {error}", INSTALL)


def check_python(found: tuple[str, str, str]) -> Check:
    """Check that Python is 3.11, 3.12 or 3.13, as `requires-python` in pyproject.toml requires."""
    shown = f"{'.'.join(found)} ({sys.executable})"
    if (3, 11) <= (int(found[0]), int(found[1])) <= (3, 13):
        return Check("Python", "ok", shown)
    return Check("Python", "failed", shown, "the course needs 3.11, 3.12 or 3.13: `make lab PYTHON=python3.12`")


def check_packages() -> list[Check]:
    """Check that every package in pyproject.toml is installed with an allowed version."""
    from packaging.requirements import Requirement

    try:
        wanted = [Requirement(line) for line in requires("lmcourse") or []]
        checks = [Check("lmcourse", "ok", version("lmcourse"))]
    except PackageNotFoundError:
        return [Check("lmcourse", "failed", "not installed in this Python", INSTALL)]
    # Requirements of an extra have a marker that is false without the extra.
    return checks + [check_package(r) for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]


def check_package(wanted: Requirement) -> Check:
    """Check one requirement against the installed version."""
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return Check(wanted.name, "failed", "missing", INSTALL)
    if not wanted.specifier.contains(found, prereleases=True):
        return Check(wanted.name, "failed", f"{found}, the course needs {wanted.specifier}", INSTALL)
    return Check(wanted.name, "ok", found)


def check_kernel() -> Check:
    """Check that the kernel "python3", which the notebooks use, starts this Python."""
    from jupyter_client.kernelspec import NoSuchKernel
    from jupyter_client.manager import KernelManager

    # If packages are incompatible, it is the import that fails when a kernel starts.
    importlib.import_module("ipykernel.kernelapp")
    try:
        program = KernelManager(kernel_name="python3").format_kernel_cmd()[0]
    except NoSuchKernel:
        return Check("kernel", "failed", 'there is no kernel "python3"', "`python -m ipykernel install --sys-prefix`")
    if same_python(program, sys.executable):
        return Check("kernel", "ok", f"python3 starts {program}")
    advice = "`python -m ipykernel install --sys-prefix`, or remove it: `jupyter kernelspec remove python3`"
    return Check("kernel", "failed", f"python3 starts {program}, this is {sys.executable}", advice)


def same_python(program: str, other: str) -> bool:
    """Return True if two commands start the same environment. Folders are compared, because the file may be a link."""
    found = shutil.which(program)
    return found is not None and Path(found).parent.resolve() == Path(other).parent.resolve()


def check_nbgrader() -> Check:
    """Check both parts of nbgrader's Validate: the server extension and the JupyterLab extension."""
    from jupyter_core.paths import jupyter_config_path, jupyter_path
    from jupyter_server.extension.config import ExtensionConfigManager
    from jupyterlab_server.config import get_federated_extensions, get_page_config

    server = "nbgrader.server_extensions.validate_assignment"
    config = ExtensionConfigManager(read_config_path=jupyter_config_path())
    enabled: dict[str, bool] = config.get_jpserver_extensions()
    if not enabled.get(server):
        return Check("nbgrader", "failed", "its server extension is off", f"`jupyter server extension enable {server}`")
    # Look for its folder instead of importing it, because the import loads all of nbgrader and takes half a second.
    package = importlib.util.find_spec("nbgrader")
    roots = (package.submodule_search_locations if package else None) or ()
    if not any(Path(root, *server.split(".")[1:]).is_dir() for root in roots):
        return Check("nbgrader", "failed", "its server extension is missing", INSTALL)

    lab = "@jupyter/nbgrader"
    folders = jupyter_path("labextensions")
    if lab not in get_federated_extensions(folders):
        return Check("nbgrader", "failed", "its JupyterLab extension is missing", INSTALL)
    settings = str(Path(sys.prefix, "share", "jupyter", "lab", "settings"))
    disabled = get_page_config(folders, settings).get("disabledExtensions", [])
    # The whole extension may be disabled, or its plugin "@jupyter/nbgrader:validate-assignment".
    if any(name == lab or name.startswith(f"{lab}:validate") for name in disabled):
        return Check("nbgrader", "failed", "its JupyterLab extension is off", f"`jupyter labextension enable {lab}`")
    return Check("nbgrader", "ok", f"{version('nbgrader')}, Validate is in JupyterLab's toolbar")


def check_compute() -> list[Check]:
    """Check the device that torch uses. A GPU is optional, but a GPU that torch cannot use is reported.

    torch, whose import takes seconds, is imported only if the system has a GPU.
    """
    present = device.may_have_gpu()
    checks = [
        Check("GPU", "ok", device.describe_accelerator(gpu)) for gpu in (device.accelerators() if present else ())
    ]
    if not checks:
        idle = device.unused_nvidia_gpu() if present else None
        if idle:
            advice = "update NVIDIA's driver, or install the CUDA build of torch (pytorch.org)"
            checks.append(Check("GPU", "optional", f"torch cannot use the {idle}", advice))
        else:
            checks.append(Check("GPU", "optional", "none; every notebook is made for a CPU too"))
    cores, memory = device.usable_cores(), device.gib(device.main_memory())
    plural = "" if cores == 1 else "s"
    return [*checks, Check("CPU", "ok", f"{device.cpu_name()}, {cores} core{plural}, {memory} memory")]


def check_disk(free: int) -> Check:
    """Check the free disk space for data and checkpoints."""
    if free >= DISK_NEEDED:
        return Check("free disk", "ok", device.gib(free))
    return Check("free disk", "failed", device.gib(free), f"make room: the course needs {device.gib(DISK_NEEDED)}")


def check_bubblewrap(system: str) -> Check:
    """Check bubblewrap, the sandbox for grading a class."""
    if system != "linux":
        return Check("bubblewrap", "optional", "Linux only; needed to grade a class, not to take the course")
    found = shutil.which("bwrap")
    if found:
        return Check("bubblewrap", "ok", found)
    return Check("bubblewrap", "optional", "not installed", "to grade a class: `apt install bubblewrap`")


def check_chromium() -> Check:
    """Check Chromium, which the browser tests use."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found:
        return Check("chromium", "ok", found)
    return Check("chromium", "optional", "not installed", "to run the browser tests: `apt install chromium`")


def _print(checks: list[Check], ok: bool) -> None:
    """Print the lines, in colour on a terminal."""
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:  # rich is one of the packages that may be missing
        print(*checks, sep="\n")
        return
    console = Console(highlight=False)
    for check in checks:
        line = Text(str(check))
        line.stylize(COLOURS[check.status], 0, 1)
        console.print(line, soft_wrap=True)
    failed = sum(check.status == "failed" for check in checks)
    console.print("All is well." if ok else f"{failed} to fix; start with the first.")


if __name__ == "__main__":
    sys.exit(main(json="--json" in sys.argv[1:]))
