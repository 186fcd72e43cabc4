"""Helpers of the checks of notebook 17: a model that records what it is shown, known guesses, and loaded dice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.inference.own_loop import Dice


class LoadedDice(Dice):
    """Dice whose numbers are known beforehand. `draw` takes the first token up to which p adds up to its number."""

    def __init__(self, chances: Sequence[float] = (), draws: Sequence[float] = ()) -> None:
        self._chances, self._draws = (iter([*numbers]) for numbers in (chances, draws))

    def chances(self, n: int) -> Float[Tensor, " n"]:
        """Return the next n numbers."""
        return torch.tensor(_next(self._chances, n), dtype=torch.float64)

    def draw(self, p: Float[Tensor, " v"]) -> int:
        """Return the token at the next number."""
        (number,) = _next(self._draws, 1)
        return int((p.cumsum(0) <= number * p.sum()).sum())


def _next(numbers: Iterator[float], n: int) -> list[float]:
    found = [number for _, number in zip(range(n), numbers, strict=False)]
    if len(found) < n:
        raise ValueError("the dice have no number left: you draw more often than you need")
    return found


class TokenCache(list[int]):
    """A cache that holds the tokens themselves, for a `Recorder`."""

    def truncate(self, tokens: int) -> None:
        """Keep the first `tokens` tokens."""
        if not 0 <= tokens <= len(self):
            raise ValueError(f"cannot keep {tokens} of {len(self)} tokens")
        del self[tokens:]


class Recorder:
    """A model that records what it is shown: `seen` has a pair for each pass, tokens in the cache and tokens shown.

    Args:
        after: for each token, the token after it, or the weights of all tokens after it.
    """

    def __init__(self, after: Sequence[int | Sequence[float]]) -> None:
        self._after, self.seen = after, list[tuple[int, list[int]]]()

    def __call__(self, tokens: Int[Tensor, "1 s"], *, kv_cache: TokenCache | None = None) -> Float[Tensor, "1 s v"]:
        """Return the logits after each token, and put the tokens into the cache."""
        if tokens.ndim != 2 or len(tokens) != 1 or not tokens.numel():
            raise ValueError(f"tokens must be one row of at least one token, not of the shape {tuple(tokens.shape)}")
        shown = [int(token) for token in tokens[0]]
        self.seen.append((len(kv_cache or ()), shown))
        if kv_cache is not None:
            kv_cache += shown
        return torch.tensor([[self._row(token) for token in shown]], dtype=torch.float64).log()

    def _row(self, token: int) -> list[float]:
        after = self._after[token]
        if not isinstance(after, int):
            return [*after]
        return [0.98 if other == after else 0.02 / (len(self._after) - 1) for other in range(len(self._after))]


class Guesses:
    """A draft whose guesses are known beforehand; `asked` has the texts that it was asked to continue.

    Args:
        drafts: the tokens of each guess; after the last, nothing is guessed.
        q: the distribution of every guessed token by the token before it; None if the draft is sure.
        tokens: the size of the vocabulary.
    """

    def __init__(
        self, drafts: Sequence[Sequence[int]], tokens: int, q: Sequence[Sequence[float]] | None = None
    ) -> None:
        self._drafts, self._tokens, self._q, self.asked = iter(drafts), tokens, q, list[list[int]]()

    def __call__(self, text: Sequence[int]) -> tuple[list[int], Float[Tensor, "n v"]]:
        """Return the next guess, and the distributions."""
        self.asked.append([*text])
        guessed = [*next(self._drafts, ())]
        sure = [[float(other == token) for other in range(self._tokens)] for token in guessed]
        rows = [self._q[token] for token in [text[-1], *guessed][:-1]] if self._q else sure
        return guessed, torch.tensor(rows, dtype=torch.float64).reshape(-1, self._tokens)


def at_temperature_2(logits: Float[Tensor, "n v"]) -> Float[Tensor, "n v"]:
    """Return the probabilities at temperature 2."""
    return (logits / 2).softmax(dim=-1)


def only_the_best(logits: Float[Tensor, "n v"]) -> Float[Tensor, "n v"]:
    """Return the probabilities at temperature 0."""
    return torch.nn.functional.one_hot(logits.argmax(dim=-1), logits.shape[-1]).double()


_P0, _Q0 = ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
_P = [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
_Q = [[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.3, 0.6, 0.1]]


def print_all_drafts(speculate: Any) -> None:
    """Print how the first two tokens are distributed, over all drafts of two tokens and a grid of chances.

    The grid of 10 × 10 chances is fine enough for these probabilities.
    """
    p0, q0, p, q = (torch.tensor(rows, dtype=torch.float64) for rows in (_P0, _Q0, _P, _Q))
    grid, texts = [(step + 0.5) / 10 for step in range(10)], torch.zeros(2, 3, 3, dtype=torch.float64)
    for a, b, u, v in product(range(3), range(3), grid, grid):
        weight, chance = q0[a] * q[a, b] / 100, torch.tensor([u, v], dtype=torch.float64)
        rows = torch.stack([p0, p[a], p[b]])
        kept, right = speculate(rows, torch.stack([q0, q[a]]), torch.tensor([a, b]), chance)
        for text, after in zip(texts, (right, rows[kept]), strict=True):
            if kept == 0:
                text += weight * after[:, None] * p  # the second token comes with the next draft
            elif kept == 1:
                text[a] += weight * after
            else:
                text[a, b] += weight
    print("plain sampling, first token:   ", _P0)
    for name, text in zip(("speculated:", "drawn from p after a miss:"), texts, strict=True):
        print(f"{name:31}", [round(x, 4) for x in text.sum(dim=1).tolist()])
    print(f"both tokens, all nine texts: largest difference {(texts[0] - p0[:, None] * p).abs().max().item():.0e}")
