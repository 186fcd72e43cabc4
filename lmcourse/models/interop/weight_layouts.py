"""Weight layouts: how one weight of ours is joined from the weights of a Hugging Face file, and split into them.

All layouts only move numbers, so the same functions carry weights and gradients, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from einops import rearrange
from torch import Tensor


class HeadSizes(NamedTuple):
    """The head counts and head width of an attention layer."""

    heads: int
    kv_heads: int
    d_head: int

    @property
    def sizes(self) -> list[int]:
        """Features of q, k and v."""
        return [self.heads * self.d_head, self.kv_heads * self.d_head, self.kv_heads * self.d_head]


class WeightLayout(Protocol):
    """How a weight of ours is stored in their file. Names leave out the last part, "weight" or "bias"."""

    def names(self, heads: HeadSizes) -> list[str]:
        """Their names; * stands for the number of the layer."""
        ...

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        ...

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        ...


@dataclass(frozen=True)
class Unchanged:
    """One weight, copied unchanged."""

    name: str

    def names(self, heads: HeadSizes) -> list[str]:
        """Their names; * stands for the number of the layer."""
        return [self.name]

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        return theirs[0]

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        return [ours]


@dataclass(frozen=True)
class Transposed(Unchanged):
    """A matrix stored as in × out: the Conv1D of GPT-2. A bias has nothing to transpose."""

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        return theirs[0].t() if theirs[0].ndim == 2 else theirs[0]

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        return [ours.t() if ours.ndim == 2 else ours]


@dataclass(frozen=True)
class PerHead(Unchanged):
    """A scale for each head's features: heads × width, where ours has an axis for the tokens between them."""

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        return theirs[0][:, None]

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        return [ours[:, 0]]


@dataclass(frozen=True)
class FusedGroupedQKV(Unchanged):
    """q, k and v fused group by group: the g query heads that share a key head, then that key, then its value.

    With a group of one, (q, k, v) head by head (GPT-NeoX, BLOOM); with a single group, [q | k | v] (Falcon 7B).
    """

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        groups = rearrange(theirs[0], "(kv g w) ... -> kv g w ...", kv=heads.kv_heads, w=heads.d_head)
        parts = (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])
        return torch.cat([rearrange(part, "kv g w ... -> (kv g w) ...") for part in parts])

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        parts = (
            rearrange(x, "(kv g w) ... -> kv g w ...", kv=heads.kv_heads, w=heads.d_head)
            for x in torch.split(ours, heads.sizes)
        )
        return [rearrange(torch.cat(list(parts), dim=1), "kv g w ... -> (kv g w) ...")]


@dataclass(frozen=True, init=False)
class Concatenated:
    """Several matrices of theirs, concatenated along the output features: equal sizes, or q, k and v."""

    parts: tuple[str, ...]

    def __init__(self, *parts: str) -> None:
        object.__setattr__(self, "parts", parts)

    def names(self, heads: HeadSizes) -> list[str]:
        """Their names; * stands for the number of the layer."""
        return list(self.parts)

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        return torch.cat(list(theirs))

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        if len(self.parts) == 3:
            return list(torch.split(ours, heads.sizes))
        return list(ours.chunk(len(self.parts)))


class MirroredQKV(Concatenated):
    """q, k and v, where q and k are rotated the other way round (nanochat): our rotation, if the two features of every
    pair change places. Pairs are in halves.
    """

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        return super().join(self._mirrored(theirs, heads), heads)

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        return self._mirrored(super().split(ours, heads), heads)

    def _mirrored(self, parts: Sequence[Tensor], heads: HeadSizes) -> list[Tensor]:
        *qk, v = parts
        pairs = (rearrange(x, "(h two w) ... -> two h w ...", two=2, w=heads.d_head // 2) for x in qk)
        return [*(rearrange(x.flip(0), "two h w ... -> (h two w) ...") for x in pairs), v]


@dataclass(frozen=True)
class PerHeadModules:
    """A module for each head (StableLM's norms): {head} stands for its number."""

    name: str
    of: str

    def names(self, heads: HeadSizes) -> list[str]:
        """Their names; * stands for the number of the layer."""
        count = heads.heads if self.of == "queries" else heads.kv_heads
        return [self.name.replace("{head}", str(head)) for head in range(count)]

    def join(self, theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        """Ours, made of theirs."""
        return torch.stack(list(theirs))[:, None]

    def split(self, ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        """Theirs, made of ours."""
        return list(ours[:, 0].unbind())
