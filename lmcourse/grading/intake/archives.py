"""Unpack the zip of a class that a learning platform gave: what is in it was written by learners."""

from __future__ import annotations

import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from os import utime
from pathlib import Path, PurePosixPath

from lmcourse.errors import CourseError
from lmcourse.grading.intake.files import MAX_FILE_BYTES, escaped_name
from lmcourse.units import GIB, MIB

MAX_MEMBERS = 20_000
"""Files in the archive of a class."""

MAX_TOTAL_BYTES = 4 * GIB
"""All notebooks of an archive together, unpacked."""

MAX_RATIO = 100
"""How many times larger than packed a notebook may be. Text shrinks to a tenth, pictures hardly at all."""

MIN_BYTES_OF_BOMB = MIB
"""What is smaller may be packed as well as it likes."""

MAX_DEPTH = 6
"""Folders within folders."""


@dataclass(frozen=True)
class Unpacked:
    """Paths in which folders stand for archives, and what was left out of these, a sentence each."""

    paths: tuple[Path, ...]
    left_out: tuple[str, ...]


@contextmanager
def unpacked(paths: Sequence[Path]) -> Iterator[Unpacked]:
    """The paths, with a folder, which goes afterwards, for each that is a `.zip`.

    Of what is no notebook only the name is there: an empty file.

    Raises:
        CourseError: an archive is damaged, or larger than that of any class.
    """
    with tempfile.TemporaryDirectory(prefix="lmcourse-unpacked-", ignore_cleanup_errors=True) as folder:
        places: list[Path] = []
        left_out: list[str] = []
        for number, path in enumerate(paths):
            if path.suffix.lower() == ".zip" and path.is_file():
                place = Path(folder, str(number))
                left_out += _unpack(path, place)
                places.append(place)
            else:
                places.append(path)
        yield Unpacked(tuple(places), tuple(left_out))


def _unpack(archive: Path, folder: Path) -> list[str]:
    """Unpack the notebooks of an archive.

    Returns:
        What was left out, and why.
    """
    folder.mkdir()
    name = escaped_name(archive.name)
    try:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if not member.is_dir()]
            if len(members) > MAX_MEMBERS:
                raise CourseError(f"{name} holds more than {MAX_MEMBERS:,} files: is it the right archive?")
            if sum(member.file_size for member in members if _is_notebook(member)) > MAX_TOTAL_BYTES:
                raise CourseError(f"{name} unpacks to more than {MAX_TOTAL_BYTES // GIB} GiB: unpack it yourself.")
            reasons = [(member.filename, _unpack_member(file, member, folder)) for member in members]
    except (zipfile.BadZipFile, OSError) as error:
        raise CourseError(f"{name} is damaged, or no zip at all: download it again.") from error
    return [f"{name}: {escaped_name(path)} {why}: it was left out." for path, why in reasons if why]


def _unpack_member(file: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> str:
    """Unpack one file, if it is safe; or why not."""
    if problem := _problem(member):
        return problem
    place = folder.joinpath(*PurePosixPath(member.filename).parts)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as target:
            if not _is_notebook(member):
                pass
            elif member.file_size > MAX_FILE_BYTES:
                target.truncate(MAX_FILE_BYTES + 1)  # a hole: whoever reads it finds it too large, and says so
            else:
                # What is longer than its header says, or is not what its checksum says, raises.
                with file.open(member) as source:
                    target.write(source.read(member.file_size + 1))
        time = datetime(*member.date_time).timestamp()
        utime(place, (time, time))
    except FileExistsError:
        return "is there twice"
    except (OSError, ValueError, OverflowError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        with suppress(OSError):
            place.unlink()
        return "is damaged, or has a name that this machine cannot hold"
    return ""


def _problem(member: zipfile.ZipInfo) -> str:
    """Why a file of an archive is not unpacked; or nothing."""
    parts = PurePosixPath(member.filename).parts
    outside = member.filename.startswith("/") or ".." in parts or set(member.orig_filename) & set("\\:\0")
    if not parts or outside or len(parts) > MAX_DEPTH:
        return "leads out of the archive, or too deep into it"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is no ordinary file but a link or a device"
    if member.flag_bits & 1:
        return "is encrypted"
    if _is_notebook(member) and member.file_size > max(MIN_BYTES_OF_BOMB, MAX_RATIO * member.compress_size):
        return f"is packed more than {MAX_RATIO}-fold, as no notebook is"
    return ""


def _is_notebook(member: zipfile.ZipInfo) -> bool:
    return member.filename.lower().endswith(".ipynb")
