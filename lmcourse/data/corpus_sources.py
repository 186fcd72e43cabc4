"""Read or make the texts of each named corpus, and read the text files of a folder."""

from __future__ import annotations

import os
import random
import sysconfig
import tokenize
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.data.downloads import Download, fetch
from lmcourse.data.grammar import story_grammar

TINY_SHAKESPEARE = Download(
    "tiny-shakespeare.txt",
    "https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e"
    "/data/tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    1_115_394,
)

TINY_STORIES = Download(
    "tinystories-valid.txt",
    "https://huggingface.co/datasets/roneneldan/TinyStories/resolve/f54c09fd23315a6f9c86f9dc80f725de7d8f9c64"
    "/TinyStories-valid.txt",
    "94e431816c4cce81ff71e4408ff8d3bda9a42e8d2663986697c3954288cb38b4",
    19_447_282,
)
"""The TinyStories data of Eldan and Li (2023)."""

_NOT_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idle_test"}


def stories(count: int = 20_000, seed: int = 0) -> Iterator[str]:
    """Yield `count` texts of `story_grammar()`, about 670 bytes each; `story_grammar()` has their entropy."""
    source = random.Random(seed)
    return (story_grammar().generate(source) for _ in range(count))


def course_text() -> Iterator[str]:
    """Yield one document: paragraphs without formulas from eleven of the course's notebooks in November 2026.

    The text never changes, so that counts of it stay correct.
    """
    yield Path(__file__).with_name("course_text.txt").read_text(encoding="utf-8")


def python_docs() -> Iterator[str]:
    """Yield the help topics that come with Python, half a megabyte, in the order of their names."""
    try:
        topics: dict[str, str] = import_module("pydoc_data.topics").topics
    except ImportError:
        raise CourseError("This Python came without its help topics; use another corpus.") from None
    return (topics[name] for name in sorted(topics))


def python_code() -> Iterator[str]:
    """Yield the modules of the standard library that are written in Python, in the order of their paths.

    Tests are left out, because some of their files are broken on purpose.
    """
    library = Path(sysconfig.get_path("stdlib"))
    modules = ((path.relative_to(library).parts, path) for path in library.rglob("*.py"))
    paths = [path for parts, path in sorted(modules) if _NOT_LIBRARY.isdisjoint(parts)]
    if not paths:
        raise CourseError(f"There are no sources of Python's standard library in {library}; use another corpus.")
    return filter(None, map(_source, paths))


def tiny_shakespeare() -> Iterator[str]:
    """Yield the plays as one text."""
    yield read_text(fetch(TINY_SHAKESPEARE))


def tiny_stories() -> Iterator[str]:
    """Yield the stories one after the other."""
    every = read_text(fetch(TINY_STORIES)).split("<|endoftext|>")
    return (story.strip() for story in every if story.strip())


def _source(path: Path) -> str:
    """Return a module's text, decoded with the encoding that it declares (PEP 263)."""
    with tokenize.open(path) as file:
        return file.read()


WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
"""The first bytes of a text in UTF-16 or UTF-32, of either byte order."""

_SNIFF_BYTES = 8192
"""Number of bytes at the start of a file that decide whether it is text."""


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, with unchanged line endings; raise CourseError if it cannot be read."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise CourseError(
            f"{path} is not UTF-8: byte 0x{wrong:02x} at offset {error.start:,}. Save it as UTF-8, or leave it out."
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def find_texts(path: Path) -> list[Path]:
    """Return the text files of a folder, sorted by name; or a single file. If there is no text, raise CourseError.

    Subfolders are included. Hidden files and folders, empty files and links to folders are not, and neither are binary
    files: as in git, those with a zero byte near their beginning.
    """
    files = [path] if path.is_file() else list(_walk(path))
    texts: list[Path] = []
    binary: list[Path] = []
    for file in files:
        beginning = _beginning(file)
        if beginning:
            (binary if b"\0" in beginning else texts).append(file)
    if not texts and any(_beginning(file).startswith(WIDE_MARKS) for file in binary):
        raise CourseError(f"{path} is UTF-16 or UTF-32, not UTF-8 (PowerShell's > writes UTF-16). Save it as UTF-8.")
    if not texts and path.is_file():
        raise CourseError(f"{path} is {'not a text but binary' if binary else 'empty'}. Give the path of a text.")
    if not files:
        raise CourseError(f"{path} has no files. Give the path of a text file, or of a folder with texts.")
    if not texts:
        raise CourseError(f"{path} has no text: {len(binary)} of its {len(files)} files are binary, the rest empty.")
    return texts


def _walk(folder: Path) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise _unreadable(Path(error.filename), error)

    found = []
    for parent, folders, files in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in files if not name.startswith(".")]
    yield from sorted((file for file in found if file.is_file()), key=lambda file: file.relative_to(folder).parts)


def _beginning(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_SNIFF_BYTES)
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(path: Path, error: OSError) -> CourseError:
    return CourseError(f"{path} cannot be read: {error.strerror or error}.")
