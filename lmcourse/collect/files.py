"""Write a package without losing what somebody changed in it by hand."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from lmcourse.errors import CourseError

RECORD = ".collected.json"
"""The file that remembers what was written: a list of SHA-256 for each file."""


def formatted(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files, those in Python as ruff formats them if it is installed."""
    if find_spec("ruff") is None:
        return dict(files)
    with tempfile.TemporaryDirectory(prefix="lmcourse-collect-") as folder:
        for name, content in files.items():
            if name.endswith(".py"):
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--line-length", "120", folder]
        # What it cannot format stays as it was written.
        subprocess.run(command, check=False, capture_output=True)
        return {
            name: Path(folder, name).read_bytes() if name.endswith(".py") else content
            for name, content in files.items()
        }


def write_files(files: Mapping[str, bytes], out: Path, *, force: bool = False) -> list[str]:
    """Write files into a folder, each under its name when it is whole; returns the names of those that changed.

    Files that an earlier call wrote and that are no longer wanted are removed.

    Args:
        files: contents by path inside the folder.
        out: the folder, which need not be there.
        force: overwrite also what was changed by hand.

    Raises:
        CourseError: a file was changed by hand, or the folder cannot be written. Then nothing is.
    """
    _check_folder(out)
    known = _read_record(out)
    obsolete = [name for name in known if name not in files and (out / name).is_file()]
    here = {name: digest((out / name).read_bytes()) for name in [*files, *obsolete] if (out / name).is_file()}
    wanted = {name: digest(content) for name, content in files.items()}
    edited = [name for name, found in here.items() if found not in {*known.get(name, ()), wanted.get(name)}]
    if not force:
        _refuse(edited, out)
    changed = [name for name in files if here.get(name) != wanted[name]]
    try:
        # Both the old contents and the new ones are ours until all files are in place.
        _write_record(out, {name: [*known.get(name, ()), wanted[name]] for name in files} | _only(known, obsolete))
        for name in changed:
            _replace(out / name, files[name])
        for name in obsolete:
            (out / name).unlink()
        _write_record(out, {name: [wanted[name]] for name in files})
    except OSError as error:
        raise CourseError(f"{out} cannot be written: {error.strerror}") from None
    return changed


def check_unchanged(out: Path) -> None:
    """See that no file that an earlier call wrote was changed by hand.

    Raises:
        CourseError: one was, or there is a file in place of the folder.
    """
    _check_folder(out)
    known = _read_record(out)
    here = {name: digest((out / name).read_bytes()) for name in known if (out / name).is_file()}
    _refuse([name for name, found in here.items() if found not in known[name]], out)


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise CourseError(f"{out} is a file: choose another folder with --out")


def _refuse(edited: list[str], out: Path) -> None:
    if edited:
        raise CourseError(
            f"{', '.join(edited)} in {out} changed since lmcourse collect wrote it: keep it by another --out, or "
            "overwrite it with --force"
        )


def digest(content: bytes) -> str:
    """The SHA-256 of a content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _only(known: Mapping[str, list[str]], names: list[str]) -> dict[str, list[str]]:
    return {name: known[name] for name in names}


def _read_record(out: Path) -> dict[str, list[str]]:
    """What was written before; nothing if nobody knows, so that all that is there counts as somebody's own."""
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf-8"))
        return {str(name): [str(each) for each in digests] for name, digests in record.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write_record(out: Path, record: Mapping[str, list[str]]) -> None:
    _replace(out / RECORD, (json.dumps(record, indent=2) + "\n").encode())


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)
