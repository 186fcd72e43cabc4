"""Corpora by name: `find_corpus("synthetic").texts()`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from lmcourse.data import corpus_sources
from lmcourse.data.corpus_sources import find_texts, read_text
from lmcourse.errors import CourseError

Read = Callable[[], Iterator[str]]


@dataclass(frozen=True)
class Corpus:
    """A collection of texts.

    Attributes:
        name: the name for `find_corpus`.
        title: a description in one line.
        licence: the licence for its use, as an SPDX name if there is one.
        source: its origin: an address or a path.
        read: a function that starts a new pass over its texts.
        skipped: files that were left out because they are not text.
    """

    name: str
    title: str
    licence: str
    source: str
    read: Read
    skipped: tuple[Path, ...] = ()

    def texts(self) -> Iterator[str]:
        """Return an iterator over the documents of the corpus, always in the same order.

        Raises:
            CourseError: one of its files cannot be read, or cannot be downloaded.
        """
        return self.read()


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "synthetic",
            "Stories from a grammar whose entropy is known exactly, 20,000 of them (13 MB)",
            "MIT",
            "lmcourse.data.grammar",
            corpus_sources.stories,
        ),
        Corpus(
            "course-text",
            "Paragraphs of this course's own notebooks, of before notebook 07 (98 kB)",
            "MIT",
            "lmcourse/data/course_text.txt",
            corpus_sources.course_text,
        ),
        Corpus(
            "python-docs",
            f"The topics of Python's help(), in English; of Python {corpus_sources.PYTHON}",
            "PSF-2.0",
            "https://docs.python.org",
            corpus_sources.python_docs,
        ),
        Corpus(
            "python-code",
            f"Python's standard library without its tests; of Python {corpus_sources.PYTHON}",
            "PSF-2.0",
            "https://github.com/python/cpython",
            corpus_sources.python_code,
        ),
        Corpus(
            "tiny-shakespeare",
            "40,000 lines of Shakespeare's plays, one document (1.1 MB, downloaded once)",
            "public domain",
            corpus_sources.TINY_SHAKESPEARE.url,
            corpus_sources.tiny_shakespeare,
        ),
        Corpus(
            "tinystories",
            "21,990 short stories for children, by GPT-3.5 and GPT-4; the validation part (19 MB, downloaded once)",
            "CDLA-Sharing-1.0",
            corpus_sources.TINY_STORIES.url,
            corpus_sources.tiny_stories,
        ),
    )
}
"""The corpora that have a name, by name."""


def find_corpus(spec: str) -> Corpus:
    """Return the corpus with a name in CORPORA, or the text file or folder at a path. If a path looks like a name,
    write ./name.

    Raises:
        CourseError: there is no such corpus or path, and the message suggests a name; or there is no text at the path.
    """
    if spec in CORPORA:
        return CORPORA[spec]
    path = Path(spec).expanduser()
    if spec and path.exists():
        if not path.is_file() and not path.is_dir():
            raise CourseError(f"{spec} is a device or a pipe. Give the path of a text file or folder.")
        files, skipped = find_texts(path)
        what = f"{len(files):,} text files" if path.is_dir() else "a text file"
        return Corpus(spec, what, "its owner's", str(path), lambda: map(read_text, files), tuple(skipped))
    names = ", ".join(CORPORA)
    nearest = " or ".join(map(repr, get_close_matches(spec.lower(), CORPORA, n=2)))
    guess = f"Did you mean {nearest}?" if nearest else f"There are {names}."
    raise CourseError(f"There is no corpus and no file {spec!r}. {guess} Or give the path of a text file or folder.")


def split(corpus: Corpus, held_out: float = 0.1) -> tuple[Corpus, Corpus]:
    """Split a corpus into a training and a validation part.

    The documents with the smallest SHA-256 are held out. This choice is practically random, never changes, and puts all
    copies of a document into the same part. If there is only one document, its end is held out.

    Args:
        held_out: the fraction of the documents (or of a single document's characters) for validation, between 0 and 1.

    Raises:
        ValueError: the fraction is not between 0 and 1.
        CourseError: there is no text.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out must be above 0 and below 1, not {held_out}")
    digests = sorted({_digest(text) for text in corpus.texts()})
    if not digests:
        raise CourseError(f"The corpus {corpus.name} has no text.")
    if len(digests) == 1:
        return (
            _part(corpus, "train", lambda: _cut(corpus, 0.0, 1 - held_out)),
            _part(corpus, "validation", lambda: _cut(corpus, 1 - held_out, 1.0)),
        )
    last = digests[max(1, min(round(held_out * len(digests)), len(digests) - 1)) - 1]
    return (
        _part(corpus, "train", lambda: (text for text in corpus.texts() if _digest(text) > last)),
        _part(corpus, "validation", lambda: (text for text in corpus.texts() if _digest(text) <= last)),
    )


def _part(corpus: Corpus, part: str, read: Read) -> Corpus:
    return replace(corpus, name=f"{corpus.name} ({part})", read=read)


def _cut(corpus: Corpus, begin: float, end: float) -> Iterator[str]:
    return (text[int(begin * len(text)) : int(end * len(text))] for text in corpus.texts())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
