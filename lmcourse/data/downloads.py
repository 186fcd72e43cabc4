"""Download files once, check size and SHA-256, and keep the files in the user's cache folder."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lmcourse.base.errors import CourseError

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30
"""Seconds for which a server may stay silent."""


@dataclass(frozen=True)
class Download:
    """A file to download: its name in the cache folder, its address at a pinned revision, SHA-256 and size in bytes."""

    name: str
    url: str
    sha256: str
    size: int


def fetch(download: Download, folder: Path | None = None) -> Path:
    """Return the path of a downloaded file; download it if it is missing or differs from the expected one.

    The file is written under a temporary name and renamed when it is complete and correct. So there are no incomplete
    files, and two processes may fetch at once. An interrupted download starts again from the beginning. CourseError is
    raised if the server does not send the file, or if the folder, by default `cache_folder()`, cannot be used.
    """
    folder = cache_folder() if folder is None else folder
    place = folder / download.name
    try:
        if place.is_file() and _is_right(place, download):
            return place
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
            beginning = Path(temporary) / download.name
            with beginning.open("wb") as file:
                _receive(download, place, file)
            beginning.replace(place)
    except OSError as error:
        raise CourseError(f"{place} cannot be read or written: {error.strerror or error}.") from None
    return place


def cache_folder() -> Path:
    """Return the course's folder in this system's cache, which may not exist yet."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lmcourse"


def _is_right(place: Path, download: Download) -> bool:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == download.sha256


def _receive(download: Download, place: Path, file: BinaryIO) -> None:
    """Write the server's answer to a file, and check that it is the expected file."""
    by_hand = f"Download it elsewhere and put it at {place}"
    try:
        with urllib.request.urlopen(download.url, timeout=_TIMEOUT_SECONDS) as answer:
            size, sha256 = _copy(answer, file, download.size)
    except urllib.error.HTTPError as error:
        raise CourseError(f"{download.url} answers {error.code} {error.reason}. {by_hand}.") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise CourseError(f"{download.url} cannot be reached ({reason}). {by_hand}, or use another corpus.") from None
    if (size, sha256) != (download.size, download.sha256):
        what = f"{size:,} bytes with SHA-256 {sha256[:12]}…, not {download.size:,} with {download.sha256[:12]}…"
        raise CourseError(f"{download.url} did not send the expected file: {what}. Try again. {by_hand}.")


def _copy(answer: http.client.HTTPResponse, file: BinaryIO, size: int) -> tuple[int, str]:
    """Write the received data, up to a little more than `size` bytes; return the number of bytes and the SHA-256."""
    digest, received = hashlib.sha256(), 0
    while received <= size and (chunk := answer.read(_CHUNK_BYTES)):
        file.write(chunk)
        digest.update(chunk)
        received += len(chunk)
    return received, digest.hexdigest()
