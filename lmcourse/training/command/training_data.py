"""The text of a run: from a corpus to a tokenizer and two token files in the run's folder, and what a loss on it means.

tokenizer.json       as `load_tokenizer` takes it
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
from lmcourse.errors import CourseError
from lmcourse.json_file import read_json
from lmcourse.training.checkpoint_format import digest
from lmcourse.training.command.run_config import NUM_BYTE_TOKENS, RunConfig
from lmcourse.training.command.run_folder import TOKENIZER, TRAINING, VALIDATION, read_digests, write_json

STAGING = ".text-"
"""Prefix of the folder in which the files are written before they get their names."""

DOCUMENT_END = "\n\n"
"""An empty line ends every document."""

REPORT_SECONDS = 2.0
"""Seconds between two lines about the training of a tokenizer."""


@dataclass(frozen=True)
class TrainingData:
    """Training and validation tokens of a run; `validation` is None if nothing is held out."""

    tokenizer: Tokenizer
    training: Tokens
    validation: Tokens | None


@dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus as tokens, one document at a time.

    Attributes:
        tokenizer: made for them.
        training, validation: begin a new pass each time somebody iterates.
    """

    tokenizer: Tokenizer
    training: TokenizedDocuments
    validation: TokenizedDocuments | None


class TokenizedDocuments(Iterable[list[int]]):
    """The tokens of each document of a corpus, up to a total number."""

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


def tokenize_corpus(run: RunConfig) -> TokenizedCorpus:
    """Find a run's corpus, hold out a fraction of it, and make the tokenizer.

    Raises:
        CourseError: there is no such corpus, or no text in it.
    """
    whole = find_corpus(run.corpus)
    if next(_documents(whole), None) is None:
        raise CourseError(f"{run.corpus} contains only line breaks: use another text")
    training, validation = split(whole, run.held_out) if run.held_out else (whole, None)
    # Characters that only the held-out part has must have a token too, or it could not be read.
    tokenizer = _make_tokenizer(run, whole if run.tokenizer == "characters" else training)
    held_out = None if validation is None else TokenizedDocuments(validation, tokenizer, run.validation_tokens)
    return TokenizedCorpus(tokenizer, TokenizedDocuments(training, tokenizer), held_out)


def _make_tokenizer(run: RunConfig, corpus: Corpus) -> Tokenizer:
    if run.tokenizer == "bytes":
        return ByteTokenizer()
    if run.tokenizer.endswith(".json"):
        return open_any_tokenizer(Path(run.tokenizer).expanduser())
    if run.tokenizer == "characters":
        return CharacterTokenizer.train(_documents(corpus))
    return BPETokenizer.train(_documents(corpus), run.vocab_size, report_merges(run.vocab_size))


def report_merges(vocab_size: int, clock: Callable[[], float] = time.monotonic) -> Callable[[int], None]:
    """Print the progress of learning byte pairs to stderr, every REPORT_SECONDS: long texts take minutes."""
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

    Raises:
        CourseError: the corpus cannot be found or is too short.
    """
    parts = tokenize_corpus(run)
    folder.mkdir(parents=True, exist_ok=True)  # only now: a corpus that is not there leaves no trace
    for left in folder.glob(f"{STAGING}*"):  # of a process that was killed
        shutil.rmtree(left)
    saved, vocab_size = parts.tokenizer.to_json(), parts.tokenizer.vocab_size
    with TemporaryDirectory(prefix=STAGING, dir=folder) as temporary:
        staging = Path(temporary)
        write_json(staging / TOKENIZER, saved)
        counts: dict[str, int] = {}
        for name, part in ((TRAINING, parts.training), (VALIDATION, parts.validation)):
            if part is not None:
                try:
                    counts[name] = write_tokens(staging / name, part, vocab_size, saved)
                except ValueError:
                    if sum(map(len, part)):
                        raise
                    counts[name] = 0
        check_lengths(run, counts[TRAINING], counts.get(VALIDATION))
        digests = {path.name: digest(path) for path in staging.iterdir()}
        for path in staging.iterdir():
            path.replace(folder / path.name)
    return digests


def open_data(run: RunConfig, folder: Path) -> TrainingData:
    """Open the data written by `prepare_data`.

    Raises:
        CourseError: a file is missing, damaged, or not what was written.
    """
    for name, written in read_digests(folder).items():
        if name in (TOKENIZER, TRAINING, VALIDATION) and _digest(folder / name) != written:
            raise CourseError(f"{folder / name} is damaged or was changed: restore it, or train in another --out")
    validation = TokenFile(folder / VALIDATION) if run.held_out else None
    return TrainingData(open_tokenizer(folder), TokenFile(folder / TRAINING), validation)


def _digest(path: Path) -> str:
    try:
        return digest(path)
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror}") from None


def check_lengths(run: RunConfig, training: int, validation: int | None) -> None:
    """Check that a text has as many tokens as a run needs.

    Raises:
        CourseError: it is too short.
    """
    if not training or validation == 0:
        part = "to train on" if not training else "to validate on"
        raise CourseError(f"{run.corpus}, held_out {run.held_out:g}: the part {part} has no text; take a longer text")
    try:
        WindowOrder(training, run.training.seq_len, run.training.seed)
    except ValueError as error:
        raise CourseError(f"{run.corpus}: {error}") from None


def open_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a run's folder.

    Raises:
        CourseError: it is missing or damaged.
    """
    return load_tokenizer(read_json(folder / TOKENIZER, ["kind"]))


@dataclass(frozen=True)
class LossBaseline:
    """Reference for losses on a text: its bytes, which do not depend on the tokenizer, and its entropy if known.

    Attributes:
        bytes_per_token: how long a token of this text is.
        best_possible: entropy of the text in nats per byte, where its language is known exactly, else None. A model
            that reads windows sees less of the text, so its loss stays a little higher.
    """

    bytes_per_token: float
    best_possible: float | None

    def per_byte(self, loss: float) -> float:
        """Return a loss in nats per token as nats per byte."""
        return loss / self.bytes_per_token


def loss_baseline(corpus: str, tokenizer: Tokenizer, tokens: Tokens) -> LossBaseline:
    """Return the baseline for a text of a corpus; the grammar of the synthetic one gives its entropy."""
    text = tokenizer.decode(tokens[0 : len(tokens)].tolist())
    known = corpus == "synthetic"
    return LossBaseline(len(text.encode()) / len(tokens), _surprise(text) if known else None)


def _surprise(text: str) -> float | None:
    """Return −ln P per byte under the grammar, of complete documents only: the last may be cut off."""
    whole = text[: text.rfind(DOCUMENT_END) + len(DOCUMENT_END)] if DOCUMENT_END in text else ""
    return -story_grammar().log_probability(whole) / len(whole.encode()) if whole else None
