"""`lmcourse generate`: text from a trained model, printed as it is sampled."""

from __future__ import annotations

import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from lmcourse.data.tokenizer import Tokenizer
from lmcourse.device import best_device
from lmcourse.errors import CourseError
from lmcourse.inference.generate import stream
from lmcourse.inference.sampling import Sampling
from lmcourse.pretrained import PRETRAINED, pretrained_folder
from lmcourse.training.command.trained_model import TrainedModel, load_trained_model

UNKNOWN = "\ufffd"
"""What stands for bytes that are no character, or not yet a whole one."""


@dataclass(frozen=True)
class GeneratedText:
    """Generated text, with its speed and the checkpoint it comes from.

    Attributes:
        prompt, text: how it began and how the model went on.
        tokens: how many the model wrote.
        seconds: that it took.
        seed: of the chance; with it the text can be written again.
        checkpoint, step: of the model.
    """

    prompt: str
    text: str
    tokens: int
    seconds: float
    seed: int
    checkpoint: str
    step: int

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second."""
        return self.tokens / self.seconds

    def to_json(self) -> dict[str, Any]:
        """The fields and the speed as plain values."""
        return asdict(self) | {"tokens_per_second": self.tokens_per_second}


def write(options: Namespace) -> GeneratedText:
    """Continue a prompt; unless a JSON document is wanted, print the text piece by piece and then the speed.

    Raises:
        CourseError: there is no such model, or it cannot go on from this prompt in this way.
    """
    device = best_device()
    name = str(options.checkpoint)
    folder = pretrained_folder(name) if name in PRETRAINED else options.checkpoint
    trained = load_trained_model(folder, last=options.last, device=device)
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    seed = random.randrange(2**32) if options.seed is None else options.seed
    if not 0 <= seed < 2**63:
        raise CourseError(f"a seed is from 0 to 2⁶³ − 1, not {seed}")
    tokens = _begin(trained, prompt, options, torch.Generator(device).manual_seed(seed))
    say: Callable[[str], None] = _ignore if options.json else partial(print, end="", flush=True)
    say(prompt)
    written: list[int] = []
    text, start = "", time.perf_counter()
    for piece in as_text(trained.tokenizer, _noted(tokens, written)):
        say(piece)
        text += piece
    seconds = time.perf_counter() - start
    say("\n")
    answer = GeneratedText(prompt, text, len(written), seconds, seed, str(trained.checkpoint), trained.step)
    told = f"{answer.tokens:,} tokens in {seconds:.2f} s, {answer.tokens_per_second:,.0f} tokens/s"
    print(f"{told}; seed {seed}, model of step {trained.step:,}", file=sys.stderr)
    return answer


def _begin(trained: TrainedModel, prompt: str, options: Namespace, generator: torch.Generator) -> Iterator[int]:
    """The model's tokens, which it writes as they are asked for.

    Raises:
        CourseError: the prompt or a flag is none for this model.
    """
    try:
        read = trained.tokenizer.encode(prompt)
        sampler = Sampling(options.temperature, options.top_k, options.top_p, options.min_p)
        return stream(trained.model, read, _room(trained, len(read), options.tokens), sampler, generator=generator)
    except ValueError as error:
        raise CourseError(str(error)) from None


def _room(trained: TrainedModel, prompt: int, wanted: int | None) -> int:
    """How many tokens to write behind a prompt of so many."""
    context = trained.run.training.seq_len
    if wanted is not None:
        return wanted
    if prompt >= context:
        raise ValueError(f"the prompt has {prompt} tokens, which leaves no room in the model's context of {context}")
    return context - prompt


def as_text(tokenizer: Tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """Decode tokens incrementally, as soon as their characters are complete; all pieces together are `decode(tokens)`.

    A character may have several tokens. Until its last one is there, it decodes to U+FFFD, and is held back.
    """
    waiting: list[int] = []
    for token in tokens:
        waiting.append(token)
        text = tokenizer.decode(waiting)
        if not text.endswith(UNKNOWN):
            yield text
            waiting.clear()
    if waiting:
        yield tokenizer.decode(waiting)


def _noted(tokens: Iterable[int], written: list[int]) -> Iterator[int]:
    for token in tokens:
        written.append(token)
        yield token


def _ignore(text: str) -> None:
    """Say nothing: the text is in the JSON document."""
