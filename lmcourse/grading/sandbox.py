"""The sandbox of a submission: bubblewrap's command line, its limits, and the alternative without a sandbox.

The sandbox contains the system, Python and this package without its exercises, all read-only, and an empty working
folder in memory. It has no network, no personal files, and none of the grader's environment variables. Before the
submission's Python starts, `prlimit` sets the limits and `setpriv` (both util-linux) sets a user id that no other
process uses.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

import lmcourse
from lmcourse.base.errors import CourseError
from lmcourse.base.units import MIB
from lmcourse.course.root import is_root

Isolation = Literal["bubblewrap", "process"]

PACKAGE = Path(lmcourse.__file__).resolve().parent

# The working folder inside the sandbox. It is in memory, contains only the assignment's data files, and is deleted at
# the end.
WORK_DIR = "/submission"
SYSTEM_PATHS = (
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/bin", "/usr/local/lib"),
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"),
)
"""Folders and files of programs and libraries. Only the files of /etc that locate libraries are included; shared
folders in /usr, such as nbgrader's exchange in /usr/local/share, are left out."""

PYTHON_PATHS = ("bin", "lib", "lib32", "lib64", "pyvenv.cfg")

# User ids without a name. The kernel counts processes per user, so root gives each sandbox its own id.
USER_IDS = range(61184, 65520)
# Bytes that one process may allocate, and that all processes of a submission may use together. It is the limit of a
# check in the notebook plus torch's own memory.
MEMORY = 5120 * MIB
SCRATCH = 128 * MIB

# Limits of one process. RLIMIT_AS is not used, because a torch built for CUDA maps several GB of libraries.
RLIMITS = ("--core=0", "--cpu=900", f"--data={MEMORY}", f"--fsize={64 * MIB}", "--nofile=256", "--nproc=64")
PROBE_SECONDS = 60

NOT_PROTECTED = (
    "limits only time and output. A submission runs as you: it can read and change your files, the gradebook and the "
    "solutions among them, see your environment, use the network and leave processes behind."
)
PROCESS_ISOLATION_WARNING = f"--isolation=process {NOT_PROTECTED}"


def sandboxed(program: Sequence[str], data: Iterable[Path] = (), private: Iterable[Path] = ()) -> list[str]:
    """Return the command that runs a program inside a sandbox, without a shell.

    `data` are read-only files in its working folder; `private` are folders that it must not see. Raises CourseError if
    there is no bubblewrap, or the course is in a folder that submissions must read.
    """
    root = os.geteuid() == 0
    uid = str(secrets.choice(USER_IDS))
    become = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"] if root else []
    limits = ["prlimit", *RLIMITS, *become]
    return [*_bubblewrap(root), *_mounts(data, private), "--", *limits, *program]


def choose_isolation(name: str | None = None) -> Isolation:
    """Return "bubblewrap", the default, or "process"; raise CourseError if it is unknown or does not work here."""
    if name == "process":
        return "process"
    if name not in (None, "bubblewrap"):
        raise CourseError(f"There is no isolation {name!r}: use bubblewrap or process.")
    if problem := isolation_problem():
        remedy = f"If you trust the submitters, use --isolation=process; it {NOT_PROTECTED}"
        raise CourseError(f"Submissions cannot be isolated here: {problem} {remedy}")
    return "bubblewrap"


@cache
def isolation_problem() -> str:
    """Try bubblewrap once; return a sentence that says why it does not work on this machine, or "" if it works."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap exists on Linux only; grade in a Linux virtual machine."
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed; on Debian and Ubuntu: apt-get install bubblewrap."
    try:
        probe = subprocess.run(
            sandboxed([sys.executable, "-c", "import lmcourse"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except CourseError as problem:
        return str(problem)
    except subprocess.TimeoutExpired:
        return f"bubblewrap does not work (it ran longer than {PROBE_SECONDS} s)."
    if probe.returncode == 0:
        return ""
    lines = probe.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {probe.returncode}"]
    needs = "version 0.7, user namespaces for all but root, and a course and a Python that every user may read"
    return f"bubblewrap does not work ({lines[-1]}). It needs {needs}."


def memory_used(process: int) -> int:
    """Return the bytes that a process and its descendants use, including page tables but not program files.

    A process that ends during the count counts as 0. Returns 0 on other systems than Linux.
    """
    total, waiting = 0, [process]
    while waiting:
        folder = Path("/proc", str(waiting.pop()))
        with suppress(OSError):
            lines = (line.split() for line in (folder / "status").read_text().splitlines())
            total += sum(int(line[1]) * 1024 for line in lines if line[0] in ("RssAnon:", "RssShmem:", "VmPTE:"))
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


def environment() -> dict[str, str]:
    """Return the environment variables of a submission's Python. They do not come from the grader's environment."""
    found = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": WORK_DIR,
        "TMPDIR": WORK_DIR,
        "USER": "learner",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
    }
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    # Only lmcourse is visible in the folder of a checkout.
    return found if PACKAGE.parent in installed else found | {"PYTHONPATH": str(PACKAGE.parent)}


def _bubblewrap(root: bool) -> list[str]:
    """Return the beginning of the command: new namespaces, and only the capabilities to change from root to another
    user. Root must not have a user namespace: outside it would still be root, which RLIMIT_NPROC does not limit."""
    if shutil.which("bwrap") is None:
        raise CourseError("The program bwrap was not found.")
    # The environment is cleared before bubblewrap starts, because bubblewrap stays process 1 inside the sandbox and
    # /proc would show its environment.
    start = ["env", "-i", *(f"{name}={value}" for name, value in environment().items()), str(shutil.which("bwrap"))]
    start += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    start += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    return [*start, *(["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else ["--unshare-user"])]


def _mounts(data: Iterable[Path], private: Iterable[Path]) -> Iterator[str]:
    """Yield bubblewrap's arguments for all readable and writable files."""
    shown = [part for folder in _python_folders() for part in _parts(folder)]
    places = [*shown, *map(Path, SYSTEM_PATHS), Path(WORK_DIR)]
    # By default bubblewrap creates the parent folders of a mount with access only for their owner.
    for folder in sorted({above for path in places for above in path.parents}):
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from _as_they_are(map(Path, SYSTEM_PATHS))
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from _as_they_are(shown)
    yield from _without_exercises()
    yield from _covered(private, places)
    for place in ("/dev/shm", WORK_DIR):
        yield from ("--perms", "1777", "--size", str(SCRATCH), "--tmpfs", place)
    for path in data:
        if path.is_symlink():  # a link would show its target
            raise CourseError(f"{path} cannot be an assignment's data: it is a link.")
        yield from ("--ro-bind", str(path.resolve()), f"{WORK_DIR}/{path.name}")
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK_DIR)


def _as_they_are(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.exists():
            yield from ("--ro-bind", str(path), str(path))


def _without_exercises() -> Iterator[str]:
    """Hide references and hidden cases by replacing the folder `exercises` of each chapter by an empty folder."""
    for folder in sorted((PACKAGE / "chapters").glob("*/exercises")):
        yield from ("--perms", "0755", "--tmpfs", str(folder), "--remount-ro", str(folder))


def _covered(private: Iterable[Path], shown: Iterable[Path]) -> Iterator[str]:
    """Hide private folders that are inside a visible folder."""
    places = [path.resolve() for path in shown if path.exists()]
    for folder in sorted({path.resolve() for path in private if path.is_dir()}):
        if any(folder.is_relative_to(place) for place in places):
            if within := [place for place in places if place.is_relative_to(folder)]:
                why = f"but contains {within[0]}, which they must read. Move one of the two."
                raise CourseError(f"{folder} must be hidden from submissions, {why}")
            yield from ("--perms", "0755", "--tmpfs", str(folder), "--remount-ro", str(folder))


def _python_folders() -> list[Path]:
    """Return the folders of this Python: its environment, the environment's interpreter, and our package."""
    # An environment may refer to its interpreter through a link, so the sandbox needs the link and its target.
    prefixes = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    folders = _outermost([Path("/usr"), *prefixes, *(folder.resolve() for folder in prefixes)])
    if is_root(PACKAGE.parent) and (around := [one for one in folders if PACKAGE.is_relative_to(one)]):
        why = f"The course is inside {around[0]}, which submissions must read, so they would see its solutions."
        raise CourseError(f"{why} Move the course's folder elsewhere.")
    return [folder for folder in _outermost([*folders, PACKAGE]) if folder != Path("/usr")]


def _parts(folder: Path) -> list[Path]:
    if folder == PACKAGE:
        return [folder]
    return [folder / name for name in PYTHON_PATHS if (folder / name).exists()]


def _outermost(folders: Iterable[Path]) -> list[Path]:
    distinct = sorted(set(folders))
    return [one for one in distinct if not any(one != other and one.is_relative_to(other) for other in distinct)]
