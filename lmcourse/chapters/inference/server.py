"""The open task of notebook 17: write the texts of 24 requests with as little work as possible.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Unfit
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like

Request = tuple[list[int], int]
"""A prompt, and the number of tokens to write."""

Serve = Callable[[Any, list[Request]], list[list[int]]]

PASSES, TOKENS, LESS = "passes", "tokens read", "times less work"
ROWS, VOCABULARY = 8, 64
SETS = (26, 32, 50)
"""Seeds of the judge's sets. On these, no batch that only drops finished rows needs a third of the work."""

FORM = "Return a list of lists of tokens, one for each request, in the order of the requests."
LENGTH = "Your text {number} has {yours} tokens; its request asks for {right} new ones."
MIXED = "Your texts are right, but not in the order of the requests."
FIRST = (
    "{wrong} of {all} texts begin with a wrong token. Pad prompts on the right, and take the logits at the end of each "
    "prompt: a padded pass ends with padding."
)
SECOND = (
    "Your texts begin right, and {wrong} of {all} are wrong from the second token. Does the cache hold prompts only "
    "(`truncate` forgets padding), and does the next pass read the token written last?"
)
LATER = (
    "Text {number} is wrong from token {place}, counted from 0. Does row i of the cache belong to row i of your pass, "
    "also after a text has ended or joined?"
)
WIDE = "One of your passes has {rows} rows. The machine has room for {most}."
UNSEEN = "Your passes read {tokens} tokens, and these texts need {least}. Read every token with `model`."


def requests(seed: int, many: int = 24, longest: int = 160, text: Sequence[int] = ()) -> list[Request]:
    """Draw requests: prompts of 4 to 40 tokens, from a text or at random, most of them with a short answer."""
    dice, content, found = random.Random(seed), random.Random(seed + 1), []
    for _ in range(many):
        start, size = dice.randrange(22_668), dice.randint(4, 40)
        prompt = text[start : start + size] if text else [content.randrange(VOCABULARY) for _ in range(size)]
        found.append(([*prompt], min(longest, 1 + int(dice.expovariate(4 / longest)))))
    return found


@cache
def small_model() -> Transformer:
    """A model of two layers with large random weights, so that nearly every token of a text depends on those before."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Transformer(llama_like(2, 32, 4, 64, vocab_size=VOCABULARY, context=256)).double().eval()
        for weight in model.requires_grad_(False).parameters():
            if weight.dim() == 2:
                scale = 1.0 if weight.shape[0] == VOCABULARY else 2.0
                weight.copy_(scale * torch.randn(weight.shape) * weight.shape[1] ** -0.5)
    return model


@dataclass
class Work:
    """Passes of a model, the tokens that they read, padding included, and the most rows of a pass."""

    passes: int = 0
    tokens: int = 0
    rows: int = 0

    @property
    def total(self) -> int:
        """The work: 10 for a pass, and 1 for each token in it."""
        return 10 * self.passes + self.tokens


@contextmanager
def counted(model: Transformer) -> Iterator[Work]:
    """Count the work of a model, in the first product of its first block."""
    work = Work()

    def count(_: object, inputs: tuple[torch.Tensor, ...]) -> None:
        rows, tokens = inputs[0].shape[:2]
        work.passes, work.tokens, work.rows = work.passes + 1, work.tokens + rows * tokens, max(work.rows, rows)

    handle = model.blocks[0].attention.layer.qkv.register_forward_pre_hook(count)  # type: ignore[union-attr]
    try:
        yield work
    finally:
        handle.remove()


def one_after_the_other(orders: Sequence[Request]) -> Work:
    """The work of one text after the other, with a cache and without a draft."""
    passes = sum(new for _, new in orders)
    return Work(passes, passes + sum(len(prompt) - 1 for prompt, _ in orders), 1)


@cache
def _task(seed: int, many: int, longest: int, equal: int) -> tuple[list[Request], list[list[int]]]:
    """Return requests and their right texts, each written without a cache; `equal` replaces their lengths."""
    orders, texts = [(prompt, equal or new) for prompt, new in requests(seed, many, longest)], []
    for prompt, new in orders:
        text = list(prompt)
        for _ in range(new):
            text.append(int(small_model()(torch.tensor([text]))[0, -1].argmax()))
        texts.append(text[len(prompt) :])
    return orders, texts


def _served(serve: Serve, seed: int, many: int = 24, longest: int = 160, equal: int = 0) -> tuple[Work, list[Request]]:
    """Let a server write the texts of a set; raise Unfit if one is wrong, or if the work was not done in the model."""
    orders, right = _task(seed, many, longest, equal)
    with counted(small_model()) as work:
        texts = serve(small_model(), [(list(prompt), new) for prompt, new in orders])
    _compare(texts, right, together=equal > 0)
    if work.rows > ROWS:
        raise Unfit(WIDE.format(rows=work.rows, most=ROWS))
    if work.tokens < (least := one_after_the_other(orders).tokens):
        raise Unfit(UNSEEN.format(tokens=work.tokens, least=least))
    return work, orders


def _compare(texts: Any, right: list[list[int]], *, together: bool) -> None:
    """Raise Unfit if texts are wrong; `together` if all rows of a pass begin and end together."""
    if not isinstance(texts, list) or len(texts) != len(right) or not all(isinstance(text, list) for text in texts):
        raise Unfit(FORM)
    if texts != right and sorted(texts) == sorted(right):
        raise Unfit(MIXED)
    for number, (text, wanted) in enumerate(zip(texts, right, strict=True)):
        if len(text) != len(wanted):
            raise Unfit(LENGTH.format(number=number, yours=len(text), right=len(wanted)))
    for place, sentence in ((0, FIRST), (1, SECOND)):
        wrong = sum(text[: place + 1] != wanted[: place + 1] for text, wanted in zip(texts, right, strict=True))
        if wrong and together:
            raise Unfit(sentence.format(wrong=wrong, all=len(right)))
    for number, (text, wanted) in enumerate(zip(texts, right, strict=True)):
        if text != wanted:
            place = next(i for i, pair in enumerate(zip(text, wanted, strict=True)) if pair[0] != pair[1])
            raise Unfit(LATER.format(number=number, place=place))


@one_thread()
def inspect_server(serve: Serve) -> None:
    """Raise Unfit if a server writes other texts for a few short requests, or takes too many rows."""
    _served(serve, SETS[0], many=4, equal=3)
    _served(serve, SETS[0], many=12, longest=16)


@one_thread()
def measure_server(serve: Serve, seed: int) -> dict[str, float]:
    """Return the work of a server for a set of 24 requests, and how many times less than one after the other."""
    work, orders = _served(serve, SETS[seed])
    return {PASSES: work.passes, TOKENS: work.tokens, LESS: one_after_the_other(orders).total / work.total}
