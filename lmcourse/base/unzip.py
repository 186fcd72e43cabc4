"""Unpack the zip of a class, made by strangers, into a temporary folder: only notebooks, and nothing outside of it."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from lmcourse.base.errors import CourseError
from lmcourse.base.text import escaped_name
from lmcourse.base.units import MIB

MAX_FILE_BYTES = 50 * MIB  # largest size of a notebook; ordinary notebooks with pictures have less than 5 MB
_UTF8_FLAG = 0x800  # flag bit of the members of a zip


@dataclass(frozen=True)
class Unpacked:
    """Paths with a folder in place of each zip, and one sentence for each file that was left out."""

    paths: tuple[Path, ...]
    left_out: tuple[str, ...]


@contextmanager
def unpacked(paths: Sequence[Path]) -> Iterator[Unpacked]:
    """Unpack the zips among some paths into temporary folders.

    Only notebooks are unpacked; other files are created empty. Raises `CourseError` for a zip that is damaged or empty.
    """
    with tempfile.TemporaryDirectory(prefix="lmcourse-unpacked-", ignore_cleanup_errors=True) as folder:
        places: list[Path] = []
        left_out: list[str] = []
        for number, path in enumerate(paths):
            zipped = path.suffix.lower() == ".zip" and path.is_file()
            places.append(Path(folder, str(number)) if zipped else path)
            left_out += _unpack(path, places[-1]) if zipped else []
            if zipped and not left_out and not any(places[-1].iterdir()):
                raise CourseError(f"{escaped_name(path.name)} contains no files. Download it again.")
        yield Unpacked(tuple(places), tuple(left_out))


def _unpack(archive: Path, folder: Path) -> list[str]:
    folder.mkdir()
    name = escaped_name(archive.name)
    try:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if not member.is_dir()]
            reasons = [(_path_of(member), _unpack_member(file, member, folder)) for member in members]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise CourseError(f"{name} is damaged, or is not a zip. Download it again.") from error
    return [f"{name}: {escaped_name(path)} {why}; it was left out." for path, why in reasons if why]


def _unpack_member(file: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> str:
    """Unpack one file if it is safe; return the reason if it was left out, or ""."""
    path = PurePosixPath(_path_of(member))
    if path.is_absolute() or not path.parts or ".." in path.parts or set(member.orig_filename) & set("\\:\0"):
        return "would be unpacked outside its folder"
    place = folder.joinpath(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as target:
            if _is_notebook(member) and member.file_size > MAX_FILE_BYTES:
                # takes no space on the disk, but `read_file` reports that it is too large
                target.truncate(MAX_FILE_BYTES + 1)
            elif _is_notebook(member):
                # zipfile raises an error if the content is longer than declared or does not match its checksum.
                with file.open(member) as source:
                    target.write(source.read(member.file_size + 1))
        with suppress(ValueError, OverflowError):  # some programs write no valid date
            time = datetime(*member.date_time).timestamp()
            os.utime(place, (time, time))
    except FileExistsError:
        return "is there twice"
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):  # RuntimeError: encrypted
        with suppress(OSError):
            place.unlink()
        return "is damaged, or its name is not allowed on this machine"
    return ""


def _path_of(member: zipfile.ZipInfo) -> str:
    # macOS writes UTF-8 names without this flag, and zipfile decodes them as cp437
    if not member.flag_bits & _UTF8_FLAG:
        with suppress(UnicodeError):
            return member.filename.encode("cp437").decode("utf-8")
    return member.filename


def _is_notebook(member: zipfile.ZipInfo) -> bool:
    return member.filename.lower().endswith(".ipynb")
