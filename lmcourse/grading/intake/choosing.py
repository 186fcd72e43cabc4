"""Which file in a folder is the notebook that was meant; or, if there is none, what learners did instead."""

from __future__ import annotations

from pathlib import Path

from lmcourse.grading.intake.opening import UnreadableError, shown

MOST = 20
"""Files and folders of one submission that are looked at."""

ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")


def notebooks_in(folder: Path) -> list[Path]:
    """What calls itself a notebook in this folder, whatever it is.

    Raises:
        UnreadableError: the folder cannot be opened.
    """
    return [path for path in _visible(folder) if path.suffix.lower() == ".ipynb"][:MOST]


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, but for hidden ones and what macOS adds to an archive.

    Raises:
        UnreadableError: the folder cannot be opened.
    """
    return [path for path in _visible(folder) if _is_folder(path) and not path.name.startswith("__")]


def why_none(folder: Path, wanted: str) -> str:
    """Why there is no notebook in a folder, in one sentence that says what to do.

    Args:
        folder: it holds none.
        wanted: where the notebook should be.

    Raises:
        UnreadableError: the folder, or one in it, cannot be opened.
    """
    archives = [path for path in _visible(folder) if path.suffix.lower() in ARCHIVES]
    if archives:
        return f"{shown(archives[0].name)} is an archive: unpack it and hand in the notebook itself, as {wanted}."
    for below in folders_in(folder)[:MOST]:
        if not below.is_symlink() and (found := notebooks_in(below)):
            return f"The notebook lies too deep: move {shown(below.name)}/{shown(found[0].name)} to {wanted}."
    return f"No notebook was handed in: {wanted} is missing."


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a link to where the grader may not look
        return False


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise UnreadableError(
            f"The folder {shown(folder.name)} cannot be opened ({error.strerror}): its permissions have to allow it."
        ) from error
