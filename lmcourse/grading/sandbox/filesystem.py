"""Mounts of the sandbox: bubblewrap's arguments for readable and writable paths.

The system, Python, this package without its exercises, and the assignment's data files; all read-only. All else is
empty and locked, but for folders in memory.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import lmcourse
from lmcourse.errors import CourseError
from lmcourse.root import is_root

PACKAGE = Path(lmcourse.__file__).resolve().parent

WORK_DIR = "/submission"
"""The working folder inside: in memory, empty but for the data files, gone at the end."""

SYSTEM_PATHS = (
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/bin", "/usr/local/lib"),
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"),
)
"""Programs and shared libraries. Of /etc only where they are found: no users, no host names, no passwords. Of /usr
nothing that people share: nbgrader's exchange, with everybody's submissions, is in /usr/local/share by default."""

SHARED_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""In bubblewrap's /dev these are the machine's own."""

PYTHON_PATHS = ("bin", "lib", "lib32", "lib64", "pyvenv.cfg")
"""What a Python is made of, in its folder. What else lies there may be anything: an exchange below `share`, for one."""

VISIBLE_IN_CHAPTERS = ("__init__.py", "*/__init__.py", "*/figures", "*/figures.py")
"""What of `lmcourse/chapters` a sandboxed program may read."""

EXAMINING_FOLDERS = ("exercises", "grading")
"""What of `lmcourse` runs in the process of a notebook. It holds no exercise and no answer."""


def mounts(more: Iterable[str], private: Iterable[Path] = ()) -> Iterator[str]:
    """bubblewrap's arguments for everything that can be read.

    Args:
        more: further arguments, after which nothing can be mounted any more.
        private: folders that are covered wherever they lie.

    Raises:
        CourseError: the course lies where submissions have to read.
    """
    shown = [part for folder in python_folders() for part in _parts(folder)]
    # bubblewrap would make the folders above a mount for their owner only.
    for folder in sorted(
        {above for path in (*shown, *map(Path, SYSTEM_PATHS), Path(WORK_DIR)) for above in path.parents}
    ):
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from system_mounts()
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from _as_they_are(shown)
    yield from chapter_mounts()
    yield from private_mounts(private, [*shown, *map(Path, SYSTEM_PATHS)])
    yield from more
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK_DIR)


def private_mounts(private: Iterable[Path], shown: Iterable[Path]) -> Iterator[str]:
    """bubblewrap's arguments that cover these folders where they lie in a folder that is shown.

    Args:
        private: folders, which need not exist.
        shown: files and folders that can be read.

    Raises:
        CourseError: a folder holds what has to be read, so it cannot be covered.
    """
    places = [path.resolve() for path in shown if path.exists()]
    for folder in sorted({path.resolve() for path in private if path.is_dir()}):
        if any(folder.is_relative_to(place) for place in places):
            if within := [place for place in places if place.is_relative_to(folder)]:
                raise CourseError(f"No submission may see {folder}, and all have to read {within[0]}: move one.")
            yield from ("--perms", "0755", "--tmpfs", str(folder), "--remount-ro", str(folder))


def tmpfs(place: str, size: int) -> tuple[str, ...]:
    """bubblewrap's arguments for an empty folder in memory that everybody inside may write to, of `size` bytes."""
    return ("--perms", "1777", "--size", str(size), "--tmpfs", place)


def system_mounts() -> Iterator[str]:
    """bubblewrap's arguments for the system; today /bin and /lib are mostly links into /usr."""
    yield from _as_they_are(map(Path, SYSTEM_PATHS))


def _as_they_are(paths: Iterable[Path]) -> Iterator[str]:
    """bubblewrap's arguments for these files, folders and links, if they exist."""
    for path in paths:
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.exists():
            yield from ("--ro-bind", str(path), str(path))


def python_folders(
    package: Path = PACKAGE, prefixes: Iterable[str] = (sys.prefix, sys.base_prefix)
) -> tuple[Path, ...]:
    """The folders of this Python: its environment, the interpreter that it points to, and our package.

    Of a package installed from a checkout (`pip install --editable`) only the folder `lmcourse` is named:
    solutions, notebooks and the gradebook lie next to it.

    Raises:
        CourseError: the course lies inside a folder that has to be readable.
    """
    # An environment may reach its interpreter through a link, so both names of a folder have to lead there.
    spelled = [Path(prefix) for prefix in prefixes]
    folders = _outermost([Path("/usr"), *spelled, *(folder.resolve() for folder in spelled)])
    around = [folder for folder in folders if package.is_relative_to(folder)]
    if around and is_root(package.parent):
        raise CourseError(
            f"The course lies inside {around[0]}, which submissions have to read, and so would be its solutions. "
            "Move the course's folder elsewhere."
        )
    return tuple(folder for folder in _outermost([*folders, package]) if folder != Path("/usr"))


def _parts(folder: Path) -> list[Path]:
    """What is shown of one of `python_folders`: all of our package, and of a Python what it is made of."""
    return [folder] if folder == PACKAGE else [folder / name for name in PYTHON_PATHS if (folder / name).exists()]


def chapter_mounts(package: Path = PACKAGE) -> Iterator[str]:
    """bubblewrap's arguments that hide the chapters but for their figures, which a notebook may draw.

    References and hidden cases are the rest. What is shown is named and all else is not there, so it does not matter
    whether an author wrote a folder `exercises/`, a file `exercises.py` or a chapter in one file, nor what Python keeps
    of them in `__pycache__`.
    """
    room = package / "chapters"
    yield from ("--perms", "0755", "--tmpfs", str(room))
    for folder in sorted(path.parent for path in room.glob("*/__init__.py")):
        yield from ("--perms", "0755", "--dir", str(folder))
    for path in sorted(path for name in VISIBLE_IN_CHAPTERS for path in room.glob(name)):
        yield from ("--ro-bind", str(path), str(path))
    yield from ("--remount-ro", str(room))


def library_folders(package: Path = PACKAGE) -> list[Path]:
    """The folders of our package but for those that examine a notebook: what the course teaches is in them."""
    return sorted(path.parent for path in package.glob("*/__init__.py") if path.parent.name not in EXAMINING_FOLDERS)


def folders_of(libraries: Iterable[str]) -> list[Path]:
    """The folders of these libraries, as far as they are installed, without those that this process has loaded."""
    found = [importlib.util.find_spec(name) for name in libraries if name not in sys.modules]
    places = [Path(place) for spec in found if spec for place in spec.submodule_search_locations or ()]
    return sorted(place for place in places if place.is_dir())


def data_mounts(files: Iterable[Path], folder: str) -> Iterator[str]:
    """bubblewrap's arguments that show files and folders, read-only, in a folder of the sandbox.

    Raises:
        CourseError: one does not exist, is a link (it would show what it points to), or has another's name.
    """
    names: set[str] = set()
    for path in files:
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise CourseError(f"{path} cannot be an assignment's data: it is missing, a link, or no file or folder.")
        name = path.resolve().name  # that of `folder/..` would lead out of the working folder
        if not name or name in names:
            raise CourseError(f"Each data file of an assignment needs a name of its own, and {path} has not.")
        names.add(name)
        yield from ("--ro-bind", str(path.resolve()), f"{folder}/{name}")


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """The folders without those that lie in another one."""
    distinct = sorted(set(folders))
    return [one for one in distinct if not any(one != other and one.is_relative_to(other) for other in distinct)]
