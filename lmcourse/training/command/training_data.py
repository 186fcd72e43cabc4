"""The text of a run: a tokenizer and two token files, made from a corpus, and a baseline for losses on the text.

tokenizer.json       the tokenizer, for `load_tokenizer`
train.tokens         the text to learn
validation.tokens    the text to evaluate on, if any
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar

from lmcourse.base.errors import CourseError
from lmcourse.base.json_file import read_json
from lmcourse.data.corpora import Corpus, find_corpus, split
from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Tokens
from lmcourse.data.token_file import TokenFile, write_tokens
from lmcourse.data.tokenizers import (
    BPETokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    Tokenizer,
    load_tokenizer,
    open_any_tokenizer,
)
from lmcourse.data.window_order import WindowOrder
from lmcourse.training.checkpoint_format import digest
from lmcourse.training.command.run_folder import TOKENIZER, TRAINING, VALIDATION
from lmcourse.training.command.settings import read_digests, write_json
from lmcourse.training.run_config import NUM_BYTE_TOKENS, RunConfig

STAGING = ".text-"
"""Prefix of the temporary folder in which the files are written before they are moved to their places."""

DOCUMENT_END = "\n\n"
"""An empty line ends every document."""

REPORT_SECONDS = 2.0
"""Seconds between two progress lines while a tokenizer is trained."""

Text = TypeVar("Text")


@dataclass(frozen=True)
class TrainingData(Generic[Text]):
    """The tokenizer of a run, and its two texts as tokens; `validation` is None if nothing is held out."""

    tokenizer: Tokenizer
    training: Text
    validation: Text | None


class TokenizedDocuments(Iterable[list[int]]):
    """The tokens of each document of a corpus, up to a maximum total number; every iteration is a new pass."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, most: int | None = None) -> None:
        self._corpus, self._tokenizer, self._most = corpus, tokenizer, most

    def __iter__(self) -> Iterator[list[int]]:
        count = 0
        for text in _documents(self._corpus):
            try:
                tokens = self._tokenizer.encode(text)
            except ValueError as error:
                raise CourseError(f"{self._corpus.name}: {error}") from None
            if self._most is not None:
                tokens = tokens[: self._most - count]
            if not tokens:
                return
            count += len(tokens)
            yield tokens

    def count(self) -> int:
        """The total number of tokens."""
        return sum(map(len, self))


def tokenize_corpus(run: RunConfig) -> TrainingData[TokenizedDocuments]:
    """Find a run's corpus, hold out a fraction of it, and make the tokenizer; raise CourseError if there is no text."""
    whole = find_corpus(run.corpus)
    if next(_documents(whole), None) is None:
        raise CourseError(f"{run.corpus} contains only line breaks: use another text")
    training, validation = split(whole, run.held_out) if run.held_out else (whole, None)
    # Characters that occur only in the held-out part need tokens, too, or that part could not be encoded.
    tokenizer = _make_tokenizer(run, whole if run.tokenizer == "characters" else training)
    held_out = None if validation is None else TokenizedDocuments(validation, tokenizer, run.validation_tokens)
    return TrainingData(tokenizer, TokenizedDocuments(training, tokenizer), held_out)


def _make_tokenizer(run: RunConfig, corpus: Corpus) -> Tokenizer:
    if run.tokenizer == "bytes":
        return ByteTokenizer()
    if run.tokenizer.endswith(".json"):
        return open_any_tokenizer(Path(run.tokenizer).expanduser())
    if run.tokenizer == "characters":
        return CharacterTokenizer.train(_documents(corpus))
    return BPETokenizer.train(_documents(corpus), run.vocab_size, report_merges(run.vocab_size))


def report_merges(vocab_size: int, clock: Callable[[], float] = time.monotonic) -> Callable[[int], None]:
    """Print the progress of learning byte pairs to stderr every REPORT_SECONDS, because long texts take minutes."""
    printed = clock()

    def report(merges: int) -> None:
        nonlocal printed
        if clock() - printed >= REPORT_SECONDS:
            printed = clock()
            made = f"{NUM_BYTE_TOKENS + merges:,} of {vocab_size:,} tokens"
            print(f"Learning byte pairs: {made}", file=sys.stderr, flush=True)

    return report


def _documents(corpus: Corpus) -> Iterator[str]:
    texts = (text.rstrip("\n") for text in corpus.texts())
    return (text + DOCUMENT_END for text in texts if text)


def prepare_data(run: RunConfig, folder: Path) -> dict[str, str]:
    """Write the token files of a run into its folder; they appear only when all are complete. Return their digests.

    A corpus that cannot be found or is too short raises CourseError.
    """
    parts = tokenize_corpus(run)
    folder.mkdir(parents=True, exist_ok=True)  # only now, so that a missing corpus leaves no empty folder
    for left in folder.glob(f"{STAGING}*"):  # left by a process that was killed
        shutil.rmtree(left)
    saved, vocab_size = parts.tokenizer.to_json(), parts.tokenizer.vocab_size
    with TemporaryDirectory(prefix=STAGING, dir=folder) as temporary:
        staging = Path(temporary)
        write_json(staging / TOKENIZER, saved)
        counts: dict[str, int] = {}
        for name, part in ((TRAINING, parts.training), (VALIDATION, parts.validation)):
            if part is not None:
                has_text = next(iter(part), None) is not None
                counts[name] = write_tokens(staging / name, part, vocab_size, saved) if has_text else 0
        check_lengths(run, counts[TRAINING], counts.get(VALIDATION))
        digests = {path.name: digest(path) for path in staging.iterdir()}
        for path in staging.iterdir():
            path.replace(folder / path.name)
    return digests


def open_data(run: RunConfig, folder: Path) -> TrainingData[Tokens]:
    """Open the data written by `prepare_data`; raise CourseError if a file is missing, damaged or changed."""
    for name, written in read_digests(folder).items():
        path = folder / name
        try:
            changed = name in (TOKENIZER, TRAINING, VALIDATION) and digest(path) != written
        except OSError as error:
            raise CourseError(f"{path} cannot be read: {error.strerror}") from None
        if changed:
            raise CourseError(f"{path} is damaged or was changed: restore it, or train in another --out")
    validation = TokenFile(folder / VALIDATION) if run.held_out else None
    return TrainingData(open_tokenizer(folder), TokenFile(folder / TRAINING), validation)


def check_lengths(run: RunConfig, training: int, validation: int | None) -> None:
    """Check that the texts have enough tokens for a run; raise CourseError if one is too short."""
    if not training or validation == 0:
        part = "to train on" if not training else "to validate on"
        raise CourseError(f"{run.corpus}, held_out {run.held_out:g}: the part {part} has no text; use a longer text")
    try:
        WindowOrder(training, run.training.seq_len, run.training.seed)
    except ValueError as error:
        raise CourseError(f"{run.corpus}: {error}") from None


def open_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a run's folder; raise CourseError if it is missing or damaged."""
    return load_tokenizer(read_json(folder / TOKENIZER, ["kind"]))


@dataclass(frozen=True)
class LossBaseline:
    """Reference for losses on a text: its mean bytes per token, and its entropy.

    `best_possible` is the entropy in nats per byte if the text's language is known exactly, otherwise None. A model
    sees only one window of the text at a time, so its loss stays a little higher.
    """

    bytes_per_token: float
    best_possible: float | None

    def per_byte(self, loss: float) -> float:
        """Convert a loss from nats per token to nats per byte."""
        return loss / self.bytes_per_token


def loss_baseline(corpus: str, tokenizer: Tokenizer, tokens: Tokens) -> LossBaseline:
    """Return the baseline for a text of a corpus. The entropy of the synthetic corpus follows from its grammar."""
    text = tokenizer.decode(tokens[0 : len(tokens)].tolist())
    return LossBaseline(len(text.encode()) / len(tokens), _surprise(text) if corpus == "synthetic" else None)


def _surprise(text: str) -> float | None:
    """Return −ln P per byte under the grammar. Only complete documents count: the last one may be cut off."""
    whole = text[: text.rfind(DOCUMENT_END) + len(DOCUMENT_END)] if DOCUMENT_END in text else ""
    return -story_grammar().log_probability(whole) / len(whole.encode()) if whole else None
