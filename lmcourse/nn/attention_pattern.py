"""Attention patterns: which keys a query may attend to.

Every mask of the course is a rule on two positions, the query's and the key's. A key's place in memory does not matter,
so the same rule works for a full sequence, a left-padded batch and a rolling cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool, Int
from torch import Tensor

from lmcourse.nn.checks import check_choice

PADDING_POSITION = -1
"""The position of padding and of unfilled cache slots; no query sees it."""


PatternKind = Literal["full", "window", "chunk", "strided", "fixed"]


@dataclass(frozen=True)
class AttentionPattern:
    """An attention pattern: which keys each query sees.

    Attributes:
        kind: the keys that a query sees. "full": all; "window": itself and the size − 1 tokens before it (Beltagy et
            al., 2020); "chunk": its own block of `size` tokens (Llama 4); "strided": a window and every size-th token
            before it; "fixed": its own block and the last token of every block (both Child et al., 2019).
        size: the window's, chunk's or stride's length in tokens.
        causal: whether later tokens are hidden. Without it a window reaches as far to the right as to the left.
    """

    kind: PatternKind = "full"
    size: int | None = None
    causal: bool = True

    def __post_init__(self) -> None:
        check_choice("attention pattern", self.kind, PatternKind)
        if self.kind == "full" and self.size is not None:
            raise ValueError(f"full attention takes no size, but size is {self.size}: leave it out")
        if self.kind != "full" and (self.size is None or self.size < 1):
            raise ValueError(f"{self.kind} attention needs a size of at least 1, not {self.size}")

    @property
    def span(self) -> int | None:
        """The largest number of keys that a query can look back, itself included; None if there is no limit."""
        return self.size if self.kind in ("window", "chunk") else None

    @property
    def sparse(self) -> bool:
        """True if there are hidden keys between the first and the last key that a query sees."""
        return self.kind in ("strided", "fixed")

    def is_causal_within(self, length: int) -> bool:
        """Return True if, in a text of this length, the rule hides only later tokens."""
        return self.causal and (self.size is None or length <= self.size)

    def visible(
        self,
        query: Int[Tensor, "b_or_1 s"],
        key: Int[Tensor, "b_or_1 t"],
        prefix_lengths: Int[Tensor, " b"] | None = None,
    ) -> Bool[Tensor, "b_or_1 s t"]:
        """Return a mask: True where a query sees a key.

        Args:
            query, key: positions of queries and keys in the text; PADDING_POSITION marks padding. A single row is used
                for all texts.
            prefix_lengths: for each sequence, the number of tokens at its start that see each other in both directions
                (Raffel et al., 2020).
        """
        q, k = query[:, :, None], key[:, None, :]
        seen = (k != PADDING_POSITION).expand(-1, q.shape[1], -1)
        if self.causal:
            past = k <= q
            seen = seen & (past if prefix_lengths is None else past | (k < prefix_lengths[:, None, None]))
        return seen if self.size is None else seen & self._pattern(q, k, self.size)

    def _pattern(self, q: Int[Tensor, "b s 1"], k: Int[Tensor, "b 1 t"], size: int) -> Bool[Tensor, "b s t"]:
        """Return the mask of a kind with a size. Masks of other kinds are not computed, because each is as large as a
        head's scores.
        """
        if self.kind == "window":
            return (q - k).abs() < size
        if self.kind == "strided":
            distance = (q - k).abs()
            return (distance < size) | (distance % size == 0)
        block = q // size == k // size
        return block if self.kind == "chunk" else block | (k % size == size - 1)
