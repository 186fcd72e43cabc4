"""How the same numbers lie in two files: one weight of ours, and the ones of theirs that it is made of.

All layouts only move numbers, so the same functions carry weights and gradients, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from einops import rearrange
from torch import Tensor


class Heads(NamedTuple):
    """The sizes of an attention layer."""

    queries: int
    keys: int
    width: int

    @property
    def sizes(self) -> list[int]:
        """Features of q, k and v."""
        return [self.queries * self.width, self.keys * self.width, self.keys * self.width]


class Layout(Protocol):
    """Where a weight of ours lies in their file. Names leave out the last part, "weight" or "bias"."""

    def names(self, heads: Heads) -> list[str]:
        """Their names; * stands for the number of the layer."""
        ...

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        """Ours, made of theirs."""
        ...

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        """Theirs, made of ours."""
        ...


@dataclass(frozen=True)
class Same:
    """One weight, stored as ours is."""

    name: str

    def names(self, heads: Heads) -> list[str]:
        return [self.name]

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        return theirs[0]

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        return [ours]


@dataclass(frozen=True)
class Transposed(Same):
    """A matrix stored as in × out: the Conv1D of GPT-2. A bias has nothing to transpose."""

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        return theirs[0].t() if theirs[0].ndim == 2 else theirs[0]

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        return [ours.t() if ours.ndim == 2 else ours]


@dataclass(frozen=True)
class PerHead(Same):
    """A scale for each head's features: heads × width, where ours has an axis for the tokens between them."""

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        return theirs[0][:, None]

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        return [ours[:, 0]]


@dataclass(frozen=True)
class Grouped(Same):
    """q, k and v fused group by group: the g query heads that share a key head, then that key, then its value.

    With a group of one, (q, k, v) head by head (GPT-NeoX, BLOOM); with a single group, [q | k | v] (Falcon 7B).
    """

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        groups = rearrange(theirs[0], "(kv g w) ... -> kv g w ...", kv=heads.keys, w=heads.width)
        parts = (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])
        return torch.cat([rearrange(part, "kv g w ... -> (kv g w) ...") for part in parts])

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        parts = (
            rearrange(x, "(kv g w) ... -> kv g w ...", kv=heads.keys, w=heads.width)
            for x in torch.split(ours, heads.sizes)
        )
        return [rearrange(torch.cat(list(parts), dim=1), "kv g w ... -> (kv g w) ...")]


@dataclass(frozen=True, init=False)
class Stacked:
    """Several matrices of theirs, one below the other in ours: of equal height, or q, k and v."""

    parts: tuple[str, ...]

    def __init__(self, *parts: str) -> None:
        object.__setattr__(self, "parts", parts)

    def names(self, heads: Heads) -> list[str]:
        return list(self.parts)

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        return torch.cat(list(theirs))

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        if len(self.parts) == 3:
            return list(torch.split(ours, heads.sizes))
        return list(ours.chunk(len(self.parts)))


@dataclass(frozen=True)
class OnePerHead:
    """A module for each head (StableLM's norms): {head} stands for its number."""

    name: str
    of: str

    def names(self, heads: Heads) -> list[str]:
        count = heads.queries if self.of == "queries" else heads.keys
        return [self.name.replace("{head}", str(head)) for head in range(count)]

    def join(self, theirs: Sequence[Tensor], heads: Heads) -> Tensor:
        return torch.stack(list(theirs))[:, None]

    def split(self, ours: Tensor, heads: Heads) -> list[Tensor]:
        return list(ours[:, 0].unbind())
