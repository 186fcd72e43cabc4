"""Find and read the files of a submission safely."""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.base.units import MIB
from lmcourse.base.unzip import MAX_FILE_BYTES

NOT_COPIED = [  # patterns of files that nbgrader must not copy together with a notebook
    *(".*", "__pycache__", "*.pyc", "feedback"),  # .*: checkpoints, a learner's progress, editors' files
    "*.py",  # our source files contain the answers; what a learner's own files contain is in the notebook's notes
    *("trained.safetensors", "sealed.json"),  # made by notebook 20, which stores both in outputs
    # pages from learners, which would be returned together with the feedback
    *("*.html", "*.htm", "*.xhtml", "*.svg", "*.js"),
]

MAX_ENTRIES = 20  # largest number of examined files and folders per submission
MAX_BESIDE_BYTES = MIB  # largest size of all other files of a submission together

# Windows has neither flag; without O_NONBLOCK a pipe would block
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WHY_NOT_OPENED = {
    errno.ELOOP: "is a link to another file. Hand in the notebook itself",
    errno.EACCES: "may not be read by the grader. Check its permissions",
}


class UnreadableError(CourseError):
    """A file or folder cannot be graded. The message names it and says what the learner can do."""


def visible_in(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name, without hidden files, or raise `UnreadableError`."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        problem = f"The folder {escaped_name(folder.name)} cannot be opened ({error.strerror}). Check its permissions."
        raise UnreadableError(problem) from error


def is_notebook(path: Path) -> bool:
    """Return True if the file's name ends in .ipynb."""
    return path.suffix.lower() == ".ipynb"


def handed_in(folder: Path) -> list[Path]:
    """Return the files in a folder, then the notebooks one folder deeper; raise `UnreadableError` if it is a link."""
    below = [path for path in folders_in(no_link(folder)) if not path.is_symlink()]
    found = [path for path in visible_in(folder) if path not in below]
    return [*found, *(path for deeper in below[:MAX_ENTRIES] for path in visible_in(deeper) if is_notebook(path))]


def folders_in(folder: Path, names: Collection[str] = ()) -> list[Path]:
    """Return the folders in a folder, without hidden ones and `__MACOSX`, which macOS adds to zips; but with each that
    contains a folder of these names."""
    visible = {path for path in visible_in(folder) if is_folder(path) and not path.name.startswith("__")}
    return sorted(visible | {path for path in folder.iterdir() if any(is_folder(path / name) for name in names)})


def is_folder(path: Path) -> bool:
    """Return True if this is a folder that the grader can see, or a link to one."""
    try:
        return path.is_dir()
    except OSError:  # a link to a folder that the grader may not open
        return False


def no_link(folder: Path) -> Path:
    """Return the folder; raise `UnreadableError` if it is a link, which could lead to another student's work."""
    if folder.is_symlink():
        name = escaped_name(folder.name)
        raise UnreadableError(f"The folder {name} is a link. Hand in a folder that holds the notebook itself.")
    return folder


def read_file(path: Path) -> bytes:
    """Return the bytes of a notebook file, or raise `UnreadableError`. Links are not followed."""
    name = escaped_name(path.name)
    try:
        # `Path.open` has no parameter `opener`.
        with open(path, "rb", opener=lambda place, flags: os.open(place, flags | _OPEN_FLAGS)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError(f"{name} is not an ordinary file. Hand in the notebook itself.")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        why = _WHY_NOT_OPENED.get(error.errno or 0, f"cannot be opened ({error.strerror}). Hand it in again")
        raise UnreadableError(f"{name} {why}.") from error
    if len(data) > MAX_FILE_BYTES:
        clear = "Clear its outputs (in JupyterLab: Kernel, Restart Kernel and Clear Outputs) and hand it in again."
        raise UnreadableError(f"{name} is larger than {MAX_FILE_BYTES // MIB} MB. {clear}")
    page = data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))
    if page or data.startswith(b"%PDF"):
        kind = "web page" if page else "PDF"
        raise UnreadableError(f"{name} is a {kind}. Hand in the notebook itself (in JupyterLab: File, Download).")
    return data


def encoded_beside(paths: Iterable[Path]) -> list[str]:
    """Return the files handed in beside a notebook, each as a line of its name and its content in Base64, as far as
    they are ordinary and within the limits."""
    found, left = [], MAX_BESIDE_BYTES
    for path in [path for path in paths if not is_notebook(path)][:MAX_ENTRIES]:
        with suppress(UnreadableError):
            data = read_file(path)
            if len(data) <= left and path.name.isprintable():
                found.append(f"{base64.b64encode(data).decode()} {path.name}")
                left -= len(data)
    return found


def decoded_beside(lines: Iterable[str]) -> dict[str, bytes]:
    """Return the content of each file by its name, from `encoded_beside`."""
    return {name: base64.b64decode(data) for data, _, name in (line.partition(" ") for line in lines)}


def remove_links(*, assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """Remove links and pipes next to notebooks and in subfolders: a hook for `Autograde.pre_convert_hook`.

    nbgrader would return the target of a link with the feedback, and a pipe would block it forever. The notebooks
    themselves are not removed, because reading them reports the problem.
    """
    kept = {Path(notebook) for notebook in notebooks}
    for folder in {notebook.parent for notebook in kept if not notebook.parent.is_symlink()}:
        for path in [*folder.rglob("*")]:  # rglob does not follow links to folders
            if path not in kept and stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                path.unlink()
