"""The command `lmcourse generate`: sample text from a trained model, and print it at once."""

from __future__ import annotations

import io
import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lmcourse.base.device import best_device, telling_no_memory
from lmcourse.base.errors import CourseError
from lmcourse.data.tokenizers import Tokenizer
from lmcourse.inference.compiled import CompiledStep, NoCompilerError
from lmcourse.inference.generate import stream
from lmcourse.inference.sampling import Sampling
from lmcourse.inference.weight_only import narrow_weights
from lmcourse.models.transformer import Transformer
from lmcourse.pretrained import PRETRAINED, pretrained_folder
from lmcourse.pretrained.hugging_face import is_published, load_published_model
from lmcourse.training.command.trained_model import load_trained_model

UNKNOWN = "\ufffd"
"""The character that replaces bytes which do not, or do not yet, form a valid character."""

PUBLISHED_TOKENS = 256
"""Default number of tokens from a published model, whose full context would fill the memory."""


@dataclass(frozen=True)
class GeneratedText:
    """Generated text, its seed, and the checkpoint it comes from; the step of a published model is None."""

    prompt: str
    text: str
    tokens: int
    seconds: float
    seed: int
    checkpoint: str
    step: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields and the speed as plain values."""
        return asdict(self) | {"tokens_per_second": self.tokens / self.seconds}


@dataclass(frozen=True)
class Writer:
    """A model with its tokenizer and checkpoint; `stop` has the tokens that end a text."""

    model: Transformer
    tokenizer: Tokenizer
    folder: Path
    step: int | None = None
    stop: tuple[int, ...] = ()


def open_model(path: Path, *, last: bool, device: torch.device) -> Writer:
    """Load a run, a checkpoint, a folder of `transformers`, or a model that ships with the course."""
    folder = pretrained_folder(str(path)) if str(path) in PRETRAINED else path
    if is_published(folder):
        found = load_published_model(folder, device=device)
        return Writer(found.model, found.tokenizer, folder, stop=found.stop)
    trained = load_trained_model(folder, last=last, device=device)
    return Writer(trained.model, trained.tokenizer, trained.checkpoint, trained.step)


def write(options: Namespace) -> GeneratedText:
    """Continue a prompt; without --json, print the text piece by piece and then the speed."""
    with telling_no_memory("fewer --tokens, a shorter prompt or a smaller model need less"):
        try:
            return _write(options)
        except NoCompilerError as error:
            raise CourseError(str(error)) from None


def _write(options: Namespace) -> GeneratedText:
    device = best_device()
    writer = open_model(options.checkpoint, last=options.last, device=device)
    if options.weights is not None:
        writer = replace(writer, model=narrow_weights(writer.model, options.weights))
    prompt = _read_stdin() if options.prompt == "-" else options.prompt
    seed = random.randrange(2**32) if options.seed is None else options.seed
    if not 0 <= seed < 2**63:
        raise CourseError(f"--seed must be from 0 to 2⁶³ − 1, not {seed}")
    tokens = _tokens(writer, prompt, options, torch.Generator(device).manual_seed(seed))
    say: Callable[[str], object] = (lambda text: None) if options.json else partial(print, end="", flush=True)
    say(prompt)
    written: list[int] = []
    text, start = "", time.perf_counter()
    for piece in as_text(writer.tokenizer, _listed(tokens, written), before=writer.tokenizer.encode(prompt)):
        say(piece)
        text += piece
    seconds = time.perf_counter() - start
    say("\n")
    model = "" if writer.step is None else f", model of step {writer.step:,}"
    speed = f"{len(written):,} tokens in {seconds:.2f} s, {len(written) / seconds:,.0f} tokens/s"
    print(f"{speed}; seed {seed}{model}", file=sys.stderr)
    return GeneratedText(prompt, text, len(written), seconds, seed, str(writer.folder), writer.step)


def _read_stdin() -> str:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")  # in the C locale Python accepts any bytes
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise CourseError("the prompt on stdin is not UTF-8: save it as UTF-8 (PowerShell's > writes UTF-16)") from None


def _listed(tokens: Iterable[int], written: list[int]) -> Iterator[int]:
    for token in tokens:
        written.append(token)
        yield token


def _tokens(writer: Writer, prompt: str, options: Namespace, generator: torch.Generator) -> Iterator[int]:
    """Return an iterator of the model's tokens, which generates them on demand."""
    try:
        read = writer.tokenizer.encode(prompt)
        sampling = Sampling(options.temperature, options.top_k, options.top_p, options.min_p)
        count = _max_tokens(writer, len(read), options.tokens)
        step = CompiledStep(writer.model) if options.compile else None
        found = stream(writer.model, read, count, sampling, writer.stop, generator, compiled=step)
        return (token for token in found if token not in writer.stop)
    except ValueError as error:
        raise CourseError(str(error)) from None


def _max_tokens(writer: Writer, prompt: int, wanted: int | None) -> int:
    context = writer.model.config.context
    if wanted is not None:
        return wanted
    if context is None:
        return PUBLISHED_TOKENS
    if prompt >= context:
        raise ValueError(
            f"the prompt has {prompt} tokens, which fill the model's context of {context}: use a shorter prompt"
        )
    return context - prompt if writer.step is not None else min(PUBLISHED_TOKENS, context - prompt)


def as_text(tokenizer: Tokenizer, tokens: Iterable[int], before: Sequence[int] = ()) -> Iterator[str]:
    """Decode tokens incrementally, as soon as their characters are complete; `before` is the preceding text.

    A character may consist of several tokens. Until its last token arrives, it decodes to U+FFFD and is held back. Each
    piece is decoded together with the tokens before it, because some published tokenizers omit a space at the beginning
    of a text. For the same reason, tokens without text, such as special ones, wait for the next piece.
    """
    last = [*before]
    waiting: list[int] = []
    for token in tokens:
        waiting.append(token)
        text = _continuation(tokenizer, last, waiting)
        if text and not text.endswith(UNKNOWN):
            yield text
            last, waiting = waiting, []
    if waiting:
        yield _continuation(tokenizer, last, waiting)


def _continuation(tokenizer: Tokenizer, before: list[int], waiting: list[int]) -> str:
    return tokenizer.decode(before + waiting)[len(tokenizer.decode(before)) :]
