"""Weight layouts: how one weight of ours is joined from the weights of a Hugging Face file, and split into them.

All layouts only move numbers, so the same functions carry weights and gradients, in both directions. A family's table
names a weight that is stored as ours is by a string alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


@dataclass(frozen=True)
class WeightLayout:
    """How a weight of ours is stored in their file; without functions, unchanged.

    Attributes:
        parts: their names without the last part, "weight" or "bias"; * stands for the number of the layer.
        join: makes ours of theirs.
        split: makes theirs of ours.
        parts_per_head: returns how many weights the one name in `parts` stands for, where {head} is their number.
    """

    parts: tuple[str, ...]
    join: Callable[[Sequence[Tensor], HeadSizes], Tensor] = lambda theirs, heads: theirs[0]
    split: Callable[[Tensor, HeadSizes], list[Tensor]] = lambda ours, heads: [ours]
    parts_per_head: Callable[[HeadSizes], int] | None = None

    def names(self, heads: HeadSizes) -> list[str]:
        """Return the names of their weights."""
        if self.parts_per_head is None:
            return list(self.parts)
        return [self.parts[0].replace("{head}", str(head)) for head in range(self.parts_per_head(heads))]


WeightTable = Mapping[str, str | WeightLayout]
"""Our modules, and where a family's files store their weights."""


def transposed(name: str) -> WeightLayout:
    """Layout of a matrix stored as in × out (GPT-2's Conv1D). A bias is not transposed."""

    def turn(x: Tensor) -> Tensor:
        return x.t() if x.ndim == 2 else x

    return WeightLayout((name,), lambda theirs, heads: turn(theirs[0]), lambda ours, heads: [turn(ours)])


def per_head_scale(name: str) -> WeightLayout:
    """Layout of one scale per head: heads × width, where ours has an axis for the tokens between them."""
    return WeightLayout((name,), lambda theirs, heads: theirs[0][:, None], lambda ours, heads: [ours[:, 0]])


def per_head_modules(name: str, count: Callable[[HeadSizes], int]) -> WeightLayout:
    """Layout of one module per head (StableLM's norms): {head} is its number, `count` returns how many there are."""
    return WeightLayout(
        (name,),
        lambda theirs, heads: torch.stack(list(theirs))[:, None],
        lambda ours, heads: list(ours[:, 0].unbind()),
        count,
    )


def fused_grouped_qkv(name: str) -> WeightLayout:
    """Layout of q, k and v fused group by group: the g query heads that share a key head, then that key, then its
    value.

    With a group of one, (q, k, v) head by head (GPT-NeoX, BLOOM); with a single group, [q | k | v] (Falcon 7B).
    """

    def join(theirs: Sequence[Tensor], heads: HeadSizes) -> Tensor:
        groups = rearrange(theirs[0], "(kv g w) ... -> kv g w ...", kv=heads.kv_heads, w=heads.d_head)
        parts = (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])
        return torch.cat([rearrange(part, "kv g w ... -> (kv g w) ...") for part in parts])

    def split(ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        parts = (
            rearrange(x, "(kv g w) ... -> kv g w ...", kv=heads.kv_heads, w=heads.d_head)
            for x in torch.split(ours, heads.sizes)
        )
        return [rearrange(torch.cat(list(parts), dim=1), "kv g w ... -> (kv g w) ...")]

    return WeightLayout((name,), join, split)


def concatenated(*parts: str) -> WeightLayout:
    """Layout of several matrices, concatenated along the output features: equal sizes, or q, k and v."""

    def split(ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        return list(torch.split(ours, heads.sizes) if len(parts) == 3 else ours.chunk(len(parts)))

    return WeightLayout(parts, lambda theirs, heads: torch.cat(list(theirs)), split)


def mirrored_qkv(*parts: str) -> WeightLayout:
    """q, k and v, where q and k are rotated the other way round (nanochat): our rotation, if the two features of every
    pair change places. Pairs are in halves.
    """
    plain = concatenated(*parts)

    def mirror(theirs: Sequence[Tensor], heads: HeadSizes) -> list[Tensor]:
        *qk, v = theirs
        pairs = (rearrange(x, "(h two w) ... -> two h w ...", two=2, w=heads.d_head // 2) for x in qk)
        return [*(rearrange(x.flip(0), "two h w ... -> (h two w) ...") for x in pairs), v]

    return WeightLayout(
        parts,
        lambda theirs, heads: plain.join(mirror(theirs, heads), heads),
        lambda ours, heads: mirror(plain.split(ours, heads), heads),
    )
