"""Write files completely or not at all: write them under temporary names, then move them into place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lmcourse.base.errors import CourseError


def write_all(contents: Mapping[Path, str | bytes], newline: str = "\n") -> None:
    """Write all files, or none of them. A crash between two moves leaves complete files, some new and some old.

    Raises CourseError if a file cannot be written; then no file has changed.

    Args:
        contents: texts or bytes by path; folders are created if necessary.
        newline: the line ending of texts; "" writes texts unchanged.
    """
    temporary = {path: path.with_name(f".{path.name}.new") for path in contents}
    moved: dict[Path, bytes | None] = {}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                temporary[path].write_bytes(content)
            else:
                temporary[path].write_text(content, encoding="utf-8", newline=newline)
        for path, new in temporary.items():
            before = path.read_bytes() if path.exists() else None
            new.replace(path)
            moved[path] = before
    except OSError as error:
        for path, before in moved.items():
            _put_back(path, before)
        place = error.filename2 or error.filename
        advice = "Close it in other programs, or change its permissions."
        raise CourseError(f"{place} cannot be written: {error.strerror}. {advice}") from error
    finally:
        for new in temporary.values():
            if new.parent.is_dir():
                new.unlink(missing_ok=True)


def _put_back(path: Path, before: bytes | None) -> None:
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)
