"""Corpora by name: `find_corpus("synthetic").texts()`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from lmcourse.base.errors import CourseError
from lmcourse.data import corpus_sources
from lmcourse.data.corpus_sources import find_texts, read_text

Texts = Callable[[], Iterator[str]]


@dataclass(frozen=True)
class Corpus:
    """A collection of texts.

    Attributes:
        name: the name for `find_corpus`.
        texts: starts a new pass over the documents, always in the same order; raises CourseError if a file cannot be
            read or downloaded.
    """

    name: str
    texts: Texts


_SOURCES: dict[str, Texts] = {
    # Stories from a grammar whose entropy is known exactly, 20,000 of them (13 MB)
    "synthetic": corpus_sources.stories,
    # Paragraphs of this course's own notebooks, of before notebook 07 (98 kB)
    "course-text": corpus_sources.course_text,
    # The topics of Python's help(), in English (PSF-2.0)
    "python-docs": corpus_sources.python_docs,
    # Python's standard library without its tests (PSF-2.0)
    "python-code": corpus_sources.python_code,
    # 40,000 lines of Shakespeare's plays, one document (1.1 MB, downloaded once; public domain)
    "tiny-shakespeare": corpus_sources.tiny_shakespeare,
    # 21,990 short stories for children by GPT-3.5 and GPT-4, the validation part (19 MB, downloaded once;
    # CDLA-Sharing-1.0)
    "tinystories": corpus_sources.tiny_stories,
}
CORPORA = {name: Corpus(name, texts) for name, texts in _SOURCES.items()}
"""The corpora that have a name, by name."""


def find_corpus(spec: str) -> Corpus:
    """Return the corpus with a name in CORPORA, or the text file or folder at a path. If a path looks like a name,
    write ./name. Raises CourseError if there is no text there; for an unknown name, its message suggests one.
    """
    if spec in CORPORA:
        return CORPORA[spec]
    path = Path(spec).expanduser()
    if spec and path.exists():
        if not path.is_file() and not path.is_dir():
            raise CourseError(f"{spec} is a device or a pipe. Give the path of a text file or folder.")
        files = find_texts(path)
        return Corpus(spec, lambda: map(read_text, files))
    names = ", ".join(CORPORA)
    nearest = " or ".join(map(repr, get_close_matches(spec.lower(), CORPORA, n=2)))
    guess = f"Did you mean {nearest}?" if nearest else f"There are {names}."
    raise CourseError(f"There is no corpus and no file {spec!r}. {guess} Or give the path of a text file or folder.")


def split(corpus: Corpus, held_out: float = 0.1) -> tuple[Corpus, Corpus]:
    """Split a corpus into a training and a validation part.

    The documents with the smallest SHA-256 are held out. This choice is practically random, never changes, and puts all
    copies of a document into the same part. If there is only one document, its end is held out.

    `held_out` is the fraction of the documents (or of a single document's characters), between 0 and 1; otherwise
    ValueError is raised. A corpus without text raises CourseError.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out must be above 0 and below 1, not {held_out}")
    digests = sorted({_digest(text) for text in corpus.texts()})
    if not digests:
        raise CourseError(f"The corpus {corpus.name} has no text.")
    train, validation = f"{corpus.name} (train)", f"{corpus.name} (validation)"
    if len(digests) == 1:
        return (
            Corpus(train, lambda: (text[: int((1 - held_out) * len(text))] for text in corpus.texts())),
            Corpus(validation, lambda: (text[int((1 - held_out) * len(text)) :] for text in corpus.texts())),
        )
    last = digests[max(1, min(round(held_out * len(digests)), len(digests) - 1)) - 1]
    return (
        Corpus(train, lambda: (text for text in corpus.texts() if _digest(text) > last)),
        Corpus(validation, lambda: (text for text in corpus.texts() if _digest(text) <= last)),
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
