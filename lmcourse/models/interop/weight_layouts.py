"""Weight layouts: how one weight of ours is joined from the weights of a Hugging Face file, and split into them.

All layouts only move numbers, so the same functions convert weights and gradients in both directions. In a family's
table, a plain string stands for a weight that is stored as ours is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from einops import rearrange
from torch import Tensor


class HeadSizes(NamedTuple):
    """The numbers of heads and the head width of an attention layer."""

    heads: int
    kv_heads: int
    d_head: int

    @property
    def sizes(self) -> list[int]:
        """Return the numbers of features of q, k and v."""
        return [self.heads * self.d_head, self.kv_heads * self.d_head, self.kv_heads * self.d_head]


@dataclass(frozen=True)
class WeightLayout:
    """How their files store one of our weights; without functions, it is stored unchanged.

    Attributes:
        parts: the names in their files, without the final "weight" or "bias"; * stands for the number of the layer.
        join: makes our weight from their weights.
        split: makes their weights from our weight.
        parts_per_head: returns the number of weights that the one name in `parts` stands for; {head} in it is the
            number of each.
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
    """Layout of one scale per head: heads × width. Our scale has an axis for the tokens between the two."""
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
    """Layout of q, k and v fused by groups: the g query heads that share a key head, the key head, the value head.

    If each group has one query head, the order is (q, k, v) head by head (GPT-NeoX, BLOOM); with a single group it is
    [q | k | v] (Falcon 7B).
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
    """Layout of several matrices that are concatenated along the output features: equal sizes, or q, k and v."""

    def split(ours: Tensor, heads: HeadSizes) -> list[Tensor]:
        return list(torch.split(ours, heads.sizes) if len(parts) == 3 else ours.chunk(len(parts)))

    return WeightLayout(parts, lambda theirs, heads: torch.cat(list(theirs)), split)


def mirrored_qkv(*parts: str) -> WeightLayout:
    """Layout of q, k and v if q and k are rotated in the opposite direction (nanochat). Swapping the two features of
    every pair gives our rotation. The first half of the features is paired with the second.
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
