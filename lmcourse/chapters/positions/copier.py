"""A copier that was trained on 32 tokens, and reads longer texts with other speeds, or with scores of a learner's.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.exercises.measured import CHANGED, one_thread
from lmcourse.exercises.open_task import Remark, Unfit
from lmcourse.training.copying import AttentionOnly, Scores, attention_with, copied_loss, losses_of, train_copier

Rope = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes (x, positions, speeds), as Exercise 3 asks for it."""

VOCABULARY, TRAINED, STEPS, PAIRS = 64, 32, 500, 8
SPEEDS = 100.0 ** (-torch.arange(PAIRS) / PAIRS)
"""The copier's speeds in training, in radians a token."""


def repeating_texts(
    count: int, generator: torch.Generator, length: int = TRAINED
) -> tuple[Int[Tensor, "count length"], Int[Tensor, " count"]]:
    """Return texts that repeat with a period of a quarter to half of their length, and the periods.

    Within a period no token comes twice.
    """
    periods = torch.randint(length // 4, length // 2 + 1, (count,), generator=generator)
    tokens = torch.rand(count, VOCABULARY, generator=generator).argsort(dim=-1)[:, : length // 2]
    return tokens.gather(1, torch.arange(length) % periods[:, None]), periods


def turned(rope: Rope, speeds: Float[Tensor, " pairs"]) -> Scores:
    """Return the scores after `rope`, which is called once for each length, on unit vectors: it may be slow."""

    @cache
    def matrices(length: int) -> Float[Tensor, "s d d"]:
        units = torch.eye(2 * PAIRS)[:, None].repeat(1, length, 1)
        return rope(units, torch.arange(length), speeds).transpose(0, 1).contiguous()

    def scores(q: Float[Tensor, "b h s d"], k: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h s s"]:
        q, k = (torch.einsum("bhsd,sde->bhse", x, matrices(x.shape[-2])) for x in (q, k))
        product: Tensor = q @ k.mT
        return product

    return scores


def turn_pairs(
    x: Float[Tensor, "*batch s d"], positions: Float[Tensor, " s"], speeds: Float[Tensor, " pairs"]
) -> Float[Tensor, "*batch s d"]:
    """Turn neighbouring features by position times speed: the course's `rope`."""
    angle = positions[:, None] * speeds
    pairs = torch.view_as_complex(rearrange(x, "... (pair two) -> ... pair two", two=2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


@dataclass(frozen=True)
class Copier:
    """A trained copier, and what turned its queries and keys. Each reading replaces the scores of its layers."""

    model: AttentionOnly
    rope: Rope

    @one_thread()
    @torch.no_grad()
    def loss(self, length: int, speeds: Tensor = SPEEDS, scores: Scores | None = None) -> float:
        """Return the loss per copied token of 64 new texts of this length, with other speeds or other scores."""
        self.model.attention = attention_with(scores or turned(self.rope, speeds))
        tokens, periods = repeating_texts(64, torch.Generator().manual_seed(99), length)
        return copied_loss(losses_of(self.model, tokens), periods)

    @one_thread()
    def trained_longer(self, speeds: Float[Tensor, " pairs"]) -> Copier:
        """Return a copy that was trained for 50 steps on texts of 128 tokens, with these speeds."""
        model = copy.deepcopy(self.model)
        model.attention = attention_with(turned(self.rope, speeds))
        train_copier(model, partial(repeating_texts, length=4 * TRAINED), 1, 50, rate=0.002, warmup=1)
        return Copier(model, self.rope)


@one_thread()
def train_on_32(rope: Rope, seed: int) -> Copier:
    """Train a copier of two layers on texts of 32 tokens."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionOnly(attention_with(turned(rope, SPEEDS)), 2, vocabulary=VOCABULARY)
    train_copier(model, repeating_texts, seed, STEPS)
    return Copier(model, rope)


OTHER_HEADS = (
    "The score of a query and a key changes with those of the other heads. Compute each head's scores from its own "
    "queries and keys."
)
UNCHANGED = "At {n} tokens, the last query gives all keys their trained scores: nothing has changed there."
SCALED = "At {n} tokens, the score of the key 1 back is the trained one divided by √d. Leave that out: it follows."
SWAPPED = (
    "At {n} tokens, the key 1 back is scored as if it were {shift} back, and keys 16 or more back as in training. Did "
    "you swap near and far?"
)
SQUEEZED = "At {n} tokens, the key 1 back is scored as if it were {back:.2f} back. The first layer looks for it 1 back."
TOO_FAR = "At {n} tokens, far keys are scored as if they were {back} back. In training, copies were 8 to 16 back."
AFTER = (
    "At {n} tokens, the last query scores the key {back} back as if it came *after* the query, at a distance of "
    "{shift}. Turn the query further than the key."
)
ALONE = (
    "The score of a query and a key changes with other queries or keys. It may depend on these two vectors, their "
    "positions and the length."
)
LENGTHS = (32, 64, 128)
_JUDGED = (32, 100, *(length - 1 for length in LENGTHS), 1)  # of a text of n tokens, n − 1 are read
_BACK = (0, 1, 7, 8, 9, 31, 32, 60)
_SAME = 1e-4

_copier = cache(partial(train_on_32, turn_pairs))


def measure_far(answer: Callable[..., Tensor], seeds: list[int]) -> dict[str, float]:
    """Return the loss per copied token at each length, of the worse of the copiers that have these seeds."""
    copiers: list[Copier] = [_copier(seed) for seed in seeds]
    return {str(n): max(one.loss(n, scores=_checked(answer, n)) for one in copiers) for n in LENGTHS}


def _checked(answer: Callable[..., Tensor], length: int) -> Scores:
    """Return the scores of an answer; they raise `Unfit` unless each score uses its own query and key alone."""
    _, periods = repeating_texts(64, torch.Generator().manual_seed(99), length)  # as in `Copier.loss`

    def scores(q: Tensor, k: Tensor) -> Tensor:
        texts, last = torch.arange(len(q)), torch.full_like(periods, q.shape[-2] - 1)
        heads = texts % q.shape[1]
        mixed = _mixed(answer, q, k, last, last + 1 - periods, heads)
        found = _call(answer, q, k)
        _compare(mixed, found[texts, heads, last, last + 1 - periods], ALONE)
        return found

    return scores


@one_thread()
@torch.no_grad()
def inspect_far(answer: Callable[..., Tensor]) -> None:
    """Raise `Unfit` unless each score depends on its own query and key, on no other, and on no earlier call.

    Known mistakes of valid answers are remarks.
    """
    generator = torch.Generator().manual_seed(0)
    for length in _JUDGED:
        tokens, periods = repeating_texts(2, generator, max(length + 1, 4))
        q, k = torch.randn(2, VOCABULARY, 2, 2 * PAIRS, generator=generator)[:, tokens[:, :length]].transpose(2, 3)
        found = _call(answer, q, k)
        again = [_call(answer, q, k), _call(answer, k, q), _call(answer, q, k)]
        if not all(torch.equal(each, found) for each in again[::2]):
            raise Unfit(
                "Called again with the same inputs, your function returns something else. Keep and draw nothing."
            )
        back = [each for each in {*_BACK, *(periods - 1).tolist()} if each < length]
        places = torch.tensor(
            [(i, i - each) for i in (length - 1, length // 2) for each in back if each <= i for _ in range(4)]
        )
        text, head = torch.arange(len(places)) % 2, torch.arange(len(places)) // 2 % 2
        i, j = places.unbind(dim=1)
        for heads, sentence in ((slice(None), ALONE), (head, OTHER_HEADS)):
            mixed = _mixed(answer, q[text], k[text], i, j, heads)
            _compare(mixed, found[text, heads, i, j], sentence)
        stays = ((_call(answer, q, k.flip(-1)) - found).abs().amin(dim=(0, 1)) == 0).tril()
        if stays.any():
            query, key = map(int, stays.nonzero()[-1])
            raise Unfit(
                f"At {length} tokens, the score of query {query} does not depend on key {key}. Hide no key: the mask "
                "follows."
            )
        if length in (32, 100) and (remark := _remark(q, k, found)):
            warnings.warn(remark, Remark, stacklevel=1)


def _remark(q: Tensor, k: Tensor, found: Float[Tensor, "b h s s"]) -> str:
    """Return a sentence on the last query's scores if they fit a known mistake, or ""."""
    n = q.shape[-2]
    shifts = torch.arange(1 - n, n)
    turned_back = turn_pairs(q[..., -1:, :].expand(-1, -1, len(shifts), -1), shifts, SPEEDS)
    as_if = (turned_back @ k.mT).movedim(2, 0).flip(-1)  # (shift, b, h, key), the nearest key first

    def seen(scores: Tensor) -> dict[int, int]:
        fits = ((as_if - scores).abs() <= _SAME * as_if.abs().max()).all(dim=1).all(dim=1)
        return {back: int(shifts[fits[:, back]][0]) for back in range(n) if fits[:, back].any()}

    own = found[:, :, -1].flip(-1)
    shift = seen(own)
    if n > TRAINED and all(shift.get(back) == back for back in range(n)):
        return UNCHANGED.format(n=n)
    if 1 not in shift and seen(own * q.shape[-1] ** 0.5).get(1) == 1:
        return SCALED.format(n=n)
    if shift.get(1, 1) > 1 and all(shift.get(back) == back for back in range(16, n)):
        return SWAPPED.format(n=n, shift=shift[1])
    for back in (1 / 4, TRAINED / n):
        closer = turn_pairs(q[..., -1:, :], torch.tensor([back]), SPEEDS) @ k[..., -2:-1, :].mT
        if back < 1 and torch.allclose(closer.flatten(1), own[..., 1], atol=_SAME):
            return SQUEEZED.format(n=n, back=back)
    if n > TRAINED and len(ends := {shift.get(back, 0) for back in range(n // 2, n)}) == 1 and max(ends) > TRAINED / 2:
        return TOO_FAR.format(n=n, back=max(ends))
    later = next((back for back in shift if shift[back] < 0), None)
    return "" if later is None else AFTER.format(n=n, back=later, shift=-shift[later])


def _mixed(
    answer: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    query: Int[Tensor, " n"],
    key: Int[Tensor, " n"],
    heads: slice | Int[Tensor, " n"],
) -> Float[Tensor, "n ..."]:
    """Return the score of a query and a key in each text, in these heads, after all others were replaced."""
    texts, generator = torch.arange(len(q)), torch.Generator().manual_seed(1)
    others = [torch.randn(x.shape, generator=generator) for x in (q, k)]
    _call(answer, q.roll(1, 0), k.roll(1, 0))  # what an answer keeps now belongs to other texts
    for x, other, place in zip((q, k), others, (query, key), strict=True):
        other[texts, heads, place] = x[texts, heads, place]
    return _call(answer, *others)[texts, heads, query, key]


def _compare(mixed: Float[Tensor, "n ..."], found: Float[Tensor, "n ..."], sentence: str) -> None:
    if ((mixed - found).abs() > _SAME * found.abs().max()).any():
        raise Unfit(sentence)


def _call(answer: Callable[..., Tensor], q: Tensor, k: Tensor) -> Float[Tensor, "b h s s"]:
    """Return the scores of an answer, which gets copies; raise `Unfit` for another shape, or if they are not finite."""
    given = q.clone(), k.clone(), SPEEDS.clone()
    scores = answer(*given, TRAINED, turn_pairs)
    shape = (*q.shape[:-1], k.shape[-2])
    if not isinstance(scores, Tensor) or scores.shape != shape:
        shown = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
        raise Unfit(f"Return a score for each query and key, here a tensor of shape {shape}; yours is of {shown}.")
    if not all(map(torch.equal, given, (q, k, SPEEDS))):
        raise Unfit(CHANGED)
    if not scores.isfinite().all():
        raise Unfit(f"At {q.shape[-2]} tokens, scores are NaN or ∞. Hide no key: the mask follows.")
    return scores
