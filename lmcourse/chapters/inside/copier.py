"""A copier of two layers whose attention is a learner's `multi_head`, and texts that lose their first copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.exercises.measured import one_thread
from lmcourse.training.copying import AttentionOnly, train_copier

LENGTH, WORDS = 32, 32


def repeating_texts(count: int, drawn: torch.Generator) -> tuple[Int[Tensor, "b s"], Int[Tensor, " b"]]:
    """Return texts of random tokens that begin again after 8 to 16 of them, and these periods."""
    periods = torch.randint(8, 17, (count,), generator=drawn)
    tokens = torch.randint(WORDS, (count, 16), generator=drawn)
    return tokens.gather(1, torch.arange(LENGTH) % periods[:, None]), periods


@dataclass(frozen=True)
class Copier:
    """A trained copier; `clean` texts repeat, `corrupted` ones have another first copy."""

    model: AttentionOnly
    clean: Int[Tensor, "b s"]
    corrupted: Int[Tensor, "b s"]
    copied: Tensor

    @one_thread()
    @torch.no_grad()
    def loss(self, layer: int = -1, f: Callable[[Tensor], Tensor] | None = None, *, corrupted: bool = False) -> float:
        """Return the loss of the clean texts' copied tokens, after clean or corrupted texts.

        `f` replaces the results of the heads of one layer.
        """
        read = self.corrupted if corrupted else self.clean
        logits = self.model(read[:, :-1], lambda at, results: f(results) if f and at == layer else results)
        losses = torch.nn.functional.cross_entropy(logits.mT, self.clean[:, 1:], reduction="none")
        return losses[self.copied].mean().item()

    @one_thread()
    @torch.no_grad()
    def heads(self, *, corrupted: bool = False) -> list[Float[Tensor, "b h s d"]]:
        """Return the heads' results of both layers."""
        found: list[Tensor] = []
        read = self.corrupted if corrupted else self.clean
        self.model(read[:, :-1], lambda _, results: found.append(results) or results)  # type: ignore[func-returns-value]
        return found


@one_thread()
def trained_copier(multi_head: Callable[..., Tensor], seed: int = 0) -> Copier:
    """Train a copier of two layers for 300 steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionOnly(multi_head, 2)
    train_copier(model, repeating_texts, seed, 300)
    clean, periods = repeating_texts(128, torch.Generator().manual_seed(5))
    other, _ = repeating_texts(128, torch.Generator().manual_seed(6))
    place, periods = torch.arange(LENGTH), periods[:, None]
    copied = (place >= periods) & (place < 2 * periods - 1)
    return Copier(model, clean, torch.where(place < periods, other, clean), copied[:, :-1])
